"""Reviews written to keep a webhook busy: each costs time in proportion to its size."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from pumice.testing import queue
from pumice.webhooks import admission_review
from pumice.webhooks.admission_chain import KINDS
from pumice.webhooks.admission_review import answer_review
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import LONGEST_MESSAGE, Options, Request

LONGEST_S = 8.0
"""Far more than any takes on a busy machine, far less than a square of its size would."""


class OneQueue:
    """A cluster with a queue."""

    def queue(self, name: str) -> Any:
        return queue("default")

    def queues(self) -> Any:
        return [queue("default")]

    def below(self, name: str) -> Any:
        return []

    def namespace(self, name: str) -> Any:
        return None


def review(path: str, manifest: Any, raw: tuple[str, str] = ("", "")) -> Any:
    kind = KINDS[SERVICES[path].kind]
    request = {
        "uid": "u",
        "operation": "CREATE",
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "object": manifest,
    }
    body = json.dumps({"request": request}).replace(*raw).encode()
    started = time.thread_time()
    answer = answer_review(body, SERVICES[path], OneQueue(), Options())
    assert time.thread_time() - started < LONGEST_S
    return json.loads(answer)["response"]


def task(name: str, pods: Any = None, **more: Any) -> Any:
    spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", **(pods or {})}
    return {"name": name, "replicas": 1, "template": {"spec": spec}, **more}


def job(*tasks: Any, **spec: Any) -> Any:
    return {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"queue": "default", "minAvailable": 1, "tasks": [*tasks], **spec},
    }


def flow(waits: Callable[[int], list[str]], n: int) -> Any:
    flows = [{"name": f"f{i}", "dependsOn": {"targets": waits(i)}} for i in range(n)]
    return {"metadata": {"name": "f"}, "spec": {"flows": flows}}


def hyper_node(*patterns: str) -> Any:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": one}}} for one in patterns]
    return {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}}


def spread(n: int) -> Any:
    return [
        {"topologyKey": f"k{i}", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        for i in range(n)
    ]


def claims(n: int) -> Any:
    names = [{"name": f"c{i}"} for i in range(n)]
    container = {"name": "c", "image": "i", "resources": {"claims": names}}
    return {
        "resourceClaims": [{**one, "resourceClaimName": "x"} for one in names],
        "containers": [container],
    }


LARGE: dict[str, tuple[str, Any]] = {
    "tasks": ("/jobs/validate", lambda: job(*(task(f"t{i}") for i in range(8000)))),
    "tasks to fill": ("/jobs/mutate", lambda: job(*(task(f"t{i}") for i in range(8000)))),
    "dense tasks": (
        "/jobs/validate",
        lambda: job(
            *(task(f"t{i}", dependsOn={"name": [f"t{j}" for j in range(i)]}) for i in range(600))
        ),
    ),
    "flows in a row": ("/jobflows/validate", lambda: flow(lambda i: [f"f{i - 1}"][:i], 20_000)),
    "dense flows": (
        "/jobflows/validate",
        lambda: flow(lambda i: [f"f{j}" for j in range(i)], 1000),
    ),
    "arguments": (
        "/jobs/validate",
        lambda: job(task("master"), plugins={"mpi": ["--master=master"] * 100_000}),
    ),
    "spreading": (
        "/jobs/validate",
        lambda: job(task("t", {"topologySpreadConstraints": spread(8000)})),
    ),
    "claims": ("/jobs/validate", lambda: job(task("t", claims(8000)))),
    "patterns": ("/hypernodes/validate", lambda: hyper_node(*["^(a+)+$"] * 8000)),
    "classes": ("/hypernodes/validate", lambda: hyper_node(r"[\pL\pN]" * 5000)),
}


@pytest.mark.parametrize(("path", "make"), LARGE.values(), ids=LARGE)
def test_large_objects_take_time_in_proportion(path: str, make: Any) -> None:
    review(path, make())


def test_flows_in_a_circle_are_still_found() -> None:
    assert (
        review("/jobflows/validate", flow(lambda i: [f"f{(i + 1) % 50}"], 50))["allowed"] is False
    )
    assert review("/jobflows/validate", flow(lambda i: ["f0", "f0"][: 2 * i], 50))["allowed"]


DIGITS = "9" * 1_000_000
NUMBERS = {
    "replicas": ("/jobs/validate", job(task("t")), ('"replicas": 1', f'"replicas": {DIGITS}')),
    "weight": ("/queues/validate", queue("q"), ('"weight": 1', f'"weight": {DIGITS}')),
    "exponent": ("/jobs/validate", job(task("t")), ('"replicas": 1', f'"replicas": 1e{DIGITS}')),
    "quantity": ("/queues/validate", queue("q", capability={"cpu": DIGITS}), ("", "")),
    "power": ("/queues/validate", queue("q", capability={"cpu": f"1e{DIGITS}"}), ("", "")),
    "nested": ("/jobs/validate", job(task("t")), ('"replicas": 1', f'"x": {"[" * 400_000}')),
    "twice": (
        "/jobs/validate",
        job(task("t")),
        ('"replicas": 1', ",".join(['"replicas": 1'] * 50_000)),
    ),
}


@pytest.mark.parametrize(("path", "manifest", "raw"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_a_million_digits_are_answered(path: str, manifest: Any, raw: Any) -> None:
    assert set(review(path, manifest, raw)) >= {"uid", "allowed"}


def test_a_message_is_no_longer_than_it_may_be() -> None:
    manifest = job(*(task(f"t{i}") for i in range(3000)))
    manifest["metadata"]["name"] = "a" * 100_000
    message = review("/jobs/validate", manifest)["status"]["message"]
    assert message.startswith("create pod with name aaa")
    assert len(message) < LONGEST_MESSAGE + 100


def test_what_takes_too_much_processor_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_review, "REVIEW_S", 0.02)
    answer = review("/jobs/validate", job(*(task(f"t{i}") for i in range(3000))))
    assert answer["allowed"] is False
    assert "takes more than the 0.02 s of CPU time" in answer["status"]["message"]


def ask_update(old: Any, new: Any) -> Any:
    request = Request(operation="UPDATE", object=new, old=old)
    return SERVICES["/jobs/validate"].answer(request, OneQueue(), Options())


def test_a_job_may_ask_for_so_many_pods() -> None:
    several = [{**task("a"), "replicas": 2}, {**task("b"), "replicas": 2_000_000_000}]
    answer = review("/jobs/validate", job(*several))
    assert answer["status"]["message"] == (
        "job asks for 2000000002 pods in 'replicas' of its tasks, at most 100000 are allowed;"
    )
    several[1]["replicas"] = 99_998
    assert review("/jobs/validate", job(*several))["allowed"]


def test_the_bound_is_configurable_and_a_job_beyond_it_may_shrink() -> None:
    few, many, more = (job({**task("t"), "replicas": n}) for n in (5, 300_000, 400_000))
    assert "at most 100000" in ask_update(few, many).message
    assert ask_update(more, many).allowed
    assert ask_update(many, few).allowed
    request = Request(operation="CREATE", object=more)
    service = SERVICES["/jobs/validate"]
    assert service.answer(request, OneQueue(), Options(max_job_replicas=0)).allowed
    assert not service.answer(request, OneQueue(), Options(max_job_replicas=300_000)).allowed


@pytest.mark.parametrize("name", ["", "a b", "x/y/z", "-cpu", "<script>", "a" * 64, "/gpu", "é"])
def test_what_no_resource_can_be_called_is_refused(name: str) -> None:
    limited = queue("q", capability={name: "1"})
    group = {"metadata": {"name": "g"}, "spec": {"queue": "default", "minResources": {name: "1"}}}
    for path, manifest in (("/queues/validate", limited), ("/podgroups/validate", group)):
        answer = review(path, manifest)
        assert not answer["allowed"]
        assert "name part must" in answer["status"]["message"] or name in ("x/y/z", "/gpu")
        assert name in answer["status"]["message"] or not name.isascii()


@pytest.mark.parametrize("name", ["cpu", "nvidia.com/gpu", "hugepages-2Mi", "example.com/A_b.c"])
def test_what_a_resource_may_be_called_is_taken(name: str) -> None:
    group = {"metadata": {"name": "g"}, "spec": {"queue": "default", "minResources": {name: "1"}}}
    assert review("/queues/validate", queue("q", capability={name: "2Mi"}))["allowed"]
    assert review("/podgroups/validate", group)["allowed"]


def test_equal_templates_are_checked_once_and_reported_of_each_task() -> None:
    bad = {"containers": [{"name": "C!", "image": "i"}]}
    answer = review("/jobs/validate", job(task("a"), task("b", bad), task("c", bad)))
    message = answer["status"]["message"]
    assert "spec.task[1]." in message
    assert "spec.task[2]." in message
    assert "spec.task[0]." not in message

"""Documents about a small cluster, checked against `explain` and `snapshot show`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pumice.api.quantity import amount_text
from pumice.dashboard import documents
from pumice.dashboard.questions import Respondent as Asked
from pumice.dashboard.questions import WhatIf, Why, pictured
from pumice.dashboard.sources import StaticSource
from pumice.dashboard.view import Scope, View
from pumice.diagnosis.snapshots import summarise
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "examples" / "first-cluster.yaml"


@pytest.fixture(scope="module")
def source() -> Any:
    return StaticSource(load_world([CLUSTER]), "first")


@pytest.fixture(scope="module")
def view(source: Any) -> Any:
    return View(source.feed.picture)


def test_amounts_of_nodes_are_those_of_a_summary(source: Any, view: Any) -> None:
    said = {each.resource: each for each in summarise(source.world).resources}
    reported = documents.overview(view, source.feed.cycles(), source.feed.samples(), decides=False)
    for resource in reported["resources"]:
        name, free = resource["name"], resource["total"] - resource["used"]
        factor = 1 if name in ("memory", "pods") else 1000
        assert amount_text(name, resource["total"] * factor) == said[name].total
        assert amount_text(name, free * factor) == said[name].free


def test_the_longest_waits_are_all_that_wait(source: Any, view: Any) -> None:
    reported = documents.overview(view, source.feed.cycles(), source.feed.samples(), decides=False)
    wait = {each.name for each in waiting_jobs(source.world, foresee=False)}
    starts = {
        each["job"] for each in reported["longest"] if "starts in the next cycle" in each["text"]
    }
    assert {each["job"] for each in reported["longest"]} == wait | starts
    assert starts == {"ai/train", "data/probe"}
    ages = [each["created"] for each in reported["longest"]]
    assert ages == sorted(ages)


def test_evictions_that_nobody_carried_out_are_not_counted(source: Any, view: Any) -> None:
    assert documents.overview(view, source.feed.cycles(), [], decides=False)["evictions"] is None


def test_a_queue_holds_what_its_children_hold(view: Any) -> None:
    reported = documents.queues(view)
    by_name = {queue["name"]: queue for queue in reported["queues"]}
    for name, queue in by_name.items():
        children = [each for each in reported["queues"] if each["parent"] == name]
        for i, held in enumerate(queue["allocated"]):
            assert held >= sum(each["allocated"][i] for each in children)


def test_a_cycle_names_waiting_jobs_as_they_were_named_then(source: Any, view: Any) -> None:
    record = source.feed.cycles()[-1]
    waiting = record.decisions.explanations
    assert {*waiting} <= {*record.jobs}
    renamed = replace(record, jobs=dict.fromkeys(waiting, "ai/gone"))
    left = documents.cycle(view, renamed, ())["left"]
    assert left
    assert {each["job"] for each in left} == {"ai/gone"}


def test_every_pod_of_a_job_is_listed_once_with_its_state(view: Any) -> None:
    table = documents.jobs(view)
    for at, name in enumerate(table["job"]):
        row = view.job_named(name)
        reported = documents.job(view, row, [], [])
        assert (
            reported["total"] == table["pods"][at] == len({pod["pod"] for pod in reported["pods"]})
        )
        bound = sum(pod["state"] in ("running", "starting") for pod in reported["pods"])
        assert bound == table["bound"][at]


def test_nodes_that_take_no_pods_say_why(view: Any) -> None:
    reported = documents.nodes(view)
    reasons = {reported["names"][int(at)]: why for at, why in reported["closed"].items()}
    assert reasons == {"node-d": ["taint maintenance"]}


def test_the_largest_gang_fits_and_one_pod_more_does_not(source: Any) -> None:
    """The figure is that of the scheduler: asked by whatif, without the limits of queues."""
    quiet = source.world.edited(
        lambda one: None if one["kind"] == "Pod" and not one["spec"].get("nodeName") else one
    )
    quiet = replace(quiet, jobs={})
    found = documents.fit(View(pictured(quiet)), {"cpu": "1", "memory": "1Gi"})
    assert found["pods"] > 0
    who = Asked(quiet)
    for pods, starts in ((found["pods"], True), (found["pods"] + 1, False)):
        manifest = _gang(pods)
        reported = WhatIf(manifest=manifest, conf=_PLAIN).answer(who)
        assert (reported["job"]["state"] == "now") is starts, reported["job"]["sentence"]


_PLAIN = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""


def _gang(pods: int) -> str:
    documents = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "probe-gang", "namespace": "ai"},
            "spec": {"minMember": pods, "queue": "research"},
        }
    ]
    for number in range(pods):
        requests = {"cpu": "1", "memory": "1Gi"}
        documents.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"probe-{number}",
                    "namespace": "ai",
                    "annotations": {"scheduling.k8s.io/group-name": "probe-gang"},
                },
                "spec": {
                    "containers": [
                        {"name": "main", "image": "x", "resources": {"requests": requests}}
                    ],
                },
            }
        )
    return "\n---\n".join(json.dumps(each) for each in documents)


def test_a_device_that_nodes_lost_leaves_room_for_pods_that_ask_for_none(source: Any) -> None:
    def holding(one: Any) -> Any:
        if one["kind"] != "Pod" or not one["spec"].get("nodeName"):
            return one
        held = {"name": "held", "resources": {"requests": {"example.com/card": "1"}}}
        return {**one, "spec": {**one["spec"], "containers": [*one["spec"]["containers"], held]}}

    shape = {"cpu": "1", "memory": "1Gi"}
    views = [View(pictured(world)) for world in (source.world, source.world.edited(holding))]
    first, second = (documents.fit(view, shape)["each"] for view in views)
    assert first == second


def test_a_shape_that_no_node_knows_is_refused_by_name(view: Any) -> None:
    with pytest.raises(InputError, match=r"example\.com/quantum"):
        documents.fit(view, {"example.com/quantum": "1"})


def test_who_sees_some_namespaces_sees_their_jobs_only(source: Any) -> None:
    some = View(source.feed.picture, scope=Scope(frozenset({"ai"})))
    assert {name.partition("/")[0] for name in documents.jobs(some)["job"]} == {"ai"}
    assert some.job_named("data/render") is None
    (record,) = source.feed.cycles()
    reported = documents.cycle(some, record, [])
    assert all(each["job"].startswith("ai/") for each in reported["left"])
    node = documents.node(some, 0)
    everything = documents.node(View(source.feed.picture), 0)
    assert node["hidden"] + len(node["pods"]) == len(everything["pods"])
    assert all(pod["pod"].startswith("ai/") for pod in node["pods"])


def test_a_remedy_is_offered_without_the_templates_that_it_changes(source: Any) -> None:
    reported = Why("ai/sweep", helps=True).answer(Asked(source.world))
    assert reported["remedies"]
    assert all(each.keys() == {"text", "result"} for each in reported["remedies"])

"""Absurd numbers: every verb refuses them before it works on them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.wording import nearest
from pumice.cli.main import main
from pumice.webhooks.admission_chain import Chain
from pumice.webhooks.files import Files

HUGE = 2_000_000_000
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
POD = {
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
}


def job(*replicas: int, name: str = "j") -> dict[str, Any]:
    tasks = [{"name": f"t{i}", "replicas": n, "template": POD} for i, n in enumerate(replicas)]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "queue": "default", "tasks": tasks},
    }


def flow(spec: dict[str, Any]) -> list[dict[str, Any]]:
    head = {"apiVersion": "flow.volcano.sh/v1alpha1"}
    place = {"namespace": "default"}
    template = {**head, "kind": "JobTemplate", "metadata": {"name": "t", **place}, "spec": spec}
    flows = {"flows": [{"name": "t"}]}
    return [
        template,
        {**head, "kind": "JobFlow", "metadata": {"name": "f", **place}, "spec": flows},
    ]


def cron(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": spec}},
    }


def written(folder: Path, *objects: dict[str, Any]) -> str:
    file = folder / "objects.yaml"
    file.write_text("---\n".join(f"{json.dumps(one)}\n" for one in objects))
    return str(file)


def called(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments))


READERS = {
    "run": ("run", "FILE"),
    "explain": ("explain", "-f", "FILE"),
    "explain one": ("explain", "-f", "FILE", "default/j"),
    "whatif": ("whatif", "-f", "FILE", "--add-nodes", "1"),
    "whatif job": ("whatif", "-f", "NODE", "--job", "FILE"),
    "queue order": ("queue", "order", "-f", "FILE"),
    "snapshot": ("snapshot", "show", "FILE"),
    "sim": ("sim", "--trace", "FILE"),
}


@pytest.mark.parametrize("replicas", [(HUGE,), (60_000, 40_001)], ids=["one task", "several"])
@pytest.mark.parametrize("verb", READERS)
def test_a_job_of_too_many_pods_is_refused_with_its_line(
    tmp_path: Path, verb: str, replicas: tuple[int, ...]
) -> None:
    file = written(tmp_path, NODE, job(*replicas))
    node = tmp_path / "node.yaml"
    node.write_text(json.dumps(NODE))
    names = {"FILE": file, "NODE": str(node)}
    result = called(*(names.get(part, part) for part in READERS[verb]))
    assert result.exit_code == 2
    assert (
        f"{file}:3: Job default/j: spec.tasks.replicas: "
        f"expected at most 100,000 pods of a job, got {sum(replicas)}"
    ) in result.output


@pytest.mark.parametrize("verb", ["run", "explain", "queue order", "snapshot"])
def test_jobs_that_ask_for_too_many_pods_together_are_refused(tmp_path: Path, verb: str) -> None:
    file = written(tmp_path, NODE, *(job(90_000, name=f"j{i}") for i in range(3)))
    result = called(*(file if part == "FILE" else part for part in READERS[verb]))
    assert result.exit_code == 2
    assert "expected at most 200,000 pods of all jobs" in result.output
    assert "got 270000" in result.output


@pytest.mark.parametrize("verb", ["lint", "run", "explain", "snapshot"])
def test_huge_templates_of_flows_and_cron_jobs_are_no_work(tmp_path: Path, verb: str) -> None:
    spec = job(HUGE)["spec"]
    file = written(tmp_path, NODE, *flow(spec), cron(spec))
    started = time.process_time()
    words = READERS.get(verb, ("lint", "FILE"))
    result = called(*(file if part == "FILE" else part for part in words))
    assert result.exit_code in (0, 1), result.output
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "spec", [{"minMember": 2**31 - 1}, {"minTaskMember": {"a": 2**31 - 1, "b": 2**31 - 1}}]
)
def test_a_huge_gang_waits_like_any_other(tmp_path: Path, spec: dict[str, Any]) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"queue": "default", **spec},
    }
    file = written(tmp_path, NODE, group)
    assert "default/g" in called("explain", "-f", file).output
    assert called("run", file).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("whatif", "-f", "FILE", "--add-nodes", str(HUGE)), "at most 10,000 new nodes"),
        (("whatif", "-f", "FILE", "--add-nodes", "9" * 5000), "at most 10,000 new nodes"),
        (
            ("whatif", "-f", "FILE", "--set", f"job/default/j.spec.tasks.0.replicas={HUGE}"),
            "at most 100000 replicas",
        ),
        (("sweep", "--trace", "FILE", "--seeds", f"0-{HUGE}"), "at most 100,000 seeds"),
        (("sweep", "--trace", "FILE", "--seeds", "9" * 5000), "numbers such as 7"),
        (("up", "--nodes", str(HUGE)), "0<=x<=10000"),
    ],
)
def test_huge_numbers_of_a_command_line_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], wanted: str
) -> None:
    file = written(tmp_path, NODE, job(2))
    result = called(*(file if part == "FILE" else part for part in arguments))
    assert result.exit_code == 2
    assert wanted in result.output


def test_an_update_compares_keyed_lists_in_one_pass() -> None:
    old = job(1)
    stamps = {"resourceVersion": "1", "uid": "0", "creationTimestamp": "2026-01-01T00:00:00Z"}
    old["metadata"] |= stamps
    old["spec"]["tasks"] = [
        {"name": f"t{i}", "replicas": 1, "minAvailable": 1, "template": POD} for i in range(3000)
    ]
    new = json.loads(json.dumps(old))
    for task in new["spec"]["tasks"]:
        task["replicas"] = 2
    started = time.process_time()
    Chain(Files(())).judge("UPDATE", new, old)
    assert time.process_time() - started < 8  # comparing each with each takes minutes


def test_no_near_name_is_sought_for_a_very_long_one() -> None:
    began = time.process_time()
    assert nearest("a" * 5_000_000, ["allocate", "backfill"]) is None
    assert nearest("alocate", ["allocate", "backfill"]) == "allocate"
    assert time.process_time() - began < 1.0


def test_of_thousands_of_faults_the_first_are_printed(tmp_path: Path) -> None:
    tasks = [{"name": "t", "replicas": -1, "template": {"spec": {"containers": []}}}] * 3000
    manifest = {**job(), "spec": {"minAvailable": 1, "queue": "default", "tasks": tasks}}
    file = tmp_path / "objects.json"
    file.write_text(json.dumps(manifest, indent=1))
    began = time.monotonic()
    result = CliRunner().invoke(main, ["lint", str(file)])
    assert time.monotonic() - began < 60  # it took minutes: each line was looked for in all of it
    assert result.exit_code == 1
    *shown, more, _ = result.stdout.splitlines()
    assert len(shown) == 200
    assert len({line.split(":")[1] for line in shown[:50]}) == 50
    assert more.startswith("… and ")


@pytest.mark.parametrize("words", [("config", "check"), ("config", "check", "--strict")])
def test_of_thousands_of_warnings_the_first_are_printed(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    arguments = {f"binpack.x{i}": -i for i in range(2000)}
    plugins = [{"name": "binpack", "arguments": arguments}]
    file = tmp_path / "conf.yaml"
    file.write_text(json.dumps({"actions": "allocate", "tiers": [{"plugins": plugins}]}))
    result = CliRunner().invoke(main, [*words, str(file)])
    assert result.exit_code == len(words) - 2
    assert len(result.stderr.splitlines()) == 201
    assert result.stderr.endswith("… and 1,800 more\n")


@pytest.mark.parametrize(
    "more",
    [
        {"at": [{"cycle": 10**12, "cordon": ["n1"]}]},
        {"at": [{"time": "99999h", "cordon": ["n1"]}]},
        {"eventually": [{"starts": ["default/*"], "within": 10**12}]},
    ],
)
@pytest.mark.parametrize("verb", ["run", "test"])
def test_cycles_without_number_are_bounded(tmp_path: Path, verb: str, more: Any) -> None:
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]}
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps({"objects": [NODE], "conf": conf, **more}))
    began = time.monotonic()
    result = CliRunner().invoke(main, [verb, str(file)])
    assert time.monotonic() - began < 10
    assert result.exit_code in (1, 2)
    assert "at most 100,000 cycles until the last step or goal" in result.output


def test_thousands_of_pools_of_nodes(tmp_path: Path) -> None:
    conf = {"actions": "allocate", "tiers": []}
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps({"nodes": [{"count": 1}] * 20_000, "conf": conf}))
    began = time.monotonic()
    assert CliRunner().invoke(main, ["run", str(file)]).exit_code == 0
    assert time.monotonic() - began < 30  # each looked for a free name from the first on

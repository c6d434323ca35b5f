"""Run times that were learned are used wherever it is asked how long a job runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import pumice
from pumice.api.conf import parse_conf
from pumice.sim.engine import Engine
from pumice.sim.inputs import read_workload
from pumice.testing.builders import node, pod, pod_group, queue

NOW = "2026-01-15T10:00:00Z"
LEARNED = {"default|q|train-#|1xcpu=1000,pods=1": {"last": [600.0] * 5, "n": 5, "late": 0}}


def conf(learn: bool) -> str:
    arguments = json.dumps({"reservation.learn": learn})
    return (
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n'
        f"  - {{name: reservation, arguments: {arguments}}}\n  - name: gang\n  - name: predicates\n"
    )


def objects(running: bool) -> list[Any]:
    """Make a node with one CPU, and two jobs that state no run time."""
    state = {"state": json.dumps(LEARNED)}
    meta = {"name": "pumice-run-times", "namespace": "volcano-system"}
    made = [queue("q"), node("n1", cpu=1)]
    made.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": state})
    for at in (6, 7):
        runs = running and at == 6
        phase = "Running" if runs else "Inqueue"
        made.append(pod_group(f"train-{at}", queue="q", min_member=1, phase=phase))
        one = pod(f"train-{at}-0", group=f"train-{at}", cpu=1, node="n1" if runs else None)
        one["status"] |= {"startTime": "2026-01-15T09:55:00Z"} if runs else {}
        made.append(one)
    return made


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    def load(learn: bool) -> Any:
        content = {"objects": objects(True), "conf": conf(learn), "now": NOW}
        (file := tmp_path / "cluster.json").write_text(json.dumps(content), encoding="utf-8")
        return pumice.load(file)

    return load


@pytest.mark.parametrize(("learn", "in_s"), [(True, 300), (False, None)])
def test_forecasts_and_reservations_go_by_what_was_learned(
    cluster: Any, learn: bool, in_s: float | None
) -> None:
    found = pumice.explain(cluster(learn), "train-7", remedies=False).to_dict()
    assert found["forecast"]["in_s"] == in_s
    assert (found["reservation"] and found["reservation"]["in_s"]) == in_s


def test_what_if_goes_by_what_was_learned(cluster: Any) -> None:
    assert pumice.whatif(cluster(True), "train-7").to_dict()["job"]["in_s"] == 300


@pytest.mark.parametrize(("learn", "seconds"), [(True, 600), (False, 60)])
def test_simulated_jobs_that_state_nothing_run_as_long_as_was_learned(
    tmp_path: Path, learn: bool, seconds: float
) -> None:
    (file := tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(objects(False)), "utf-8")
    jobs = read_workload(file)
    engine = Engine(jobs, jobs.objects, parse_conf(conf(learn)))
    engine.run()
    assert [run.started for run in engine.runs] == [0, seconds]

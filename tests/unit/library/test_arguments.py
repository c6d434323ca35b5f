"""Arguments of a wrong kind are named, with what was found and what was wanted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pumice
from pumice.errors import InputError

CALLS: Any = pumice
"""The library as a program without types sees it."""
FIRST = Path(__file__).parents[3] / "examples" / "first-cluster.yaml"


@pytest.fixture(scope="module")
def cluster() -> pumice.Cluster:
    return pumice.load(FIRST)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: CALLS.explain(str(FIRST), "ai/sweep"), "cluster: wanted a cluster, the result"),
        (lambda c: CALLS.explain(c, None), "job: wanted the name of a job, found null"),
        (lambda c: CALLS.whatif(str(FIRST), drain="n"), "cluster: wanted a cluster, the result"),
        (lambda c: CALLS.whatif(c, 3), "job: wanted the name of a job, or a file with a new one"),
        (lambda c: CALLS.whatif(c, drain=[3]), "drain: wanted the name of a node, or several"),
        (lambda c: CALLS.whatif(c, drain=3), "drain: wanted the name of a node, or several"),
        (lambda c: CALLS.whatif(c, settings=["a.b=3"]), "settings: wanted values by field"),
        (lambda c: CALLS.whatif(c, conf=3), "conf: wanted a configuration: a file"),
        (lambda c: CALLS.load(3), "sources: wanted a file, a folder or a text"),
        (lambda c: CALLS.load(FIRST, conf=3), "conf: wanted a configuration: a file"),
        (lambda c: CALLS.load(FIRST, now=3), "now: wanted an RFC 3339 time such as .*, found 3"),
        (lambda c: CALLS.load(FIRST, plugins=[3]), "plugins: wanted a class that .*, found 3"),
        (lambda c: CALLS.load(FIRST, plugins=3), "plugins: wanted a list of plugins.*, found 3"),
        (lambda c: c.objects(3), "kind: wanted a kind of object such as .*, found 3"),
        (lambda c: c.objects("Quueue"), r"kind: .*, found 'Quueue' \(did you mean 'Queue'\?\)"),
        (
            lambda c: CALLS.whatif(c, settings={"queue/batch.weight": object}),
            "settings: wanted a text, a number, a list or a mapping, found <class 'object'>",
        ),
    ],
)
def test_of_questions_about_a_cluster(
    cluster: pumice.Cluster, call: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        call(cluster)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: CALLS.compare(w, "x.conf"), "confs: wanted configurations by name, or a list"),
        (lambda w: CALLS.compare(w, {}), "confs: wanted at least one configuration, found {}"),
        (lambda w: CALLS.compare(w, []), "confs: wanted at least one configuration"),
        (lambda w: CALLS.compare(w, {"a": 3}), "confs: wanted a configuration: a file"),
        (lambda w: CALLS.simulate(w, conf=3), "conf: wanted a configuration: a file"),
        (lambda w: CALLS.simulate(w, seed="x"), "seed: wanted a whole number from 0, found 'x'"),
        (lambda w: CALLS.simulate(w, 3), "nodes: wanted a file, or the result of pumice.nodes"),
        (lambda w: CALLS.simulate(w, [3]), "nodes: wanted a file, or the result of pumice.nodes"),
        (lambda w: CALLS.workload(3), "jobs: wanted rows such as .*, found 3"),
        (lambda w: CALLS.workload("x"), "jobs: wanted rows such as .*, found 'x'"),
        (lambda w: CALLS.simulate(w, seed=True), "seed: wanted a whole number from 0, found True"),
        (lambda w: CALLS.simulate(w, late_pods="x"), "late_pods: wanted True or False, found 'x'"),
        (lambda w: CALLS.simulate(w, speed=True), "speed: wanted a number above 0, found True"),
        (lambda w: CALLS.simulate(w, limit=True), "limit: wanted a whole number from 1, found Tr"),
        (lambda w: CALLS.simulate(w, plugins=[int]), "plugins: wanted a class .*<class 'int'>"),
        (lambda w: CALLS.simulate(w, plugins="a.py"), "plugins: wanted a list of plugins"),
        (lambda w: CALLS.nodes(2, cpu=None), "cpu: wanted a quantity such as .*, found null"),
        (lambda w: CALLS.nodes(2, cpu=[1]), r"cpu: wanted a quantity such as .*, found \[1\]"),
        (lambda w: CALLS.simulate(w).save(3), "folder: wanted the name of a folder, found 3"),
        (lambda w: CALLS.simulate(w).jobs.save("j.xyz"), "path: wanted .* found 'j.xyz'"),
        (lambda w: CALLS.simulate(w).jobs.save(3), "path: wanted the name of a file that ends in"),
        (lambda w: CALLS.simulate(w).plot.shares("x"), "resource: wanted one of cpu, .*found 'x'"),
        (lambda w: CALLS.simulate(w).plot.gantt("x"), "most: wanted a whole number from 1"),
    ],
)
def test_of_simulations(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        call(pumice.workload([{"arrival": 0, "run": 1}]))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"arrival": True}, "arrival: wanted a number from 0, found True"),
        ({"pods": True}, "pods: wanted a whole number from 1, found True"),
        ({"cpu": None}, "cpu: wanted a quantity such as .*, found null"),
        ({"cpu": True}, "cpu: wanted a quantity such as .*, found True"),
        ({"memory": {}}, "memory: wanted a quantity such as .*, found {}"),
        ({"request": {"x/y": None}}, "request.x/y: wanted a quantity such as .*, found null"),
        ({"queue": ["a"]}, r"queue: wanted a text, found \['a'\]"),
        ({"user": False}, "user: wanted a text, found False"),
    ],
)
def test_of_rows(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"^jobs\[0\]: {message}"):
        pumice.workload([{"arrival": 0, "run": 1, **cell}])


def test_a_plugin_may_be_named_by_a_path(tmp_path: Path) -> None:
    file = tmp_path / "policy.py"
    file.write_text("from pumice.plugin import Plugin\nclass One(Plugin, name='one'): ...\n")
    assert list(CALLS.load(FIRST, plugins=[file]).state.plugins) == ["one"]


def test_the_start_of_a_run_is_a_time_wherever_it_is_told() -> None:
    jobs = pumice.workload([{"arrival": 0, "run": 1}])
    for start in ("2026-01-15T10:00:19Z", 1768471219):
        found = pumice.compare(jobs, [None], start=start)  # type: ignore[list-item]
        assert found.summary["options"]["start"] == "2026-01-15T10:00:19Z"
    assert pumice.compare(jobs, [None]).summary["options"]["start"] is None  # type: ignore[list-item]

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
        (
            lambda c: CALLS.explain(str(FIRST), "ai/sweep"),
            "cluster: expected a cluster, the result",
        ),
        (lambda c: CALLS.explain(c, None), "job: expected the name of a job, got null"),
        (lambda c: CALLS.whatif(str(FIRST), drain="n"), "cluster: expected a cluster, the result"),
        (lambda c: CALLS.whatif(c, 3), "job: expected the name of a job, or a file with a new one"),
        (lambda c: CALLS.whatif(c, drain=[3]), "drain: expected the name of a node, or several"),
        (lambda c: CALLS.whatif(c, drain=3), "drain: expected the name of a node, or several"),
        (lambda c: CALLS.whatif(c, settings=["a.b=3"]), "settings: expected values by field"),
        (lambda c: CALLS.whatif(c, conf=3), "conf: expected a configuration: a file"),
        (lambda c: CALLS.load(3), "sources: expected a file, a folder or a text"),
        (lambda c: CALLS.load(FIRST, conf=3), "conf: expected a configuration: a file"),
        (lambda c: CALLS.load(FIRST, now=3), "now: expected an RFC 3339 time such as .*, got 3"),
        (lambda c: CALLS.load(FIRST, plugins=[3]), "plugins: expected a class that .*, got 3"),
        (lambda c: CALLS.load(FIRST, plugins=3), "plugins: expected a list of plugins.*, got 3"),
        (lambda c: c.objects(3), "kind: expected a kind of object such as .*, got 3"),
        (
            lambda c: c.objects("Quueue"),
            r"kind: unknown kind of object 'Quueue'; did you mean 'Queue'\?",
        ),
        (
            lambda c: CALLS.whatif(c, settings={"queue/batch.weight": object}),
            "settings: expected a text, a number, a list or a mapping, got <class 'object'>",
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
        (lambda w: CALLS.compare(w, "x.conf"), "confs: expected configurations by name, or a list"),
        (lambda w: CALLS.compare(w, {}), "confs: expected at least one configuration, got {}"),
        (lambda w: CALLS.compare(w, []), "confs: expected at least one configuration"),
        (lambda w: CALLS.compare(w, {"a": 3}), "confs: expected a configuration: a file"),
        (lambda w: CALLS.simulate(w, conf=3), "conf: expected a configuration: a file"),
        (lambda w: CALLS.simulate(w, seed="x"), "seed: expected a whole number from 0, got 'x'"),
        (lambda w: CALLS.simulate(w, 3), "nodes: expected a file, or the result of pumice.nodes"),
        (lambda w: CALLS.simulate(w, [3]), "nodes: expected a file, or the result of pumice.nodes"),
        (lambda w: CALLS.workload(3), "jobs: expected rows such as .*, got 3"),
        (lambda w: CALLS.workload("x"), "jobs: .* is given to pumice.simulate .*, got 'x'"),
        (lambda w: CALLS.simulate(w, seed=True), "seed: expected a whole number from 0, got True"),
        (lambda w: CALLS.simulate(w, late_pods="x"), "late_pods: expected True or False, got 'x'"),
        (lambda w: CALLS.simulate(w, speed=True), "speed: expected a number above 0, got True"),
        (lambda w: CALLS.simulate(w, limit=True), "limit: expected a whole number from 1, got Tr"),
        (lambda w: CALLS.simulate(w, plugins=[int]), "plugins: expected a class .*<class 'int'>"),
        (lambda w: CALLS.simulate(w, plugins="a.py"), "plugins: expected a list of plugins"),
        (lambda w: CALLS.nodes(2, cpu=None), "cpu: expected a quantity such as .*, got null"),
        (lambda w: CALLS.nodes(2, cpu=[1]), r"cpu: expected a quantity such as .*, got \[1\]"),
        (lambda w: CALLS.simulate(w).save(3), "folder: expected the name of a folder, got 3"),
        (lambda w: CALLS.simulate(w).jobs.save("j.xyz"), "path: expected .* got 'j.xyz'"),
        (
            lambda w: CALLS.simulate(w).jobs.save(3),
            "path: expected the name of a file that ends in",
        ),
        (
            lambda w: CALLS.simulate(w).plot.shares("x"),
            "resource: expected one of cpu, .*got 'x'",
        ),
        (lambda w: CALLS.simulate(w).plot.gantt("x"), "most: expected a whole number from 1"),
    ],
)
def test_of_simulations(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        call(pumice.workload([{"arrival": 0, "run": 1}]))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"arrival": True}, "arrival: expected a number from 0, got True"),
        ({"pods": True}, "pods: expected a whole number from 1, got True"),
        ({"cpu": None}, "cpu: expected a quantity such as .*, got null"),
        ({"cpu": True}, "cpu: expected a quantity such as .*, got True"),
        ({"memory": {}}, "memory: expected a quantity such as .*, got {}"),
        ({"request": {"x/y": None}}, "request.x/y: expected a quantity such as .*, got null"),
        ({"queue": ["a"]}, r"queue: expected a text, got \['a'\]"),
        ({"user": False}, "user: expected a text, got False"),
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

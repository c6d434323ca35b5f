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
    ],
)
def test_of_simulations(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        call(pumice.workload([{"arrival": 0, "run": 1}]))

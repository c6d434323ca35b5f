"""Jobs that run and have pods that wait."""

from typing import Any

from pumice.diagnosis.explain import explain_job
from pumice.testing import node, queue
from tests.present import present

WORLD = [queue("default"), node("n1", cpu=4)]


def test_a_job_that_runs_starts_more_pods(world: Any, job: Any) -> None:
    mine = job("j", cpu=1, pods=2, least=1, nodes=["n1"])
    other = job("old", cpu=3, nodes=["n1"], seconds=60)
    found = explain_job(world([*WORLD, *mine]), "j")
    assert found.text == "it starts more pods now: 1 pod on 1 node"
    found = explain_job(world([*WORLD, *mine, *other]), "j")
    assert present(found.forecast)["text"].startswith("it starts more pods in 1 min")
    endless = job("old", cpu=3, nodes=["n1"])
    found = explain_job(world([*WORLD, *mine, *endless]), "j")
    assert present(found.forecast)["text"].startswith(
        "it does not start more pods unless something changes; 2 running"
    )

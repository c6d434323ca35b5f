"""Operators of other projects: the examples of their pages wait as gangs, and then start whole."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.testing.builders import queue
from tests.e2e_kube.controlplane.build import is_program
from tests.e2e_kube.kubectl import documents
from tests.e2e_kube.operators import OPERATORS, running
from tests.e2e_kube.waiting import stays, until

pytestmark = pytest.mark.usefixtures("controllers", "webhooks", "default_scheduler")
PAGES = Path(__file__).parents[2] / "docs" / "integrations"


@dataclass(frozen=True)
class Gang:
    """What an example of a page becomes: pods that need so many CPUs, in one group."""

    operator: str
    group: str
    """How its name begins."""
    pods: int
    cpu: int
    number: int = 0
    """Which example of the page, from 0 on."""


GANGS = (
    Gang("jobset", "pair", 2, 4),
    Gang("mpi-operator", "pi", 3, 5),
    Gang("kuberay", "ray-demo-pg", 3, 6),
    Gang("kuberay", "ray-train-pg", 3, 6, number=1),
    Gang("leaderworkerset", "llm-0", 2, 4),
    Gang("training-operator", "mnist", 3, 6),
    Gang("trainer", "tune", 2, 4),
    Gang("argo-workflows", "podgroup-", 1, 2),
)


@pytest.fixture(params=GANGS, ids=lambda gang: f"{gang.operator}-{gang.group}")
def gang(request: Any, plane: Any, kubectl: Any) -> Iterator[Gang]:
    """Run an operator, and the controller of Jobs."""
    name = request.param.operator
    for each in (name, *OPERATORS[name].needs):
        if not is_program(OPERATORS[each].program):
            pytest.skip(f"not built: python -m tests.e2e_kube.operators {each}")
    with (
        plane.controller_manager("job-controller", "statefulset-controller"),
        running(name, plane, kubectl),
    ):
        yield request.param


def example(gang: Gang) -> list[dict[str, Any]]:
    """Return the objects of an example of a page."""
    page = (PAGES / f"{gang.operator}.md").read_text(encoding="utf-8")
    return [*yaml.safe_load_all(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[gang.number])]


@pytest.mark.timeout(300)
def test_the_example_of_a_page_starts_whole_or_not_at_all(gang: Gang, space: Any) -> None:
    space.kubectl.create(queue("research"))
    space.nodes(1, prefix="small", cpu=gang.cpu - 1)
    space.nodes(1, prefix="rest", cpu=1)  # some operators make no pods before the group is admitted
    space.kubectl.create(*example(gang))
    until("all pods there", space.pods, lambda pods: len(pods) == gang.pods, timeout_s=90)
    (group,) = until("one group", space.groups)
    assert group["metadata"]["name"].startswith(gang.group)
    assert group["spec"]["minMember"] == gang.pods
    assert group["spec"]["queue"] == "research"
    stays("without a pod that is placed", space.placed, lambda placed: not placed, for_s=3)
    space.nodes(1, prefix="large", cpu=gang.cpu)
    until("all placed", space.placed, lambda placed: len(placed) == gang.pods)
    until("all running", space.running, lambda count: count == gang.pods)
    # else the operator goes on making pods while the space is cleared
    gone = documents(example(gang))
    space.kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=gone)

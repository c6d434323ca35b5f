"""Objects in the order of an embedded cluster, alone and after those of another world."""

from typing import Any

import pytest

from pumice.api.annotations import EXPECTED, RUN_SECONDS
from pumice.diagnosis.fixtures import Fixtures
from pumice.testing import node, pod, queue

FIRST = [node("n"), pod("b", node="n", phase="Running"), queue("q")]
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1,
}
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default", "annotations": {RUN_SECONDS: "5"}},
}
ENDED = pod("a", node="n", phase="Succeeded")
EXPECTED_POD = pod("x", annotations={EXPECTED: "true"})
MORE: dict[str, list[Any]] = {
    "nothing": [],
    "at the end": [ENDED, GROUP, EXPECTED_POD],
    "further up": [GROUP, CLASS],
    "instead of one": [pod("b", node="m"), GROUP],
    "twice": [GROUP, node("m"), GROUP],
}


def content(arranged: Fixtures) -> Any:
    return arranged.stored, arranged.linkable, arranged.timed, arranged.leaving, len(arranged)


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
@pytest.mark.parametrize("started", [False, True])
def test_more_objects_are_arranged_as_if_all_were_given_at_once(more: Any, started: bool) -> None:
    first = Fixtures(FIRST, started=started)
    before = content(Fixtures(FIRST, started=started))
    alone = Fixtures([*FIRST, *more], started=started)
    assert content(first.followed_by(more)) == content(alone)
    assert content(first) == before


def test_what_is_noted_of_objects() -> None:
    arranged = Fixtures([*FIRST, *MORE["at the end"], CLASS])
    assert [one["metadata"]["name"] for one in arranged.stored] == ["high", "n", "b", "q", "a", "g"]
    assert arranged.linkable == [5]
    assert arranged.timed == [GROUP]
    assert arranged.leaving == [("default", "a")]


def test_only_the_very_same_objects_are_a_beginning() -> None:
    arranged = Fixtures(FIRST)
    assert arranged.begins([*FIRST, GROUP])
    assert not arranged.begins(FIRST[:2])
    assert not arranged.begins([dict(FIRST[0]), *FIRST[1:]])


def test_running_pods_get_a_start_time_only_if_asked_for() -> None:
    running = {**FIRST[1], "metadata": {**FIRST[1]["metadata"], "creationTimestamp": "t"}}
    [stored] = Fixtures([running], started=True).stored
    assert stored["status"]["startTime"] == "t"
    assert Fixtures([running]).stored == [running]

"""What is assumed of pods, groups and volumes, until the cluster says otherwise."""

from typing import Any

import pytest

from pumice.api.decisions import ClaimChoice
from pumice.api.groups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.cache.assume import Assumptions
from pumice.testing import pod, pod_group
from tests.present import read_as

KEY = "default/p"


def one(uid: str = "u", node: str | None = None, **meta: Any) -> Pod:
    manifest = pod("p", cpu=1, node=node, phase=meta.pop("phase", None), annotations={"a": "1"})
    manifest["metadata"] |= {"uid": uid, **meta}
    return read_as(Pod, manifest)


def shown(thought: Assumptions, given: Pod) -> tuple[str, bool, bool]:
    """Return the node of a pod as assumed, whether it leaves, and whether it is held back."""
    found = thought.show_pod(KEY, given)
    held = bool(found.spec.scheduling_gates)
    return found.spec.node_name, bool(found.metadata.deletion_timestamp), held


@pytest.fixture
def thought() -> Assumptions:
    return Assumptions()


@pytest.mark.parametrize(
    ("news", "left", "ended"),
    [
        ({}, ("n", True, False), False),
        ({"node": "m"}, ("m", True, False), True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, ("n", True, False), True),
        ({"phase": "Succeeded"}, ("n", False, False), True),
        ({"phase": "Failed"}, ("n", False, False), True),
        ({"uid": "other"}, ("", False, False), True),
        ({"node": "m", "phase": "Failed"}, ("m", False, False), True),
    ],
)
def test_what_the_cluster_reports_ends_what_it_confirms(
    thought: Assumptions, news: Any, left: Any, ended: bool
) -> None:
    thought.bound(KEY, one(), "n", {})
    thought.evicted(KEY, one())
    thought.held(KEY, one())
    thought.take_ended()
    assert shown(thought, one(**news)) == left
    assert bool(thought.take_ended()) is ended
    if ended and left[0] != "n":
        assert not thought.waits_for(KEY, "u", "bound")


def group(phase: str = "Pending", uid: str = "u", **marks: str) -> PodGroup:
    manifest = pod_group("g", phase=phase, annotations={"a": "1", **marks})
    manifest["metadata"]["uid"] = uid
    return read_as(PodGroup, manifest)


RUNNING = PodGroupStatus(phase="Running")


@pytest.mark.parametrize(
    ("found", "phase", "marks"),
    [
        (group(), "Running", {"a": "1", "b": "2"}),
        (group("Running"), "Running", {"a": "1", "b": "2"}),
        (group(b="2"), "Running", {"a": "1", "b": "2"}),
        (group(uid="v"), "Pending", {"a": "1"}),
        (group("Running", b="2"), "Running", {"a": "1", "b": "2"}),
    ],
)
def test_a_group_has_its_assumed_status_until_all_of_it_is_confirmed(
    thought: Assumptions, found: PodGroup, phase: str, marks: Any
) -> None:
    thought.stated("default/g", group(), RUNNING, {"b": "2"})
    seen = thought.show_group("default/g", found)
    assert (seen.status.phase, seen.metadata.annotations) == (phase, marks)
    is_over = found == group("Running", b="2") or found.metadata.uid == "v"
    assert thought.forget_group("default/g") is not is_over


TAKES, MADE = ClaimChoice("ns/c", "v", "n"), ClaimChoice("ns/c", "", "n")


def volume(**owner: str) -> PersistentVolume:
    spec = {"claimRef": owner} if owner else {}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}
    return read_as(PersistentVolume, {**manifest, "spec": spec})


@pytest.mark.parametrize(
    ("given", "owner"),
    [
        ({}, "u"),
        ({"name": "c", "namespace": "ns"}, "u"),
        ({"name": "d", "namespace": "ns", "uid": "w"}, "w"),
    ],
)
def test_a_volume_belongs_to_its_claim_unless_the_cluster_gave_it_away(
    thought: Assumptions, given: Any, owner: str
) -> None:
    thought.chosen(TAKES, "u")
    found = thought.show_volume("v", volume(**given)).spec.claim_ref
    assert found is not None
    assert found.uid == owner
    if owner == "u":
        assert (found.namespace, found.name) == ("ns", "c")
    thought.forget_choice(TAKES)
    assert thought.show_volume("v", volume(**given)) == volume(**given)


def claim(uid: str = "u", **marks: str) -> PersistentVolumeClaim:
    meta = {"name": "c", "namespace": "ns", "uid": uid, "annotations": marks}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    return read_as(PersistentVolumeClaim, manifest)


SELECTED = "volume.kubernetes.io/selected-node"


@pytest.mark.parametrize(
    ("given", "node"),
    [(claim(), "n"), (claim("v"), None), (claim(**{SELECTED: "m"}), "m"), (claim(a="b"), "n")],
)
def test_a_node_is_selected_for_a_claim_that_has_none(
    thought: Assumptions, given: PersistentVolumeClaim, node: str | None
) -> None:
    assert thought.show_claim("ns/c", given) is given
    thought.chosen(MADE, "u")
    assert thought.show_claim("ns/c", given).selected_node == node
    assert thought.show_volume("", volume()).spec.claim_ref is None
    thought.forget_choice(MADE)
    assert thought.show_claim("ns/c", given) is given

"""Objects of another cluster."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import NamespaceTerminatingError
from pumice.testing import node, pod, pod_group, queue

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "owner", "controller": True}


def bare(manifest: Any, **metadata: Any) -> Any:
    """Return an object without the stamps of a cluster; its uid, if it has one, is its own."""
    name, space = manifest["metadata"]["name"], metadata.get("namespace")
    if "uid" in metadata:
        metadata["uid"] = f"{manifest['kind']}-{space}-{name}"
    return {**manifest, "metadata": {"name": name, **metadata}}


MADE = st.lists(
    st.builds(
        lambda make, name, space, metadata: bare(make(name), **space, **metadata),
        st.sampled_from([node, pod, pod_group, queue]),
        st.sampled_from("abc"),
        st.sampled_from([{"namespace": "default"}, {"namespace": "other"}]),
        st.sampled_from([{}, {"uid": ""}, {"creationTimestamp": ""}, {"ownerReferences": [OWNER]}]),
    ),
    max_size=12,
)


def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(VirtualClock(1000.0), record_events=False)


def state(one: EmbeddedCluster) -> Any:
    kinds = [kind.name for kind in one.kinds]
    stored = {kind: one.list(kind)[0] for kind in kinds}
    news = {kind: list(one.watch(kind, since="1")) for kind in kinds}
    return stored, news, one.version, dict(one.tables.latest)


@given(manifests=MADE)
def test_objects_loaded_one_by_one_or_together_are_the_same(manifests: Any) -> None:
    together, one_by_one = cluster(), cluster()
    together.restore(manifests)
    for manifest in manifests:
        one_by_one.restore([manifest])
    assert state(together) == state(one_by_one)
    made = [each.create(bare(pod("new"))) for each in (together, one_by_one)]
    assert made[0] == made[1]


def test_owners_without_a_uid_do_not_count() -> None:
    nobody = {key: value for key, value in OWNER.items() if key != "uid"}
    one = cluster()
    one.restore([bare(pod("p"), ownerReferences=[nobody, OWNER])])
    assert one.get("Pod", "default", "p")["metadata"]["ownerReferences"] == [OWNER]


def test_new_objects_do_not_get_the_uid_of_another() -> None:
    first = cluster()
    next_uid = first.create(bare(pod("a")))["metadata"]["uid"]
    last = f"{int(next_uid[-12:], 16) + 2:012x}"
    other = bare(pod("b"))
    other["metadata"]["uid"] = next_uid[:-12] + last  # as an equal cluster has given it before
    first.restore([other])
    assert first.create(bare(pod("c")))["metadata"]["uid"] != other["metadata"]["uid"]
    for name in "abc":
        first.delete("Pod", "default", name, grace_s=0)
    assert not first.list("Pod")[0]


def test_nothing_is_loaded_into_a_namespace_that_is_being_deleted() -> None:
    space = {"name": "gone", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    one = cluster()
    one.restore([{"apiVersion": "v1", "kind": "Namespace", "metadata": space}])
    with pytest.raises(NamespaceTerminatingError, match="in namespace gone because it is being"):
        one.restore([pod("a"), pod("b", namespace="gone")])

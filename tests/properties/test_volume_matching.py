"""Volumes matched as columns: the same pick as going through them one by one on each node."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.api.objects import from_manifest
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.cache.ingest import Ingest
from pumice.core.labels import node_labels, selects, selects_node
from pumice.core.snapshot import Snapshot
from pumice.plugins.predicates.free_volumes import FreeVolumes, Reach
from pumice.testing import node

ZONES = ("x", "y")
NODES = [("a", "x"), ("b", "x"), ("c", "y"), ("d", "")]


def selector_terms() -> Any:
    hosts = st.lists(st.sampled_from([name for name, _ in NODES]), min_size=1, max_size=2)
    by_host = hosts.map(
        lambda values: {"key": "kubernetes.io/hostname", "operator": "In", "values": values}
    )
    by_zone = st.sampled_from(ZONES).map(
        lambda zone: {"key": "zone", "operator": "NotIn", "values": [zone]}
    )
    has_zone = st.just({"key": "zone", "operator": "Exists"})
    named = st.sampled_from(NODES).map(
        lambda one: {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [one[0]]}]
        }
    )
    labelled = st.lists(by_host | by_zone | has_zone, max_size=2).map(
        lambda terms: {"matchExpressions": terms}
    )
    return st.none() | st.lists(labelled | named, min_size=1, max_size=2)


def volumes() -> Any:
    one = st.fixed_dictionaries(
        {
            "size": st.integers(1, 4),
            "class": st.sampled_from(["", "p"]),
            "modes": st.sampled_from([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]]),
            "mode": st.sampled_from([None, "Filesystem", "Block"]),
            "phase": st.sampled_from(["Available"] * 4 + ["Released", ""]),
            "owner": st.sampled_from([None] * 6 + ["c0", "c1", "x"]),
            "uid": st.sampled_from(["", "", "c0", "c1"]),
            "label": st.booleans(),
            "deleted": st.sampled_from([False] * 5 + [True]),
            "terms": selector_terms(),
        }
    )
    return st.lists(one, max_size=7)


def claims() -> Any:
    one = st.fixed_dictionaries(
        {
            "size": st.integers(1, 4),
            "class": st.sampled_from(["", "p"]),
            "access": st.sampled_from(["ReadWriteOnce", "ReadWriteMany"]),
            "mode": st.sampled_from([None, "Block"]),
            "selector": st.sampled_from([None, None, {"matchLabels": {"l": "1"}}]),
        }
    )
    return st.lists(one, min_size=1, max_size=3)


def read_volume(number: int, given: Any) -> Any:
    metadata: Any = {"name": f"v{number}", "labels": {"l": "1"} if given["label"] else {}}
    if given["deleted"]:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Any = {
        "capacity": {"storage": given["size"]},
        "accessModes": given["modes"],
        "storageClassName": given["class"],
        "volumeMode": given["mode"],
    }
    if given["owner"]:
        spec["claimRef"] = {"namespace": "n", "name": given["owner"], "uid": given["uid"]}
    if given["terms"] is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": given["terms"]}}
    status = {"phase": given["phase"]}
    head = {"apiVersion": "v1", "kind": "PersistentVolume"}
    return from_manifest({**head, "metadata": metadata, "spec": spec, "status": status})


def read_claim(number: int, given: Any) -> Any:
    spec = {
        "resources": {"requests": {"storage": given["size"]}},
        "accessModes": [given["access"]],
        "storageClassName": given["class"],
        "volumeMode": given["mode"],
        "selector": given["selector"],
    }
    metadata = {"name": f"c{number}", "namespace": "n", "uid": f"c{number}"}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return from_manifest({**head, "metadata": metadata, "spec": spec})


def pick_one(
    claim: PersistentVolumeClaim, there: list[PersistentVolume], place: Any, gone: set[str]
) -> str:
    """Go through all volumes for one claim on one node."""
    name, labels = place
    best: PersistentVolume | None = None
    for volume in sorted(there, key=lambda each: (each.size, each.metadata.name)):
        affinity = volume.spec.node_affinity
        required = None if affinity is None else affinity.required
        reached = required is None or selects_node(required, name, labels)
        alike = (volume.class_name, volume.sort) == (claim.class_name, claim.sort)
        if not alike or volume.size < claim.size or volume.metadata.deletion_timestamp:
            continue
        if volume.is_for(claim):
            return volume.metadata.name if reached else ""
        wanted = claim.spec.selector
        labelled = wanted is None or selects(wanted, volume.metadata.labels)
        modes = set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        free = volume.spec.claim_ref is None and volume.status.phase == "Available"
        fits = free and labelled and modes and reached and volume.metadata.name not in gone
        if fits and best is None:
            best = volume
    return "" if best is None else best.metadata.name


@given(volumes(), claims(), st.sets(st.integers(0, 6), max_size=2))
def test_columns_pick_what_one_by_one_picks(
    given_volumes: Any, given_claims: Any, promised: Any
) -> None:
    labels = {name: {"zone": zone} if zone else {} for name, zone in NODES}
    manifests = [node(name, labels=labels[name]) for name, _ in NODES]
    snapshot = Ingest(Snapshot()).load(from_manifest(each) for each in manifests)
    there = [read_volume(i, each) for i, each in enumerate(given_volumes)]
    wanted = [read_claim(i, each) for i, each in enumerate(given_claims)]
    taken = {f"v{number}" for number in promised}
    n = snapshot.nodes.n
    free = FreeVolumes(there, Reach(node_labels(snapshot), n), n)
    for name in taken:
        free.take(name, taken=True)
    picks: list[Any] = []
    for claim in wanted:
        picks.append(free.pick(claim, picks))
    for row, name in enumerate(snapshot.nodes.names[:n]):
        gone = set(taken)
        for claim, pick in zip(wanted, picks, strict=True):
            want = pick_one(claim, there, (name, snapshot.nodes.labels[row]), gone)
            assert free.name(int(pick[row])) == want
            gone.add(want)

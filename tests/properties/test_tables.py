"""Tables: order of arrival, changes and deletions leave the same as a fresh start."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.scheduler import Scheduler
from pumice.testing.samples import snapshot_of
from tests.properties.clusters import clusters, conf_of, described

CONF = conf_of(
    ["enqueue", "allocate", "backfill", "preempt"],
    ["priority", "gang", "conformance"],
    ["drf", "predicates", "proportion", "nodeorder"],
)


def key_of(manifest: Any) -> Any:
    meta = manifest["metadata"]
    return manifest["kind"], meta.get("namespace"), meta["name"]


def decide(snapshot: Any) -> Any:
    return Scheduler(CONF, seed=3).decide(snapshot, 0.0)


@settings(max_examples=30)
@given(cluster=clusters(), data=st.data())
def test_objects_may_come_in_any_order(cluster: Any, data: Any) -> None:
    wanted = described(snapshot_of(cluster))
    shuffled = snapshot_of(data.draw(st.permutations(cluster)))
    check(shuffled)
    assert wanted == described(shuffled)


@settings(max_examples=30)
@given(first=clusters(), second=clusters(), data=st.data())
def test_changes_and_deletions_equal_a_fresh_start(first: Any, second: Any, data: Any) -> None:
    """The second cluster replaces objects of the same name; some objects are then deleted."""
    ingest, world = Ingest(Snapshot()), {}
    steps = [("upsert", manifest) for manifest in (*first, *second)]
    steps += [("delete", each) for each in data.draw(st.lists(st.sampled_from(first), max_size=8))]
    steps += [("upsert", each) for each in data.draw(st.lists(st.sampled_from(second), max_size=3))]
    for verb, manifest in steps:
        getattr(ingest, verb)(from_manifest(manifest))
        if verb == "upsert":
            world[key_of(manifest)] = manifest
        else:
            world.pop(key_of(manifest), None)
        if data.draw(st.integers(0, 9)) == 0:
            check(ingest.settle())
    found = ingest.settle()
    check(found)
    order = {name: i for i, name in enumerate(found.nodes.names)}
    fresh = sorted(world.values(), key=lambda m: order.get(m["metadata"]["name"], -1))
    wanted = snapshot_of(fresh)
    assert described(wanted) == described(found)
    assert decide(wanted) == decide(found)


@settings(max_examples=30)
@given(cluster=clusters())
def test_a_cycle_leaves_the_tables_as_they_were(cluster: Any) -> None:
    snapshot = snapshot_of(cluster)
    before = described(snapshot)
    first = decide(snapshot)
    assert before == described(snapshot)
    assert first == decide(snapshot)

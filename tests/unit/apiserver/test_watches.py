"""Watches: an event is encoded once for all watchers, and sent to each in its form."""

from typing import Any

import msgspec
import pytest

from pumice.apiserver import watches
from pumice.apiserver.columns import Form
from pumice.apiserver.watches import EventLines, Watch, WatchRequest
from pumice.cluster.embedded.store import EmbeddedCluster


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster()


def config_map(name: str, **data: str) -> Any:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**head, "metadata": {"name": name, "labels": {"of": name}}, "data": data}


def watch(cluster: EmbeddedCluster, lines: EventLines, **wanted: Any) -> Watch:
    kind = cluster.kinds.by_plural("", "configmaps")
    assert kind is not None
    return Watch(cluster, WatchRequest(kind, **wanted), lines=lines)


def reported(found: bytes) -> list[tuple[str, str, Any]]:
    events = [msgspec.json.decode(line) for line in found.splitlines()]
    return [
        (e["type"], e["object"]["metadata"]["name"], e["object"].get("data", "none"))
        for e in events
    ]


def test_watches_of_other_forms_and_selections_share_nothing_they_should_not(
    cluster: EmbeddedCluster,
) -> None:
    lines = EventLines(most=1)
    whole = watch(cluster, lines)
    short = watch(cluster, lines, form=Form("PartialObjectMetadata"))
    chosen = watch(cluster, lines, selector=lambda m: (m.get("data") or {}).get("x") == "1")
    for each in (whole, short, chosen):
        each.poll()
    cluster.create(config_map("a", x="1"))
    cluster.patch("ConfigMap", "default", "a", {"data": {"x": "2"}})
    assert reported(whole.poll()) == [("ADDED", "a", {"x": "1"}), ("MODIFIED", "a", {"x": "2"})]
    assert reported(short.poll()) == [("ADDED", "a", "none"), ("MODIFIED", "a", "none")]
    assert reported(chosen.poll()) == [("ADDED", "a", {"x": "1"}), ("DELETED", "a", {"x": "2"})]


def test_many_changes_come_in_parts_and_in_order(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_AT_ONCE", 3)
    each = watch(cluster, EventLines(), bookmarks=True)
    each.poll()
    for number in range(7):
        cluster.create(config_map(f"c{number}"))
    parts: list[list[str]] = []
    while not parts or each.has_more:
        parts.append([name for _, name, _ in reported(each.poll())])
    assert parts == [["c0", "c1", "c2"], ["c3", "c4", "c5"], ["c6"]]
    for number in range(3):
        cluster.create(config_map(f"d{number}"))
    assert len(reported(each.poll())) == 3
    assert not each.has_more
    late = watch(cluster, EventLines())
    found = reported(late.poll())
    cluster.create(config_map("e"))
    while late.has_more:
        found += reported(late.poll())
    assert len(found) == 10
    assert [name for _, name, _ in reported(late.poll())] == ["e"]


def test_a_part_is_small_however_large_the_objects_are(cluster: EmbeddedCluster) -> None:
    for number in range(20):
        cluster.create(config_map(f"c{number}", large="x" * 50_000))
    lines = EventLines()
    for since in ("", cluster.list("ConfigMap")[1]):
        each = watch(cluster, lines, since=since, initial=True)
        parts = [each.poll()]
        for number in range(20 if since else 0):
            cluster.patch("ConfigMap", "default", f"c{number}", {"data": {"a": "b"}})
        while not each.over and (each.has_more or len(parts) < 5):
            parts.append(each.poll())
        assert max(map(len, parts)) < 120_000
        events = [msgspec.json.decode(line) for line in b"".join(parts).splitlines()]
        kinds = [event["type"] for event in events]
        assert kinds == (
            ["BOOKMARK", *["MODIFIED"] * 20] if since else ["ADDED"] * 20 + ["BOOKMARK"]
        )


def test_the_lines_that_are_kept_take_bounded_memory(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_KEPT", 100_000)
    kept = EventLines()
    for number in range(20):
        cluster.create(config_map(f"c{number}", large="x" * 50_000))
    each = watch(cluster, kept)
    while not each.poll() or each.has_more:
        assert sum(map(len, kept._lines.values())) < 200_000

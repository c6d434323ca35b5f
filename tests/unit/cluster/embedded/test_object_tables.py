"""The tables below the store: histories, identities, owners."""

from typing import Any

import pytest

from pumice.cluster.base import Event
from pumice.cluster.embedded.object_tables import (
    History,
    Identity,
    ObjectTables,
    Ref,
    Table,
    bookmark,
    check_versions,
    visible,
)
from pumice.errors import ConflictError, GoneError, NotFoundError, RejectedError


def config(name: str, *owners: str, uid: str = "", space: str = "ns") -> Any:
    metadata: Any = {"name": name, "namespace": space, "uid": uid or f"u-{name}"}
    if owners:
        metadata["ownerReferences"] = [{"uid": owner} for owner in owners]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def history(limit: int, versions: Any) -> History:
    made = History("ConfigMap", limit)
    for version in versions:
        made.add(version, Event("ADDED", {"version": version}))
    return made


def found(made: History, since: str, latest: int = 100) -> list[int]:
    return [event.object["version"] for event in made.since(since, latest)]


def test_events_after_a_version_are_returned_in_order() -> None:
    made = history(100, [3, 5, 8])
    assert [found(made, since) for since in ("1", "3", "4", "7", "8", "9")] == [
        [3, 5, 8], [5, 8], [5, 8], [8], [], [],
    ]  # fmt: skip
    assert found(history(100, []), "7") == []


@pytest.mark.parametrize(
    ("since", "error"),
    [
        ("4", GoneError),
        ("5", None),
        ("100", None),
        ("101", GoneError),
        ("odd", RejectedError),
        ("-1", RejectedError),
        ("", RejectedError),
        ("0" * 18 + "50", None),
        ("0" * 19 + "50", RejectedError),
    ],
)
def test_versions_that_are_forgotten_or_to_come(since: str, error: Any) -> None:
    made = history(100, range(1, 101))
    made.compact(5)
    if error is None:
        assert made.since(since, 100) is not None
    else:
        with pytest.raises(error):
            made.since(since, 100)


def test_forgetting_never_goes_back() -> None:
    made = history(100, range(1, 11))
    made.compact(7)
    made.compact(3)
    assert made.forgotten == 7
    assert found(made, "7") == [8, 9, 10]


@pytest.mark.parametrize(("count", "forgotten"), [(10, 0), (11, 0), (12, 4), (15, 4)])
def test_a_quarter_more_than_the_limit_is_kept(count: int, forgotten: int) -> None:
    made = history(8, range(1, count + 1))
    assert made.forgotten == forgotten
    assert len(found(made, str(forgotten))) == count - forgotten


def test_events_of_a_namespace_and_a_bookmark_after_them() -> None:
    events = [Event("ADDED", config(name, space=name)) for name in "ab"]
    kind = ObjectTables(10).table("ConfigMap").kind
    last = bookmark(kind, 7)
    assert last.type == "BOOKMARK"
    assert last.object == {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "7"},
    }  # fmt: skip
    assert list(visible(events, "", None)) == events
    assert list(visible(events, "b", last)) == [events[1], last]


# Identities


def test_a_new_object_gets_an_identity_of_its_own() -> None:
    identity, metadata = Identity(255), {"name": "a"}
    given = {"resourceVersion": "9", "deletionTimestamp": "t", "deletionGracePeriodSeconds": 3}
    first = {**metadata, **given, "uid": "mine", "generation": 7}
    identity.stamp(first, 0.0)
    assert first == {
        "name": "a",
        "uid": "000000ff-0000-4000-8000-000000000001",
        "creationTimestamp": "1970-01-01T00:00:00Z",
        "generation": 1,
    }
    second = dict(metadata)
    identity.stamp(second, 0.0)
    assert second["uid"].endswith("000000000002")


def test_an_object_of_another_cluster_keeps_what_it_has() -> None:
    identity = Identity(1)
    whole = {
        "uid": "mine",
        "creationTimestamp": "t",
        "generation": 7,
        "resourceVersion": "9",
        "deletionTimestamp": "t",
    }
    kept = dict(whole)
    identity.complete(kept, 0.0)
    assert kept == whole
    bare: Any = {"uid": "", "deletionTimestamp": None, "deletionGracePeriodSeconds": 0}
    identity.complete(bare, 0.0)
    assert bare == {
        "uid": "00000001-0000-4000-8000-000000000002",
        "creationTimestamp": "1970-01-01T00:00:00Z",
        "generation": 1,
    }


def test_names_of_a_prefix_are_stable_and_differ() -> None:
    identity = Identity(1)
    names = [identity.name("p-") for _ in range(1000)]
    assert names[:2] == ["p-rtrwh", "p-j6j94"]
    assert len(set(names)) == 1000
    assert {len(name) for name in names} == {7}
    assert Identity(2).name("p-") == names[1]


# Tables


@pytest.fixture
def tables() -> ObjectTables:
    return ObjectTables(100)


def put(tables: ObjectTables, manifest: Any) -> None:
    table = tables.table("ConfigMap")
    metadata = manifest["metadata"]
    old = table.find(metadata["namespace"], metadata["name"])
    tables.put(table, manifest, old)


def dependents(tables: ObjectTables, uid: str) -> list[str]:
    return [ref.name for ref in tables.dependents(uid)]


def test_dependents_follow_the_references_of_objects(tables: ObjectTables) -> None:
    put(tables, config("b", "o"))
    put(tables, config("a", "o", "q"))
    assert dependents(tables, "o") == ["b", "a"]
    put(tables, config("b", "o"))  # as before
    assert dependents(tables, "o") == ["b", "a"]
    put(tables, config("a", "q"))
    assert (dependents(tables, "o"), dependents(tables, "q")) == (["b"], ["a"])
    put(tables, config("b"))
    assert dependents(tables, "o") == []
    assert set(tables._dependents) == {"q"}
    put(tables, config("b", "q"))
    assert dependents(tables, "q") == ["a", "b"]
    table = tables.table("ConfigMap")
    for name in "ab":
        tables.drop(table, table.spaces["ns"][name])
    assert tables._dependents == {}
    assert table.spaces == {}


def test_each_change_has_the_next_version_and_is_reported(tables: ObjectTables) -> None:
    heard: list[Any] = []
    tables.listeners.append(lambda kind, event: heard.append((kind, event.type)))
    put(tables, config("a"))
    put(tables, config("a"))
    put(tables, config("b"))
    table = tables.table("ConfigMap")
    tables.drop(table, table.spaces["ns"]["a"])
    assert tables.version == 4
    assert tables.latest == {"ConfigMap": 4}
    assert heard == [("ConfigMap", what) for what in ("ADDED", "MODIFIED", "ADDED", "DELETED")]
    versions = [
        event.object["metadata"]["resourceVersion"]
        for event in table.events("", "1", tables.version)
    ]
    assert versions == ["2", "3", "4"]
    assert [one.object["metadata"]["name"] for one in table.events("", "0", 4)] == ["b"]
    assert tables.owner("u-a") is None
    assert tables.owner("u-b") == Ref("ConfigMap", "ns", "b")


def test_resumed_objects_are_there_and_nothing_before_them(tables: ObjectTables) -> None:
    tables.resume([config("a"), config("b", "u-a")], 40)
    assert tables.version == 40
    assert dependents(tables, "u-a") == ["b"]
    assert tables.owner("u-a") == Ref("ConfigMap", "ns", "a")
    for kind in ("ConfigMap", "Secret"):
        assert tables.table(kind).history.forgotten == 40
        with pytest.raises(GoneError):
            tables.table(kind).events("", "39", 40)
    assert [table.kind.name for table in tables.tables()] == ["ConfigMap", "Secret"]
    with pytest.raises(NotFoundError, match="serves no such kind"):
        tables.table("Strange")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, None),
        ({"resourceVersion": "7", "uid": "u-a"}, None),
        ({"resourceVersion": "", "uid": ""}, None),
        ({"resourceVersion": "6"}, "resourceVersion 6, got 7"),
        ({"uid": "other"}, "uid other, got u-a"),
    ],
)
def test_a_change_of_another_version_or_object_is_a_conflict(
    tables: ObjectTables, asked: Any, field: str | None
) -> None:
    old = config("a")
    old["metadata"]["resourceVersion"] = "7"
    kind = tables.table("ConfigMap").kind
    if field is None:
        check_versions(kind, old, {"metadata": asked})
    else:
        with pytest.raises(ConflictError, match=field):
            check_versions(kind, old, {"metadata": asked})


def test_objects_are_listed_by_name_whatever_came_and_went_and_in_copies_too() -> None:
    tables = ObjectTables(100)
    table = tables.table("ConfigMap")
    for name in ("c", "a", "d"):
        tables.put(table, config(name), None)
    assert listed(table) == ["a", "c", "d"]
    tables.put(table, config("b"), None)
    tables.put(table, config("z", space="before"), None)
    copied = tables.copy().table("ConfigMap")
    tables.drop(table, config("a"))
    assert listed(table) == ["z", "b", "c", "d"]
    assert listed(copied) == ["z", "a", "b", "c", "d"]
    assert table.all("nowhere") == []


def listed(table: Table) -> list[str]:
    return [one["metadata"]["name"] for one in table.all()]

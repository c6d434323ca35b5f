"""Stores: the current state, and changes since a version."""

from typing import Any

import pytest

from pumice.cluster.base import Event
from pumice.cluster.kube.object_cache import ObjectCache
from pumice.errors import GoneError, RejectedError
from tests.unit.cluster.kube.fakes import pod


def reported(store: Any, since: Any, namespace: str = "") -> Any:
    return [
        (event.type, event.object["metadata"]["name"]) for event in store.since(since, namespace)
    ]


def filled(*steps: Any, remembered: Any = 100) -> Any:
    store = ObjectCache("Pod", remembered)
    store.replace([pod("a", 3), pod("b", 5)], "10")
    store.apply(steps)
    return store


def test_of_each_object_only_the_last_change_is_reported_in_order() -> None:
    store = filled(
        Event("MODIFIED", pod("a", 11)),
        Event("MODIFIED", pod("b", 12)),
        Event("MODIFIED", pod("a", 13)),
    )
    assert reported(store, "10") == [("MODIFIED", "b"), ("MODIFIED", "a")]
    assert reported(store, "12") == [("MODIFIED", "a")]
    assert reported(store, "13") == []


def test_an_object_is_added_for_those_who_have_not_seen_it_and_modified_for_others() -> None:
    store = filled(Event("ADDED", pod("c", 11)), Event("MODIFIED", pod("c", 12)))
    assert reported(store, "10") == [("ADDED", "c")]
    assert reported(store, "11") == [("MODIFIED", "c")]


def test_an_object_that_came_and_went_unseen_is_not_reported() -> None:
    store = filled(Event("ADDED", pod("c", 11)), Event("DELETED", pod("c", 12)))
    assert reported(store, "10") == []
    assert reported(store, "11") == [("DELETED", "c")]


def test_a_deletion_of_an_object_newer_than_its_list_is_reported() -> None:
    """A list in pages holds objects that changed after its first page was read."""
    for known in ([], [pod("a", 25)]):
        store = ObjectCache("Pod")
        store.replace(known, "30")
        store.replace([pod("a", 25), pod("b", 28)], "20")
        version = store.list()[1]
        store.apply([Event("MODIFIED", pod("a", 25)), Event("DELETED", pod("a", 31))])
        assert ("DELETED", "a") in reported(store, version)


def test_steps_from_before_an_object_was_listed_do_not_set_it_back() -> None:
    store = ObjectCache("Pod")
    store.replace([pod("a", 25), pod("b", 28, uid="new"), pod("c", 5)], "20")
    older = [
        Event("MODIFIED", pod("a", 22)),
        Event("DELETED", pod("b", 23)),
        Event("MODIFIED", pod("c", 24)),
    ]
    assert store.apply(older) == 1
    versions = [one["metadata"]["resourceVersion"] for one in store.list()[0]]
    assert versions == ["25", "28", "24"]
    assert store.apply([Event("MODIFIED", pod("a", 25)), Event("DELETED", pod("b", 29))]) == 2
    assert reported(store, "24") == [("MODIFIED", "a"), ("DELETED", "b")]


def test_a_reader_is_not_told_of_versions_that_its_store_has_yet_to_reach() -> None:
    """Else it would go on from there, and miss what happened before."""
    store = ObjectCache("Pod")
    store.replace([pod("a", 25), pod("b", 5)], "20")
    store.apply([Event("MODIFIED", pod("b", 21))])
    assert reported(store, "20") == [("MODIFIED", "b")]
    assert reported(store, "") == [("ADDED", "b"), ("ADDED", "a")]
    store.apply([Event("MODIFIED", pod("b", 23)), Event("MODIFIED", pod("a", 25))])
    assert reported(store, "21") == [("MODIFIED", "b"), ("MODIFIED", "a")]


def test_a_successor_of_the_same_name_comes_after_the_deletion() -> None:
    steps = Event("DELETED", pod("a", 11)), Event("ADDED", pod("a", 12, uid="new"))
    assert reported(filled(*steps), "10") == [("DELETED", "a"), ("ADDED", "a")]
    untold = filled(Event("MODIFIED", pod("a", 12, uid="new")))
    assert reported(untold, "10") == [("DELETED", "a"), ("ADDED", "a")]


def test_versions_too_far_back_or_still_to_come_are_gone() -> None:
    store = filled(Event("ADDED", pod("c", 11)))
    for since in ("9", "12"):
        with pytest.raises(GoneError):
            store.since(since)
    with pytest.raises(RejectedError):
        store.since("soon")


def test_deletions_beyond_what_is_remembered_are_gone() -> None:
    steps = [Event("DELETED", pod(name, n)) for n, name in enumerate("ab", 11)]
    store = filled(*steps, remembered=1)
    with pytest.raises(GoneError):
        store.since("10")
    assert reported(store, "11") == [("DELETED", "b")]


def test_a_list_that_differs_sends_readers_back_to_the_list() -> None:
    store = filled()
    assert store.replace([pod("a", 3), pod("c", 15)], "20")
    with pytest.raises(GoneError):
        store.since("10")
    items, version = store.list()
    assert [item["metadata"]["name"] for item in items] == ["a", "c"]
    assert version == "20"
    assert reported(store, version) == []


def test_a_step_that_is_known_already_changes_nothing() -> None:
    store = filled(Event("MODIFIED", pod("a", 11)))
    again = Event("MODIFIED", pod("b", 11)), Event("DELETED", pod("a", 10))
    assert store.apply(again) == 0
    assert reported(store, "10") == [("MODIFIED", "a")]
    assert store.apply([Event("BOOKMARK", pod("x", 12)), Event("ADDED", pod("c", 13))]) == 1
    assert store.version == 13
    assert store.apply([Event("BOOKMARK", pod("x", 20))]) == 0
    assert store.version == 20
    assert store.get("lab", "x") is None

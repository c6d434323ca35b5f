"""Reflectors: whatever a server does to a watch, the store ends up as the server has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.cluster.kube.object_cache import ObjectCache
from pumice.cluster.kube.reflector import Reflector
from tests.unit.cluster.kube.fakes import (
    PODS,
    Refuse,
    bookmark,
    client_of,
    gone_line,
    initial_end,
    line,
    page,
    pod,
    stream,
)

LIST, WATCH, STREAM = f"GET {PODS}", f"WATCH {PODS}", f"STREAM {PODS}"


class Last:
    """A watch that signals its request and then stays open."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def answer(self, request: Any) -> Any:
        self.reached.set()
        return await stream(end="hang").answer(request)


@asynccontextmanager
async def following(lists: Any, watches: Any) -> AsyncIterator[Any]:
    """Watch pods until the server has sent everything."""
    last = Last()
    store = ObjectCache("Pod")
    answers = {LIST: lists, WATCH: [*watches, last]}
    async with client_of(answers) as (client, fake, time):
        reflector = Reflector(client, store, lambda: None)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(last.reached.wait(), 10)
        yield store, fake, time, reflector
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(store: Any) -> Any:
    return [item["metadata"]["name"] for item in store.list()[0]]


def asked(fake: Any) -> Any:
    """Return for each request "list" or the version a watch began at."""
    return [one.query.get("resourceVersion", "list") for one in fake.asked]


async def test_a_kind_is_listed_once_and_then_watched_from_the_version_of_the_list() -> None:
    watch = stream(line("ADDED", pod("b", 11)), line("DELETED", pod("a", 12)))
    async with following([page(pod("a", 3))], [watch]) as (store, fake, _, _):
        assert names(store) == ["b"]
        assert asked(fake) == ["list", "10", "12"]
        assert fake.asked[1].query["allowWatchBookmarks"] == "true"
        assert 300 <= int(fake.asked[1].query["timeoutSeconds"]) <= 600


async def test_a_clean_end_is_resumed_from_the_last_step_without_a_list() -> None:
    watches = [stream(line("MODIFIED", pod("a", 11 + n, node=f"n{n}"))) for n in range(3)]
    async with following([page(pod("a", 3))], watches) as (store, fake, _, _):
        assert asked(fake) == ["list", "10", "11", "12", "13"]
        assert store.get("lab", "a")["spec"] == {"nodeName": "n2"}


async def test_a_bookmark_moves_the_point_to_resume_from() -> None:
    async with following([page()], [stream(bookmark(40))]) as (_, fake, _, _):
        assert asked(fake) == ["list", "10", "40"]


async def test_a_reset_in_the_middle_of_a_line_loses_nothing() -> None:
    whole, cut = line("ADDED", pod("a", 11)), line("ADDED", pod("b", 12))
    watches = [stream(whole, cut[:30], end="reset"), stream(cut)]
    async with following([page()], watches) as (store, fake, _, reflector):
        assert asked(fake) == ["list", "10", "11", "12"]
        assert names(store) == ["a", "b"]
        assert not reflector.trouble


@pytest.mark.parametrize("gone", [Refuse(410, "Expired"), stream(gone_line())])
async def test_a_version_too_far_back_leads_to_a_new_list(gone: Any) -> None:
    lists = [page(pod("a", 3), pod("b", 4)), page(pod("b", 4), pod("c", 20), version=30)]
    async with following(lists, [gone]) as (store, fake, time, _):
        assert asked(fake) == ["list", "10", "list", "30"]
        assert names(store) == ["b", "c"]
        assert time.slept == []


async def test_what_came_before_an_error_in_the_stream_is_kept() -> None:
    overloaded = line("ERROR", {"kind": "Status", "code": 500, "message": "no"})
    watch = stream(line("ADDED", pod("a", 11)) + overloaded)
    async with following([page()], [watch]) as (store, fake, time, _):
        assert names(store) == ["a"]
        assert asked(fake) == ["list", "10", "11"]
        assert time.slept == [0.8]


async def test_versions_that_are_always_too_old_do_not_make_a_storm_of_lists() -> None:
    async with following([page()], [Refuse(410)] * 4) as (_, fake, time, _):
        assert asked(fake).count("list") == 5
        assert time.slept == [0.8, 1.6, 3.2]


@pytest.mark.parametrize("nonsense", [b"{]\n", b'{"type":"ODD","object":{}}\n', b"[]\n"])
async def test_a_line_that_makes_no_sense_leads_to_a_new_list(nonsense: bytes) -> None:
    watch = stream(line("ADDED", pod("a", 11)), nonsense)
    lists = [page(), page(pod("a", 11), version=12)]
    async with following(lists, [watch]) as (store, fake, _, _):
        assert asked(fake) == ["list", "10", "list", "12"]
        assert names(store) == ["a"]


async def test_an_object_without_a_version_leads_to_a_new_list() -> None:
    watch = stream(line("ADDED", {"metadata": {"name": "x"}}))
    async with following([page()], [watch]) as (_, fake, time, _):
        assert asked(fake) == ["list", "10", "list", "10"]
        assert time.slept


@pytest.mark.parametrize("busy", [Refuse(429), Refuse(500), Refuse(503, bare=True)])
async def test_a_busy_server_is_asked_again_later_from_the_same_place(busy: int) -> None:
    async with following([page()], [busy, busy]) as (_, fake, time, _):
        assert asked(fake) == ["list", "10", "10", "10"]
        assert time.slept == [0.8, 1.6]


async def test_a_version_the_server_never_accepts_is_given_up_for_a_new_list() -> None:
    too_large = Refuse(504, "Timeout", "Too large resource version")
    lists = [page(version=900), page(version=5)]
    async with following(lists, [too_large] * 5) as (_, fake, _, _):
        assert asked(fake) == ["list", *["900"] * 5, "list", "5"]


async def test_watches_that_end_at_once_are_asked_for_later_and_later() -> None:
    async with following([page()], [stream()] * 3) as (_, fake, time, _):
        assert asked(fake) == ["list"] + ["10"] * 4
        assert time.slept == [0.8, 1.6, 3.2]


async def test_a_list_that_fails_is_tried_again() -> None:
    lists = [Refuse(403), Refuse(403), page(pod("a", 2))]
    async with following(lists, []) as (store, _, time, reflector):
        assert names(store) == ["a"]
        assert time.slept == [0.8, 1.6]
        assert not reflector.trouble


async def test_a_kind_the_server_does_not_have_is_empty_until_it_does() -> None:
    lists = [Refuse(404, bare=True), page(pod("a", 3))]
    async with following(lists, []) as (store, _, time, _):
        assert time.slept == [66.0]
        assert names(store) == ["a"]
        assert [event.type for event in store.since("0")] == ["ADDED"]


async def test_a_kind_that_is_taken_away_becomes_empty() -> None:
    lists = [page(pod("a", 3)), Refuse(404, "NotFound"), page(version=50)]
    async with following(lists, [Refuse(404, "NotFound")]) as (store, _, _, _):
        assert names(store) == []


async def test_who_wrote_which_field_is_not_kept() -> None:
    listed = pod("a", 3, managedFields=[{"manager": "m"}])
    watch = stream(line("ADDED", pod("b", 11, managedFields=[{"manager": "m"}])))
    async with following([page(listed)], [watch]) as (store, _, _, _):
        assert store.list()[0] == [pod("a", 3), pod("b", 11)]


class TestWatchesThatBeginWithTheObjects:
    """WatchList: nothing is listed where the server can do without."""

    @staticmethod
    @asynccontextmanager
    async def following(streams: Any, watches: Any = (), lists: Any = ()) -> AsyncIterator[Any]:
        last, store = Last(), ObjectCache("Pod")
        answers = {STREAM: streams, WATCH: [*watches, last], LIST: lists or [page(version=5)]}
        async with client_of(answers) as (client, fake, _):
            reflector = Reflector(client, store, lambda: None)
            task = asyncio.create_task(reflector.run())
            await asyncio.wait_for(last.reached.wait(), 10)
            yield store, fake, reflector
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def test_one_watch_gives_the_objects_and_what_happens_then(self) -> None:
        first = stream(
            line("ADDED", pod("a", 3)),
            line("ADDED", pod("b", 9)),
            initial_end(10) + line("MODIFIED", pod("a", 11, node="n1")),
            line("DELETED", pod("b", 12)),
        )
        async with self.following([first]) as (store, fake, reflector):
            assert names(store) == ["a"]
            assert store.get("lab", "a")["spec"] == {"nodeName": "n1"}
            assert asked(fake) == ["list", "12"]
            assert (
                fake.asked[0].query.items()
                >= {
                    "watch": "true",
                    "sendInitialEvents": "true",
                    "resourceVersionMatch": "NotOlderThan",
                    "allowWatchBookmarks": "true",
                }.items()
            )
            assert reflector.trouble == ""

    async def test_nothing_is_known_before_all_objects_have_come(self) -> None:
        streams = [stream(line("ADDED", pod("a", 3)), end="reset"), stream(initial_end(99))]
        async with self.following(streams, lists=[page(pod("z", 4))]) as (store, fake, _):
            assert names(store) == ["z"]
            assert [one.query.get("sendInitialEvents") for one in fake.asked] == [
                "true", None, None,
            ]  # fmt: skip

    async def test_what_goes_while_the_objects_come_is_not_there(self) -> None:
        first = stream(
            line("ADDED", pod("a", 3)),
            bookmark(4),
            line("ADDED", pod("b", 5)),
            line("DELETED", pod("a", 6)),
            line("MODIFIED", pod("b", 7)),
            initial_end(8),
        )
        async with self.following([first]) as (store, _, _):
            assert names(store) == ["b"]
            assert store.version == 8

    @pytest.mark.parametrize(("code", "reason"), [(422, "Invalid"), (400, "BadRequest")])
    async def test_a_server_that_cannot_is_asked_once(self, code: int, reason: str) -> None:
        watches = [stream(gone_line())]
        lists = [page(pod("a", 3)), page(pod("b", 30), version=31)]
        no = Refuse(code, reason, "sendInitialEvents is forbidden for watch")
        async with self.following([no], watches, lists) as (store, fake, _):
            assert names(store) == ["b"]
            assert [one.query.get("sendInitialEvents") for one in fake.asked].count("true") == 1

    async def test_a_server_that_never_ends_the_objects_is_listed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pumice.cluster.kube.reflector._INITIAL_SILENCE_S", 0.1)

        first = stream(line("ADDED", pod("a", 3)), end="hang")
        async with self.following([first], lists=[page(pod("z", 4))]) as (store, _, _):
            assert names(store) == ["z"]

    async def test_a_kind_that_is_not_there_is_empty(self) -> None:
        answers = {STREAM: [Refuse(404, "NotFound")]}
        async with client_of(answers) as (client, _, _):
            store, known = ObjectCache("Pod"), asyncio.Event()
            reflector = Reflector(client, store, known.set)
            task = asyncio.create_task(reflector.run())
            await asyncio.wait_for(known.wait(), 10)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert store.synced
            assert reflector.absent


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    name = "pumice.cluster.kube.reflector"
    return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == name]


async def test_what_becomes_of_a_watch_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "pumice.cluster.kube.reflector")

    lists = [
        Refuse(404, bare=True),
        Refuse(404, bare=True),
        Refuse(403, message="go away"),
        Refuse(403, message="go away"),
        page(),
    ]
    odd = stream(line("ADDED", {"metadata": {"name": "x"}}))
    async with following(lists, [stream(gone_line()), odd]) as (_, fake, _, _):
        assert asked(fake).count("list") == 7
    assert [each for each in logged(caplog) if "initial" not in each[1]] == [
        ("INFO", "Pod: the server does not have it"),
        ("WARNING", "Pod: go away; retrying"),
        ("INFO", "Pod: too old; listing again"),
        ("ERROR", "Pod: watch failed"),
        ("WARNING", "Pod: KeyError('resourceVersion'); retrying"),
    ]
    assert sum("watch without initial objects" in text for _, text in logged(caplog)) == 1


async def test_lines_may_come_in_any_pieces() -> None:
    text = line("ADDED", pod("a", 11)) + line("ADDED", pod("b", 12)) + bookmark(13)
    pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
    async with following([page()], [stream(*pieces)]) as (store, fake, _, _):
        assert names(store) == ["a", "b"]
        assert asked(fake)[-1] == "13"

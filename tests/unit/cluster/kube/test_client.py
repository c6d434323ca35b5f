"""KubeClient: what it asks for, what it repeats, and what it never sends twice."""

from typing import Any

import pytest
from aiohttp import web

from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.retry import Transport
from pumice.errors import (
    AlreadyExistsError,
    ConflictError,
    FencedError,
    GoneError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)
from tests.unit.cluster.kube.fakes import LAB, Lost, Refuse, Silence, client_of, page, pod

BIND = f"POST {LAB}/p/binding"
GET = f"GET {LAB}/p"
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "l", "namespace": "lab"},
}


async def test_objects_are_read_and_written_at_their_addresses() -> None:
    answers = {
        GET: pod(),
        f"POST {LAB}": pod(),
        f"PUT {LAB}/p": pod(),
        f"PUT {LAB}/p/status": pod(),
        f"PATCH {LAB}/p/status": pod(),
        f"DELETE {LAB}/p": {},
    }
    async with client_of(answers) as (client, fake, _):
        assert await client.get("Pod", "lab", "p") == pod()
        await client.create(pod())
        await client.update(pod())
        await client.update_status(pod())
        await client.patch("Pod", "lab", "p", {"a": 1}, subresource="status")
        await client.delete("Pod", "lab", "p", grace_s=0, uid="u")
        assert fake.calls() == list(answers)
        assert fake.asked[4].headers["Content-Type"] == "application/merge-patch+json"
        assert fake.asked[5].body["preconditions"] == {"uid": "u"}
        assert fake.asked[5].body["gracePeriodSeconds"] == 0


async def test_a_list_comes_in_pages_and_its_items_get_their_kind() -> None:
    pages = [page(pod("a"), version=7, more="next"), page(pod("b"), version=7)]
    async with client_of({f"GET {LAB}": pages}) as (client, fake, _):
        items, version = await client.list("Pod", "lab", {"app": "x"})
    assert items == [pod("a"), pod("b")]
    assert version == "7"
    assert fake.asked[0].query == {"limit": "500", "labelSelector": "app=x"}
    assert fake.asked[1].query["continue"] == "next"


async def test_a_list_whose_next_page_has_expired_starts_over_in_one_piece() -> None:
    pages = [page(pod("a"), more="n"), Refuse(410, "Expired"), page(pod("b"), pod("c"))]
    async with client_of({f"GET {LAB}": pages}) as (client, fake, _):
        items, _ = await client.list("Pod", "lab")
    assert [item["metadata"]["name"] for item in items] == ["b", "c"]
    assert fake.asked[2].query == {}


@pytest.mark.parametrize(
    ("refuse", "error"),
    [
        (Refuse(404, "NotFound"), NotFoundError),
        (Refuse(404, bare=True), NotFoundError),
        (Refuse(409, "AlreadyExists"), AlreadyExistsError),
        (Refuse(409, "Conflict"), ConflictError),
        (Refuse(410, "Expired"), GoneError),
        (Refuse(422, "Invalid"), RejectedError),
        (Refuse(403, "Forbidden"), RejectedError),
    ],
)
async def test_a_refusal_keeps_the_words_of_the_server_and_is_not_repeated(
    refuse: Any, error: Any
) -> None:
    async with client_of({GET: refuse}) as (client, fake, _):
        with pytest.raises(error) as caught:
            await client.get("Pod", "lab", "p")
        assert len(fake.asked) == 1
    assert caught.value.problem == "no, because"
    assert caught.value.name == "p"


async def test_a_server_that_is_busy_is_left_alone_as_long_as_it_asks() -> None:
    busy = Refuse(429, "TooManyRequests", headers={"Retry-After": "7"})
    async with client_of({f"POST {LAB}": [busy, busy, pod()]}) as (client, fake, time):
        assert await client.create(pod()) == pod()
    assert len(fake.asked) == 3
    assert all(slept >= 7 for slept in time.slept)


async def test_what_can_be_repeated_is_repeated_later_and_later_and_then_given_up() -> None:
    async with client_of({GET: Refuse(503)}) as (client, fake, time):
        with pytest.raises(UnavailableError):
            await client.get("Pod", "lab", "p")
    assert time.slept == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert len(fake.asked) == 6


@pytest.mark.parametrize("failure", [Refuse(500), Lost()])
async def test_a_patch_is_sent_again_and_a_creation_is_not(failure: Any) -> None:
    answers = {f"PATCH {LAB}/p": [failure, pod()], f"POST {LAB}": [failure, pod()]}
    async with client_of(answers) as (client, fake, _):
        await client.patch("Pod", "lab", "p", {})
        with pytest.raises(UnavailableError) as caught:
            await client.create(pod())
        assert caught.value.sent
        assert fake.calls().count(f"POST {LAB}") == 1
        fake.answers[f"PATCH {LAB}/p"] = [failure, pod()]
        with pytest.raises(UnavailableError):
            await client.patch("Pod", "lab", "p", [], patch_type="json")


async def test_a_creation_that_never_left_is_sent_again() -> None:
    async with client_of({}) as (client, _, time):
        client.transport = Transport(Connection("http://127.0.0.1:1"), 1.0)
        with pytest.raises(UnavailableError) as caught:
            await client.create(pod())
        await client.close()
    assert not caught.value.sent
    assert len(time.slept) == 5


async def test_a_deletion_in_doubt_that_finds_nothing_is_done() -> None:
    path = f"DELETE {LAB}/p"
    async with client_of({path: [Lost(), Refuse(404, "NotFound")]}) as (client, fake, _):
        await client.delete("Pod", "lab", "p")
        fake.answers[path] = [Refuse(404, "NotFound")]
        with pytest.raises(NotFoundError):
            await client.delete("Pod", "lab", "p")


@pytest.mark.parametrize("failure", [Lost(), Refuse(500), Refuse(409, "Conflict")])
async def test_a_bind_without_a_clear_answer_that_was_done_counts_as_done(failure: Any) -> None:
    answers = {BIND: failure, GET: pod(node="n1")}
    async with client_of(answers) as (client, fake, _):
        await client.bind("lab", "p", "n1", {}, uid="u-p")
    assert fake.calls() == [BIND, GET]


@pytest.mark.parametrize("failure", [Lost(), Refuse(500)])
async def test_a_bind_in_doubt_that_was_not_done_is_sent_again(failure: Any) -> None:
    async with client_of({BIND: [failure, {}], GET: pod()}) as (client, fake, _):
        await client.bind("lab", "p", "n1", {})
    assert fake.calls() == [BIND, GET, BIND]


@pytest.mark.parametrize(
    ("failure", "found", "problem"),
    [
        (Refuse(409, "Conflict"), pod(node="n2"), "no, because"),
        (Refuse(409, "Conflict"), pod(), "no, because"),
        (Lost(), pod(node="n2"), "already on node n2"),
        (Lost(), pod(node="n1", uid="another"), "another pod of the same name"),
    ],
)
async def test_a_bind_that_someone_else_was_faster_with_has_failed(
    failure: Any, found: Any, problem: str
) -> None:
    async with client_of({BIND: failure, GET: found}) as (client, fake, _):
        with pytest.raises(ConflictError) as caught:
            await client.bind("lab", "p", "n1", {}, uid="u-p")
    assert caught.value.problem == problem
    assert fake.calls() == [BIND, GET]


async def test_an_answer_that_takes_too_long_is_a_doubt() -> None:
    answers = {BIND: Silence(), GET: pod(node="n1")}
    async with client_of(answers, timeout_s=0.5) as (client, fake, _):
        await client.bind("lab", "p", "n1", {})
    assert fake.calls() == [BIND, GET]


async def test_nothing_is_written_once_the_fence_is_closed() -> None:
    is_open = [True]

    async def close_it(_: Any) -> Any:
        is_open[0] = False
        return Refuse(429)

    answers = {BIND: [close_it, {}], GET: pod()}
    async with client_of(answers, fence=lambda: is_open[0]) as (client, fake, _):
        with pytest.raises(FencedError):
            await client.bind("lab", "p", "n1", {})
        for write in (
            client.create(pod()),
            client.update(pod()),
            client.update_status(pod()),
            client.patch("Pod", "lab", "p", {}),
            client.delete("Pod", "lab", "p"),
            client.evict("lab", "p", "room"),
            client.record(pod(), "Normal", "R", "m", "s"),
        ):
            with pytest.raises(FencedError):
                await write
        await client.get("Pod", "lab", "p")
    assert fake.calls() == [BIND, GET]


async def test_a_fence_that_closes_while_a_write_waits_for_its_turn_holds_it_back() -> None:
    answers = {f"POST {LAB}": pod()}
    async with client_of(answers, qps=1, burst=1) as (client, fake, time):
        client.fence = lambda: not time.slept
        await client.create(pod())
        with pytest.raises(FencedError):
            await client.create(pod())
    assert len(fake.asked) == 1


async def test_a_fence_that_closes_while_we_log_in_holds_the_write_back() -> None:
    is_open = [True]

    class Slow:
        def fresh(self) -> bool:
            return False

        def header(self) -> str:
            is_open[0] = False
            return ""

        def refused(self) -> None:
            raise AssertionError("nothing is sent")

    async with client_of({BIND: {}}, fence=lambda: is_open[0]) as (client, fake, _):
        client.transport = Transport(Connection(fake.url, credentials=Slow()), 5.0)
        with pytest.raises(FencedError):
            await client.bind("lab", "p", "n1", {})
        await client.close()
    assert fake.asked == []


async def test_leases_are_written_whatever_the_fence_and_the_rate() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/lab/leases"
    answers = {f"POST {path}": LEASE, f"PUT {path}/l": LEASE}
    options = {"fence": lambda: False, "qps": 1, "burst": 1}
    async with client_of(answers, **options) as (client, _, time):
        await client.create(LEASE)
        for _ in range(3):
            await client.update(LEASE)
    assert time.slept == []


async def test_a_lease_is_not_asked_for_twice_since_time_runs() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/lab/leases/l"
    answers = {f"PUT {path}": Refuse(500), f"GET {path}": Lost()}
    async with client_of(answers) as (client, fake, time):
        with pytest.raises(UnavailableError):
            await client.update(LEASE)
        with pytest.raises(UnavailableError):
            await client.get("Lease.coordination.k8s.io", "lab", "l")
    assert len(fake.asked) == 2
    assert time.slept == []


async def test_an_eviction_tells_why_and_then_deletes_the_very_pod() -> None:
    answers = {f"PATCH {LAB}/p/status": pod(), f"DELETE {LAB}/p": {}}
    known = {"known": lambda kind, namespace, name: pod(uid="u7")}
    async with client_of(answers, **known) as (client, fake, _):
        await client.evict("lab", "p", "room for others")
    patched, deleted = fake.asked
    assert patched.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert patched.body["metadata"] == {"uid": "u7"}
    assert [
        (c["type"], c["status"], c["reason"]) for c in patched.body["status"]["conditions"]
    ] == [
        ("Ready", "False", "Evict"),
        ("DisruptionTarget", "True", "PreemptionByScheduler"),
    ]
    assert deleted.body["preconditions"] == {"uid": "u7"}
    assert "gracePeriodSeconds" not in deleted.body


async def test_the_same_event_again_is_counted_and_seldom_sent() -> None:
    events = "/api/v1/namespaces/lab/events"
    written = []

    async def patched(request: Any) -> Any:
        written.append(await request.json())
        return {}

    async with client_of({f"POST {events}": {}}) as (client, fake, time):
        mention = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "lab"},
        }
        client._known = lambda *_: pod(uid="u9", version=4)
        say = (mention, "Warning", "Waiting", "no room", "volcano")
        await client.record(*say)
        event = fake.asked[0].body
        fake.answers[f"PATCH {events}/{event['metadata']['name']}"] = [patched]
        for _ in range(60):
            time.now += 1.0
            await client.record(*say)
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "lab",
            "name": "p",
            "uid": "u9",
            "resourceVersion": "4",
        }
        assert event["count"] == 1
        assert [patch["count"] for patch in written] == [11, 31]

        fake.answers = {f"POST {events}": [{}]}  # the server has forgotten it
        time.now += 400.0
        await client.record(*say)
        assert fake.asked[-1].method == "POST"


async def test_an_event_that_could_not_be_written_is_new_the_next_time() -> None:
    path = "POST /api/v1/namespaces/lab/events"
    async with client_of({path: [Refuse(403), {}]}) as (client, fake, _):
        with pytest.raises(RejectedError):
            await client.record(pod(), "Normal", "R", "m", "s")
        await client.record(pod(), "Normal", "R", "m", "s")
    assert fake.calls() == [path, path]


async def test_a_name_that_is_not_accepted_is_looked_up_again_once() -> None:
    class Words:
        def __init__(self) -> None:
            self.said = ["old", "new", "newer"]

        def fresh(self) -> bool:
            return False

        def header(self) -> str:
            return f"Bearer {self.said[0]}"

        def refused(self) -> None:
            self.said.pop(0)

    async with client_of({GET: [Refuse(401), pod()]}) as (client, fake, _):
        connection = Connection(fake.url, credentials=Words())
        client.transport = Transport(connection, 5.0)
        await client.get("Pod", "lab", "p")
        assert [one.headers["Authorization"] for one in fake.asked] == [
            "Bearer old",
            "Bearer new",
        ]
        fake.answers[GET] = [Refuse(401)]
        with pytest.raises(RejectedError):
            await client.get("Pod", "lab", "p")
        await client.close()
    assert len(fake.asked) == 4


async def test_an_answer_that_is_no_object_is_reported() -> None:
    async with client_of({GET: web.Response(text="<html>")}) as (client, _, _):
        with pytest.raises(UnavailableError, match="no object came back"):
            await client.get("Pod", "lab", "p")

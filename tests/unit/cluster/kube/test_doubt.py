"""KubeClient: a write that may have been done is never reported as not done."""

from typing import Any

import pytest

from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.retry import Transport
from pumice.errors import ConflictError, NotFoundError, UnavailableError
from tests.unit.cluster.kube.fakes import LAB, Lost, Refuse, Silence, client_of, pod

BIND = f"POST {LAB}/p/binding"
GET = f"GET {LAB}/p"


class Unreachable(Transport):
    """Passes some requests on and then cannot connect any more."""

    def __init__(self, inner: Any, verbs: Any) -> None:
        self._inner = inner
        self._verbs = list(verbs)

    async def send(self, method: Any, *rest: Any, **options: Any) -> Any:
        if not self._verbs or self._verbs[0] != method:
            raise UnavailableError(problem="connection refused", sent=False)
        self._verbs.pop(0)
        return await self._inner.send(method, *rest, **options)

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize("through", [("POST",), ("POST", "GET")])
async def test_a_bind_that_may_have_been_done_stays_in_doubt_when_the_server_goes_away(
    through: Any,
) -> None:
    async with client_of({BIND: Lost(), GET: pod()}) as (client, fake, _):
        client.transport = Unreachable(client.transport, through)
        with pytest.raises(UnavailableError) as caught:
            await client.bind("lab", "p", "n1", {})
    assert caught.value.sent
    assert caught.value.name == "p"
    assert len(fake.asked) == len(through)


@pytest.mark.parametrize("answer", [Refuse(403, "Forbidden"), Refuse(503)])
async def test_a_bind_in_doubt_whose_pod_cannot_be_read_stays_in_doubt(answer: int) -> None:
    async with client_of({BIND: Lost(), GET: answer}) as (client, fake, _):
        with pytest.raises(UnavailableError) as caught:
            await client.bind("lab", "p", "n1", {})
    assert caught.value.sent
    assert fake.calls().count(BIND) == 1


async def test_a_bind_in_doubt_whose_pod_is_gone_has_failed() -> None:
    async with client_of({BIND: Lost(), GET: Refuse(404, "NotFound")}) as (client, _, _):
        with pytest.raises(NotFoundError):
            await client.bind("lab", "p", "n1", {})


async def test_a_bind_in_conflict_whose_pod_cannot_be_read_is_in_conflict() -> None:
    answers = {BIND: Refuse(409, "Conflict"), GET: Refuse(403, "Forbidden")}
    async with client_of(answers) as (client, _, _):
        with pytest.raises(ConflictError):
            await client.bind("lab", "p", "n1", {})


@pytest.mark.parametrize("second", [Refuse(403, "Forbidden"), Refuse(409, "Conflict")])
async def test_a_bind_refused_after_one_in_doubt_stays_in_doubt(second: int) -> None:
    async with client_of({BIND: [Lost(), second], GET: pod()}) as (client, _, _):
        with pytest.raises(UnavailableError) as caught:
            await client.bind("lab", "p", "n1", {})
    assert caught.value.sent


async def test_a_bind_held_back_by_the_fence_after_one_in_doubt_stays_in_doubt() -> None:
    is_open = [True]

    async def lost(_: Any) -> Any:
        is_open[0] = False
        return Lost()

    answers = {BIND: lost, GET: pod()}
    async with client_of(answers, fence=lambda: is_open[0]) as (client, fake, _):
        with pytest.raises(UnavailableError) as caught:
            await client.bind("lab", "p", "n1", {})
    assert caught.value.sent
    assert fake.calls() == [BIND, GET]


async def test_a_deletion_in_doubt_stays_so_when_the_server_goes_away() -> None:
    async with client_of({f"DELETE {LAB}/p": Lost()}) as (client, fake, _):
        client.transport = Unreachable(client.transport, ("DELETE",))
        with pytest.raises(UnavailableError) as caught:
            await client.delete("Pod", "lab", "p")
    assert caught.value.sent
    assert len(fake.asked) == 1


@pytest.mark.parametrize("first", [Lost(), Refuse(500)])
@pytest.mark.parametrize("then", ["fenced", "refused"])
async def test_a_deletion_in_doubt_stays_so_when_it_may_not_be_repeated(
    first: Any, then: str
) -> None:
    is_open = [True]

    async def answer(_: Any) -> Any:
        is_open[0] = then != "fenced"
        return first

    answers = {f"DELETE {LAB}/p": [answer, Refuse(403, "Forbidden")]}
    async with client_of(answers, fence=lambda: is_open[0]) as (client, _, _):
        with pytest.raises(UnavailableError) as caught:
            await client.delete("Pod", "lab", "p")
    assert caught.value.sent


async def test_an_answer_beyond_all_bounds_leaves_a_write_in_doubt() -> None:
    answers = {f"PATCH {LAB}/p": pod(name="p" * 5000)}
    async with client_of(answers) as (client, fake, _):
        client.transport = Transport(Connection(fake.url), 5.0, cap=100)
        with pytest.raises(UnavailableError) as caught:
            await client.patch("Pod", "lab", "p", {}, patch_type="json")
        await client.close()
    assert caught.value.sent


async def test_one_look_is_one_attempt_of_limited_time() -> None:
    async with client_of({GET: [Silence(), Refuse(503), pod()]}) as (client, fake, time):
        with pytest.raises(UnavailableError, match=r"no answer within 0\.5 s"):
            await client.read("Pod", "lab", "p", timeout_s=0.5)
        with pytest.raises(UnavailableError):
            await client.read("Pod", "lab", "p", timeout_s=5.0)
        assert await client.read("Pod", "lab", "p", timeout_s=5.0) == pod()
    assert len(fake.asked) == 3
    assert time.slept == []

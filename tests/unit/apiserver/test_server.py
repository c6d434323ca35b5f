"""The API on a socket: requests, watches, who is admitted."""

import asyncio
import http.client
import json
import threading
import time
from asyncio import run
from collections.abc import Iterator
from contextlib import ExitStack
from socket import create_connection
from typing import Any

import aiohttp
import pytest

from pumice.apiserver import server as api_server
from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.clock import EPOCH, VirtualClock, wall_time
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import Connection
from pumice.errors import GoneError
from pumice.serve import http_server
from pumice.testing import pod

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster(VirtualClock())


@pytest.fixture
def server(cluster: Any) -> Iterator[Any]:
    server = ApiServer(RestApi(cluster))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def connection(server: Any) -> Iterator[Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    yield connection
    connection.close()


def ask(connection: Any, method: Any, path: Any, body: Any = None, headers: Any = None) -> Any:
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, headers or {})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def watch(connection: Any, query: str = "") -> Any:
    """Begin a watch; return a reader of its next event."""
    connection.request("GET", f"{PODS}?watch=true{query}")
    answer = connection.getresponse()
    assert answer.status == 200

    def step() -> Any:
        line = answer.readline()
        return json.loads(line) if line else None

    return step


def test_one_connection_serves_many_requests(connection: Any) -> None:
    assert ask(connection, "POST", PODS, pod("a"))[0] == 201
    assert ask(connection, "GET", f"{PODS}/a")[0] == 200
    assert ask(connection, "GET", f"{PODS}/b")[0] == 404


def test_clients_are_told_to_keep_no_answer(connection: Any) -> None:
    connection.request("GET", "/apis")
    answer = connection.getresponse()
    assert answer.headers["Cache-Control"] == "no-cache, private"
    answer.read()


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "localhost:1"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "http://localhost:2"}, 403),
        ({"Host": "localhost:1", "Origin": "https://localhost:1"}, 403),
        ({"Host": "localhost:1", "Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_web_pages_are_not_let_in(connection: Any, headers: Any, code: int) -> None:
    assert ask(connection, "GET", "/version", headers=headers)[0] == code


@pytest.mark.parametrize(("length", "code"), [("x", 400), ("-1", 400), (str(1 << 40), 413)])
def test_a_body_of_no_sane_length_is_refused(connection: Any, length: Any, code: Any) -> None:
    connection.putrequest("POST", PODS)
    connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status == code


def test_a_body_without_a_length_is_cut_off_when_it_gets_too_long(
    connection: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(api_server, "_LONGEST_BODY", 1000)
    connection.request("POST", PODS, iter([b" " * 600] * 2), encode_chunked=True)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["reason"]) == (413, "RequestEntityTooLarge")


def test_a_body_in_pieces_is_read(connection: Any) -> None:
    pieces = json.dumps(pod("a")).encode().partition(b":")
    connection.request("POST", PODS, iter(pieces), encode_chunked=True)
    assert connection.getresponse().status == 201


def test_a_body_that_does_not_come_is_given_up(connection: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(http_server, "BODY_TIMEOUT_S", 0.05)
    connection.putrequest("POST", PODS)
    connection.putheader("Content-Length", "10")
    connection.endheaders()
    assert connection.getresponse().status == 408


def test_the_number_of_watches_is_bounded(server: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(api_server, "_MOST_WATCHES", 2)
    with ExitStack() as stack:
        codes = []
        for _ in range(3):
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            stack.callback(client.close)
            client.request("GET", f"{PODS}?watch=1")
            codes.append(client.getresponse().status)
        assert codes == [200, 200, 429]


def test_a_fault_is_reported_and_does_not_end_the_server(
    server: Any, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(server.api, "answer", lambda request: 1 / 0)
        code, status = ask(connection, "GET", PODS)
    assert (code, status["message"]) == (500, "ZeroDivisionError: division by zero")
    assert ask(connection, "GET", PODS)[0] == 200


def test_a_watch_tells_what_is_there_and_what_happens(cluster: Any, connection: Any) -> None:
    cluster.create(pod("a"))
    step = watch(connection)
    assert (event := step())["type"] == "ADDED"
    assert event["object"]["metadata"]["name"] == "a"
    cluster.patch("Pod", "default", "a", {"metadata": {"labels": {"x": "1"}}})
    assert step()["type"] == "MODIFIED"
    cluster.delete("Pod", "default", "a", grace_s=0)
    assert step()["type"] == "DELETED"


def test_a_watch_goes_on_from_a_version(cluster: Any, connection: Any) -> None:
    cluster.create(pod("a"))
    _, version = cluster.list("Pod")
    cluster.create(pod("b"))
    step = watch(connection, f"&resourceVersion={version}")
    assert step()["object"]["metadata"]["name"] == "b"


def test_a_watch_ends_at_its_time_with_a_bookmark(cluster: Any, connection: Any) -> None:
    step = watch(connection, "&timeoutSeconds=1&allowWatchBookmarks=true")
    event = step()
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == str(cluster.version)
    assert step() is None


def test_a_watch_from_a_forgotten_version_is_reported_so(cluster: Any, connection: Any) -> None:
    cluster.create(pod("a"))
    cluster.create(pod("b"))
    cluster.compact()
    event = watch(connection, "&resourceVersion=1")()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_what_no_longer_fits_a_selector_is_reported_as_deleted(
    cluster: Any, connection: Any
) -> None:
    cluster.create(pod("a", labels={"app": "x"}))
    cluster.create(pod("b", labels={"app": "y"}))
    _, version = cluster.list("Pod")
    step = watch(connection, f"&resourceVersion={version}&labelSelector=app=x")
    for name, value in (("b", "x"), ("a", "y")):
        cluster.patch("Pod", "default", name, {"metadata": {"labels": {"app": value}}})
    reported = [(event["type"], event["object"]["metadata"]["name"]) for event in (step(), step())]
    assert reported == [("ADDED", "b"), ("DELETED", "a")]


def test_a_watch_says_when_the_start_is_reported(cluster: Any, connection: Any) -> None:
    cluster.create(pod("a"))
    step = watch(connection, "&sendInitialEvents=true&allowWatchBookmarks=true")
    assert step()["type"] == "ADDED"
    end = step()
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_stopping_ends_watches(server: Any, connection: Any) -> None:
    step = watch(connection)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    assert step() is None
    stopping.join()


def test_a_watch_over_websocket_sends_a_message_for_each_event(cluster: Any, server: Any) -> None:
    cluster.create(pod("a", labels={"text": "two"}))
    own = {"origin": server.url}

    async def watched() -> list[Any]:
        query = f"{server.url}{PODS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"
        async with aiohttp.ClientSession() as session, session.ws_connect(query, **own) as socket:
            events = [await socket.receive_json(timeout=20)]
            await asyncio.to_thread(cluster.create, pod("b"))
            events += [json.loads(message.data) async for message in socket]
            return events

    found = [(each["type"], each["object"]["metadata"].get("name")) for each in run(watched())]
    assert found == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", None)]


def test_stopping_ends_watches_over_websocket(server: Any) -> None:
    async def told() -> int | None:
        query = f"{server.url}{PODS}?watch=true"
        async with aiohttp.ClientSession() as session, session.ws_connect(query) as socket:
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            assert [message async for message in socket] == []
            await stopping
            return socket.close_code

    assert run(told()) == aiohttp.WSCloseCode.OK


def test_a_page_of_another_site_opens_no_websocket(server: Any) -> None:
    async def refused() -> int:
        async with aiohttp.ClientSession() as session:
            try:
                await session.ws_connect(f"{server.url}{PODS}?watch=true", origin="http://evil")
            except aiohttp.WSServerHandshakeError as error:
                return error.status
        return 0

    assert run(refused()) == 403


def test_a_port_that_is_taken_is_reported_at_once(cluster: Any, server: Any) -> None:
    with pytest.raises(OSError, match="in use"):
        ApiServer(RestApi(cluster), port=server.port)


def test_a_watch_of_a_client_that_left_is_forgotten(
    cluster: Any, server: Any, connection: Any
) -> None:
    async def look_over_websocket() -> None:
        query = f"{server.url}{PODS}?watch=true"
        async with aiohttp.ClientSession() as session, session.ws_connect(query) as socket:
            await socket.receive_json(timeout=20)

    cluster.create(pod("a"))
    assert watch(connection)()["type"] == "ADDED"
    run(look_over_websocket())
    connection.close()
    deadline = time.monotonic() + 20
    while server.watching and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.watching == 0


def test_ages_are_told_by_the_clock_of_the_cluster(server: Any, cluster: Any) -> None:
    cluster.clock.advance_to(EPOCH + 400 * 86_400)
    here = KubeCluster(Connection(server.url), qps=0)
    there = KubeCluster(Connection(server.url), qps=0, by_server=True)
    with here, there:
        for client in (here, there):
            client.list("Pod")
        assert there.now() == pytest.approx(cluster.now(), abs=60)
        assert here.now() == pytest.approx(wall_time(), abs=60)


@pytest.mark.parametrize("header", ["", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"])
@pytest.mark.parametrize("upgrade", [True, False])
def test_large_objects_of_watches_that_are_not_read_take_bounded_memory(
    cluster: Any, server: Any, monkeypatch: pytest.MonkeyPatch, header: str, *, upgrade: bool
) -> None:
    large = 24 << 20  # more than sockets hold
    monkeypatch.setattr(http_server, "_MOST_HELD", 4 * large)
    monkeypatch.setattr(http_server, "_SLOW_S", 60.0)
    spec = {"containers": [{"name": "c", "image": "i", "args": ["x" * large]}]}
    cluster.create({**pod("a"), "spec": spec})
    if upgrade:
        header += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        header += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    query = "watch=1&includeObject=Object"
    with ExitStack() as stack:
        clients = []
        for _ in range(6):
            client = create_connection(("127.0.0.1", server.port), 20)
            clients.append(stack.enter_context(client))
            head = f"GET {PODS}?{query} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"
            client.sendall(head.encode())
            time.sleep(0.2)  # they are answered in turn
        until = time.monotonic() + 20
        while server.watching > (1 if upgrade else 3) and time.monotonic() < until:
            time.sleep(0.05)
        assert 0 < server.watching <= (1 if upgrade else 3)  # the others have to ask again


def test_what_large_objects_were_is_forgotten(
    cluster: Any, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "_REMEMBERED", 100_000)
    base = "/api/v1/namespaces/default/configmaps"
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    ask(connection, "POST", base, large)
    first = cluster.version
    for number in range(10, 30):
        changed = {**large, "data": {"a": f"{number}" * 10_000}}
        assert ask(connection, "PUT", f"{base}/a", changed)[0] == 200
    with pytest.raises(GoneError):
        cluster.watch("ConfigMap", since=str(first))
    recent = cluster.watch("ConfigMap", since=str(cluster.version - 5))
    assert [event.object["data"]["a"][:2] for event in recent] == ["25", "26", "27", "28", "29"]

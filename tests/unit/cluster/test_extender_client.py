"""HttpExtenderClient: real calls over loopback, and every misbehaviour of the other side."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from pumice.cluster.extender_client import HttpExtenderClient
from pumice.errors import ExtenderError
from tests.unit.cluster import servers
from tests.unit.cluster.servers import OK

TIMEOUT = 0.2


@contextmanager
def serving(**answers: Any) -> Iterator[Any]:
    """Run a server; answers by path, as bytes or with a status."""

    def answer(path: Any, _headers: Any) -> Any:
        found = answers.get(path[1:], b"{}")
        return found if isinstance(found, tuple) else (200, found)

    with (
        servers.serving(answer) as server,
        closing(HttpExtenderClient(f"{server.url}/", 5.0)) as client,
    ):
        yield server, client


@contextmanager
def saying(
    *pieces: Any, hang: bool = False, pause_s: float = 0.0, timeout_s: Any = None, **options: Any
) -> Iterator[Any]:
    """Run a server that misbehaves; only one that hangs is given little time."""
    if timeout_s is None:
        timeout_s = TIMEOUT if hang else 20.0
    with (
        servers.saying(*pieces, hang=hang, pause_s=pause_s) as url,
        closing(HttpExtenderClient(url, timeout_s, **options)) as client,
    ):
        yield client


def test_a_payload_goes_out_as_json_and_the_answer_comes_back() -> None:
    with serving(predicate=b'{"code": 2}') as (server, client):
        assert client.post("predicate", {"task": {"Name": "p"}}) == {"code": 2}
        ((path, headers, body),) = server.asked
        assert (path, headers["Content-Type"]) == ("/predicate", "application/json")
        assert json.loads(body) == {"task": {"Name": "p"}}


def test_an_answer_nobody_wants_is_not_read_as_json() -> None:
    with serving(x=b"junk") as (_, client):
        assert client.post("x", {}, answer=False) == {}


@pytest.mark.parametrize("status", [201, 302, 404, 500])
def test_any_other_status_than_200_is_an_error(status: int) -> None:
    with serving(x=(status, b"{}")) as (_, client), pytest.raises(ExtenderError, match=str(status)):
        client.post("x", {})


@pytest.mark.parametrize(
    "answer",
    [b"", b"junk", b"[]", b"1", b"{} {}", b"\xff\xfe", b"[" * 200_000, b'{"code": NaN}'],
    ids=["empty", "junk", "list", "number", "two", "bytes", "deep", "no number"],
)
def test_an_answer_that_is_no_json_object_is_an_error(answer: Any) -> None:
    with serving(x=answer) as (_, client), pytest.raises(ExtenderError, match="JSON"):
        client.post("x", {})


def test_a_null_is_an_empty_answer() -> None:
    with serving(x=b" null\n") as (_, client):
        assert client.post("x", {}) == {}


@pytest.mark.parametrize("limit_s", [0.0, -1.0])
def test_a_limit_of_zero_is_a_long_one(limit_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    late = [OK, b"Content-Length: 2\r\n\r\n{}"]
    with saying(*late, pause_s=0.05, timeout_s=limit_s) as client:
        assert client.post("x", {}) == {}
    monkeypatch.setattr("pumice.cluster.extender_client._LONGEST_S", TIMEOUT)
    silent = saying(hang=True, timeout_s=limit_s)
    with silent as client, pytest.raises(ExtenderError, match="no answer in time"):
        client.post("x", {})


def test_a_server_that_drips_is_cut_off_at_the_same_deadline() -> None:
    """Each wait would be short enough by itself; the deadline is that of the whole call."""
    drops = [bytes([letter]) for letter in OK + b"A: " + b"b" * 400]
    begun = time.monotonic()
    with (
        saying(*drops, hang=True, pause_s=TIMEOUT / 4) as client,
        pytest.raises(ExtenderError, match="no answer in time"),
    ):
        client.post("x", {})
    assert time.monotonic() - begun < TIMEOUT * len(drops) / 4


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ([b""], "closed without an answer"),
        ([b"hello\r\n\r\n"], "it is not HTTP"),
        ([OK, b"Content-Length: 50\r\n\r\n{}"], "announced 50 bytes and sent 2"),
        ([OK, b"Content-Length: 99999999999\r\n\r\n{}"], "more than 10485760 bytes"),
        ([OK + b"Content-Length: 2\r\n\r\n{}" + OK], "more bytes arrived than announced"),
    ],
    ids=["hang-up", "no status", "short", "boast", "long"],
)  # fmt: skip
def test_a_server_that_does_not_speak_http_is_an_error(said: Any, match: str) -> None:
    with saying(*said) as client, pytest.raises(ExtenderError, match=match):
        client.post("x", {})


def test_a_flood_is_cut_off_at_the_cap() -> None:
    flood = [b"x" * 65536] * 200
    with (
        saying(OK, b"\r\n", *flood, timeout_s=5.0, max_answer=1 << 20) as client,
        pytest.raises(ExtenderError, match="more than 1048576 bytes"),
    ):
        client.post("x", {})


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "127.0.0.1:1", "http://", "http://[", "http://x:port", "http://a b\r\n"]
)
def test_an_address_that_makes_no_sense_is_an_error(url: str) -> None:
    with pytest.raises(ExtenderError):
        HttpExtenderClient(url, TIMEOUT).post("x", {})


def test_an_error_names_the_address() -> None:
    error = ExtenderError("http://x/y", "no answer in time")
    assert str(error) == "extender at http://x/y: no answer in time"

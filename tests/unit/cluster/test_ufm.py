"""The fabric manager: asked with credentials, bounded, never trusted, never waited for."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pumice.cluster import ufm
from pumice.cluster.ufm import BackgroundUfm, Port, Reading, UfmAccess, read_ports
from pumice.errors import HttpError
from tests.unit.cluster.servers import CA_FILE, OK, saying, serving

PORTS = [
    {"description": "Computer IB Port", "system_name": "h1", "peer_node_name": "leaf", "tier": 1},
    {"description": None, "more": {"than": ["is", "read"]}},
]


def answering(body: Any = PORTS, status: int = 200) -> Any:
    return lambda path, headers: (status, json.dumps(body).encode())


def access(url: str, **more: Any) -> UfmAccess:
    return UfmAccess(url, "me", "pässword", **more)


def test_ports_are_asked_for_with_credentials() -> None:
    with serving(answering()) as server:
        assert read_ports(access(server.url)) == [Port("Computer IB Port", "h1", "leaf"), Port()]
    ((path, headers, _),) = server.asked
    assert path == "/ufmRest/resources/ports"
    assert headers["Authorization"] == "Basic bWU6cMOkc3N3b3Jk"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (PORTS, 401, "answered with status 401"),
        (PORTS, 302, "answered with status 302"),
        ({"ports": []}, 200, "expected a JSON list of ports"),
        ([{"system_name": 5}], 200, "expected a JSON list of ports"),
        (["x"], 200, "expected a JSON list of ports"),
    ],
)
def test_an_answer_that_is_no_list_of_ports_is_refused(body: Any, status: int, said: str) -> None:
    with serving(answering(body, status)) as server, pytest.raises(HttpError, match=said) as error:
        read_ports(access(server.url))
    assert "pässword" not in str(error.value)


def test_answers_are_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufm, "_MAX_ANSWER", 1000)
    with serving(answering(PORTS * 100)) as server, pytest.raises(HttpError):
        read_ports(access(server.url))


def test_answers_are_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufm, "_TIMEOUT_S", 0.2)
    with saying(OK + b"Content-Length: 9\r\n\r\n[", hang=True) as url:
        before = time.monotonic()
        with pytest.raises(HttpError):
            read_ports(access(url))
    assert time.monotonic() - before < 4


def test_certificates_are_verified_by_the_secrets_authority_or_not_at_all() -> None:
    authority = Path(CA_FILE).read_text(encoding="ascii")
    with serving(answering(), tls=True) as server:
        assert len(read_ports(access(server.url, authority=authority))) == 2
        assert len(read_ports(access(server.url, verify=False))) == 2
        with pytest.raises(HttpError, match="tls"):
            read_ports(access(server.url))
        with pytest.raises(HttpError, match="expected certificates in PEM"):
            read_ports(access(server.url, authority="nonsense"))


class Slow:
    """Reads when it is allowed to; counts."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.reads: list[UfmAccess] = []
        self.fails = False

    def __call__(self, access: UfmAccess) -> list[Port]:
        self.reads.append(access)
        assert self.let.wait(30)
        if self.fails:
            raise HttpError(access.endpoint, "is away")
        return [Port("Computer", access.username, "leaf")]


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_nobody_waits_for_a_reading() -> None:
    slow = Slow()
    fabric = BackgroundUfm(slow)
    assert fabric.latest(UfmAccess("https://x", "u")) == Reading()
    slow.let.set()
    wait_for(lambda: fabric.latest(UfmAccess("https://x", "u")).ports is not None)
    assert len(slow.reads) == 1


def test_new_credentials_are_tried_at_once_and_old_answers_dropped() -> None:
    slow = Slow()
    fabric = BackgroundUfm(slow)
    fabric.latest(UfmAccess("https://x", "old"))
    wait_for(lambda: slow.reads)
    new = UfmAccess("https://x", "new")
    fabric.latest(new)
    slow.let.set()
    wait_for(lambda: fabric.latest(new).ports)
    assert fabric.latest(new).ports == [Port("Computer", "new", "leaf")]


def test_a_failed_reading_keeps_the_last_one_and_is_tried_again() -> None:
    slow, wanted = Slow(), UfmAccess("https://x", "u", interval_s=0.02)
    slow.let.set()
    fabric = BackgroundUfm(slow)
    fabric.latest(wanted)
    wait_for(lambda: fabric.latest(wanted).ports)
    slow.fails = True
    wait_for(lambda: fabric.latest(wanted).problem)
    assert fabric.latest(wanted).ports is not None
    assert "is away" in fabric.latest(wanted).problem
    slow.fails = False
    wait_for(lambda: not fabric.latest(wanted).problem)
    fabric.forget()
    time.sleep(0.05)
    count = len(slow.reads)
    time.sleep(0.1)
    assert len(slow.reads) <= count + 1

"""BlockingClient: certificates are verified, connections kept, secrets and queries not shown."""

import pickle
import socket
import ssl
import time
from contextlib import closing
from typing import Any

import pytest

from pumice.cluster.http.blocking import Answer, BlockingClient
from pumice.cluster.http.connection import HttpConnection
from pumice.cluster.http.tls import tls_context
from pumice.errors import HttpError
from tests.unit.cluster.servers import CA_FILE, OK, saying, serving


def greet(_path: Any, _headers: Any) -> Any:
    return 200, b'{"said": "hello"}'


def get(client: Any, path: str = "/x", timeout_s: float = 5.0, **options: Any) -> Any:
    return client.request("GET", path, deadline=time.monotonic() + timeout_s, **options)


def test_an_answer_of_any_status_is_given() -> None:
    with (
        serving(lambda *_: (418, b"tea")) as server,
        closing(BlockingClient(server.url)) as client,
    ):
        assert get(client, "/pot?size=1") == Answer(f"{server.url}/pot", 418, b"tea")
        assert server.asked[0][0] == "/pot?size=1"


def test_a_redirect_is_not_followed() -> None:
    with (
        serving(lambda *_: (302, b"")) as server,
        closing(BlockingClient(server.url)) as client,
    ):
        assert get(client).status == 302
        assert len(server.asked) == 1


class TestTls:
    def test_the_certificate_passes_the_strict_checks_of_newer_pythons(self) -> None:
        tls = tls_context(CA_FILE)
        tls.verify_flags |= ssl.VERIFY_X509_STRICT
        with (
            serving(greet, tls=True) as server,
            closing(BlockingClient(server.url, tls=tls)) as client,
        ):
            assert get(client).status == 200

    def test_an_unknown_authority_is_refused_before_anything_is_sent(self) -> None:
        with serving(greet, tls=True) as server, closing(BlockingClient(server.url)) as client:
            with pytest.raises(HttpError, match="CERTIFICATE_VERIFY_FAILED"):
                get(client, headers={"Authorization": "Bearer t"})
            assert server.asked == []

    def test_a_certificate_for_another_name_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        resolve = socket.getaddrinfo
        tls = tls_context(CA_FILE)
        with serving(greet, tls=True) as server:
            other = server.url.replace("127.0.0.1", "localhost.localdomain")
            elsewhere = BlockingClient(other, tls=tls)
            monkeypatch.setattr(
                socket,
                "getaddrinfo",
                lambda _host, *rest, **options: resolve("127.0.0.1", *rest, **options),
            )
            with closing(elsewhere) as client, pytest.raises(HttpError, match="localdomain"):
                get(client)
            assert server.asked == []

    def test_verifying_is_given_up_only_with_a_warning(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        tls = tls_context(verify=False)
        assert "NOT verified" in caplog.text
        with (
            serving(greet, tls=True) as server,
            closing(BlockingClient(server.url, tls=tls)) as client,
        ):
            assert get(client).status == 200

    def test_a_server_that_does_not_speak_tls_is_an_error(self) -> None:
        with (
            saying(OK) as url,
            closing(BlockingClient(url.replace("http:", "https:"))) as client,
            pytest.raises(HttpError, match=r"tls: \[SSL"),
        ):
            get(client)

    def test_a_handshake_that_hangs_ends_at_the_deadline(self) -> None:
        with (
            saying(hang=True) as url,
            closing(BlockingClient(url.replace("http:", "https:"))) as client,
            pytest.raises(HttpError, match="no answer in time"),
        ):
            get(client, timeout_s=0.1)

    def test_a_large_body_goes_out_whole(self) -> None:
        body = b"x" * (1 << 20)
        tls = tls_context(CA_FILE)
        with (
            serving(greet, tls=True) as server,
            closing(BlockingClient(server.url, tls=tls)) as client,
        ):
            deadline = time.monotonic() + 5
            client.request("POST", "/x", body, deadline=deadline)
            assert server.asked[0][2] == body


def test_a_kept_connection_that_dies_unnoticed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpConnection, "is_open", True)
    with (
        saying(OK, b"Content-Length: 2\r\n\r\n{}") as url,
        closing(BlockingClient(url)) as client,
    ):
        assert [get(client).content for _ in range(2)] == [b"{}", b"{}"]


def test_a_deadline_that_has_passed_opens_no_connection() -> None:
    with serving(greet) as server, closing(BlockingClient(server.url)) as client:
        with pytest.raises(HttpError, match="no answer in time"):
            get(client, timeout_s=-1.0)
        assert server.connections == set()


def test_an_answer_as_long_as_the_cap_is_read_and_one_byte_more_is_not() -> None:
    with serving(greet) as server, closing(BlockingClient(server.url)) as client:
        size = len(get(client).content)
        assert get(client, cap=size).status == 200
        with pytest.raises(HttpError, match="more than 16 bytes"):
            get(client, cap=size - 1)


def test_an_error_does_not_show_the_query() -> None:
    with pytest.raises(HttpError) as caught:
        get(BlockingClient("ftp://x"), "/y?long=query")
    assert caught.value.url == "ftp://x/y"


def test_an_error_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(HttpError("http://x", "no answer in time")))  # noqa: S301
    assert str(error) == "http://x: no answer in time"


@pytest.mark.parametrize("content", [b"junk", b"[1]", b"\xff", b"[" * 200_000, b"9" * 5000])
def test_content_that_is_no_json_object_is_an_error(content: Any) -> None:
    with pytest.raises(HttpError, match="JSON"):
        Answer("http://x", 200, content).json_object()

"""The cluster of the commands: what it asks for, and how it takes an answer."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pumice.cli.connect import ConnectOptions, connect
from pumice.errors import (
    AlreadyExistsError,
    ConflictError,
    GoneError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)

TOKEN = {"token": "t0p"}
JOB = "Job.batch.volcano.sh"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/lab/jobs"


class Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False

    def __init__(self, answers: Any) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: list[Any] = []
        self.answers = list(answers)


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = (self.command, self.path, json.loads(body) if body else None)
        server = self.server
        assert isinstance(server, Server)
        server.asked.append((*asked, dict(self.headers)))
        status, content = server.answers.pop(0)
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


def commands_cluster(server: Any, folder: Any) -> Any:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [
            {"name": "k", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ],
        "users": [{"name": "u", "user": TOKEN}],
    }
    file = Path(folder) / "config"
    file.write_text(json.dumps(config))
    return connect(ConnectOptions(str(file)), {})


@contextmanager
def serving(*answers: Any) -> Iterator[Any]:
    with Server(answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with TemporaryDirectory() as folder, commands_cluster(server, folder) as cluster:
                yield cluster, server.asked
        finally:
            server.shutdown()
            thread.join()


def job(name: str = "j") -> Any:
    metadata = {"name": name, "namespace": "lab"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata}


def test_objects_are_read_and_written_at_their_addresses() -> None:
    with serving(*[(200, job())] * 5) as (cluster, asked):
        assert cluster.get(JOB, "lab", "j") == job()
        cluster.create(job())
        cluster.update(job())
        cluster.update_status(job())
        cluster.get("Queue.scheduling.volcano.sh", "", "q")
    assert [one[:3] for one in asked] == [
        ("GET", f"{JOBS}/j", None),
        ("POST", JOBS, job()),
        ("PUT", f"{JOBS}/j", job()),
        ("PUT", f"{JOBS}/j/status", job()),
        ("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/q", None),
    ]
    assert {one[3]["Authorization"] for one in asked} == {"Bearer t0p"}


def test_a_list_comes_in_pages_and_its_items_get_their_kind() -> None:
    first = {
        "metadata": {"continue": "next", "resourceVersion": "7"},
        "items": [{"metadata": {"name": "a"}}],
    }
    last = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}}]}
    with serving((200, first), (200, last)) as (cluster, asked):
        items, version = cluster.list("Pod", "lab", {"app": "x"})
    head = {"apiVersion": "v1", "kind": "Pod"}
    assert items == [{**head, "metadata": {"name": name}} for name in ("a", "b")]
    assert version == "7"
    assert asked[0][1] == "/api/v1/namespaces/lab/pods?limit=500&labelSelector=app%3Dx"
    assert asked[1][1].endswith("&continue=next")


def test_patches_say_what_kind_they_are() -> None:
    with serving(*[(200, job())] * 2) as (cluster, asked):
        cluster.patch(JOB, "lab", "j", {"a": 1})
        cluster.patch(JOB, "lab", "j", [], patch_type="json", subresource="status")
    types = [one[3]["Content-Type"] for one in asked]
    assert types == ["application/merge-patch+json", "application/json-patch+json"]
    assert asked[1][1] == f"{JOBS}/j/status"


def test_a_deletion_carries_its_conditions() -> None:
    with serving((200, {})) as (cluster, asked):
        cluster.delete(JOB, "lab", "j", grace_s=0, uid="u")
    assert asked[0][2] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
    }


def test_pods_are_bound_and_evicted_and_events_written() -> None:
    with serving(*[(200, {})] * 4) as (cluster, asked):
        cluster.bind("lab", "p", "n1", {"a": "b"})
        cluster.evict("lab", "p", "made room")
        cluster.record(job(), "Normal", "Done", "all of it", "pumice")
    assert [one[:2] for one in asked] == [
        ("POST", "/api/v1/namespaces/lab/pods/p/binding"),
        ("PATCH", "/api/v1/namespaces/lab/pods/p/status"),
        ("DELETE", "/api/v1/namespaces/lab/pods/p"),
        ("POST", "/api/v1/namespaces/lab/events"),
    ]
    assert asked[0][2]["target"]["name"] == "n1"
    assert asked[3][2]["metadata"]["name"].startswith("j.")


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (404, "NotFound", NotFoundError),
        (409, "AlreadyExists", AlreadyExistsError),
        (409, "Conflict", ConflictError),
        (410, "Expired", GoneError),
        (422, "Invalid", RejectedError),
        (400, None, RejectedError),
    ],
)
def test_a_refusal_keeps_the_words_of_the_server(code: int, reason: Any, error: Any) -> None:
    status = {"kind": "Status", "reason": reason, "message": "no, because"}
    with serving((code, status)) as (cluster, _), pytest.raises(error) as caught:
        cluster.get(JOB, "lab", "j")
    assert caught.value.problem == "no, because"


def test_a_refusal_that_is_no_status_is_reported_as_far_as_it_goes() -> None:
    with serving((502, b"bad gateway")) as (cluster, _), pytest.raises(UnavailableError) as caught:
        cluster.get(JOB, "lab", "j")
    assert caught.value.problem == "bad gateway"


def test_a_watch_gives_steps_and_ends_in_an_error_if_the_server_says_so() -> None:
    steps = [
        {"type": "ADDED", "object": job()},
        {"type": "ERROR", "object": {"reason": "Expired", "message": "too old"}},
    ]
    lines = b"".join(json.dumps(step).encode() + b"\n" for step in steps)
    with serving((200, lines)) as (cluster, asked):
        watch = cluster.watch(JOB, "lab", "5")
        assert next(watch).object == job()
        with pytest.raises(GoneError):
            next(watch)
    assert "watch=true" in asked[0][1]
    assert "resourceVersion=5" in asked[0][1]


def test_a_cluster_out_of_reach_is_reported_as_by_other_clients() -> None:
    with (
        connect(ConnectOptions(master="http://127.0.0.1:1"), {}) as cluster,
        pytest.raises(UnavailableError) as caught,
    ):
        cluster.get("Pod", "lab", "p")
    assert caught.value.problem == (
        'Get "http://127.0.0.1:1/api/v1/namespaces/lab/pods/p": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


def test_a_kind_nobody_knows_is_refused() -> None:
    with serving() as (cluster, asked), pytest.raises(RejectedError):
        cluster.get("Strange.example.com", "", "s")
    assert asked == []

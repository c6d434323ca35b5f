"""Names, values and messages from outside: none of them writes on the terminal what it likes."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main

EVIL = "a\x1b[31mb\x1b]0;title\x07\u202ec\u200b\ufeff\x9b2J\x7f\r\nFAKE: line\u2028\U000e0041ü中文"
"""Terminal escapes, marks of direction, characters without width, line breaks; and letters."""
RAW = re.compile(
    r"[^\S\n\t ]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff\U000e0041]"
)
GOOD = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2, "queue": "default"},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "labels": {"app": "x"},
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeSelector": {"zone": "a"},
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}},
            ],
        },
    },
    {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {
            "minAvailable": 1,
            "queue": "default",
            "tasks": [
                {
                    "name": "t",
                    "replicas": 1,
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                }
            ],
        },
    },
]
PLACES = {
    "node": (0, "metadata", "name"),
    "resource": (0, "status", "allocatable"),
    "queue": (1, "metadata", "name"),
    "weight": (1, "spec", "weight"),
    "state": (1, "status"),
    "group": (2, "metadata", "name"),
    "namespace": (2, "metadata", "namespace"),
    "queue of a group": (2, "spec", "queue"),
    "number": (2, "spec", "minMember"),
    "pod": (3, "metadata", "name"),
    "label": (3, "metadata", "labels", "app"),
    "group of a pod": (3, "metadata", "annotations", "scheduling.k8s.io/group-name"),
    "selector": (3, "spec", "nodeSelector", "zone"),
    "amount": (3, "spec", "containers", 0, "resources", "requests", "cpu"),
    "job": (4, "metadata", "name"),
    "task": (4, "spec", "tasks", 0, "name"),
    "image": (4, "spec", "tasks", 0, "template", "spec", "containers", 0, "image"),
    "kind": (4, "kind"),
    "version": (4, "apiVersion"),
}
VERBS = {
    "run": ("run", "FILE"),
    "run json": ("run", "FILE", "-o", "json"),
    "run yaml": ("run", "FILE", "-o", "yaml"),
    "test": ("test", "FILE"),
    "lint": ("lint", "FILE"),
    "lint json": ("lint", "FILE", "-o", "json"),
    "lint yaml": ("lint", "FILE", "-o", "yaml"),
    "explain": ("explain", "-f", "FILE"),
    "explain json": ("explain", "-f", "FILE", "-o", "json"),
    "explain job": ("explain", "-f", "FILE", "EVIL"),
    "queue order": ("queue", "order", "-f", "FILE"),
    "queue order yaml": ("queue", "order", "-f", "FILE", "-o", "yaml"),
    "whatif": ("whatif", "-f", "FILE", "--add-nodes", "1"),
    "whatif set": ("whatif", "-f", "FILE", "--set", "queue/EVIL.spec.weight=2"),
    "snapshot": ("snapshot", "show", "FILE"),
    "snapshot diff": ("snapshot", "diff", "GOOD", "FILE"),
    "sim": ("sim", "--trace", "FILE", "--dir", "OUT"),
    "config check": ("config", "check", "FILE"),
    "job list": ("job", "list", "-k", "FILE"),
    "job run": ("job", "run", "-f", "FILE", "--master", "http://127.0.0.1:1"),
    "vcctl": ("vcctl", "job", "run", "-f", "FILE", "--master", "http://127.0.0.1:1"),
}


def spoilt(place: tuple[Any, ...]) -> list[Any]:
    objects: Any = json.loads(json.dumps(GOOD))
    holder = objects
    for step in place[:-1]:
        holder = holder.setdefault(step, {}) if isinstance(holder, dict) else holder[step]
    last = holder.get(place[-1]) if isinstance(holder, dict) else None
    holder[place[-1]] = {**last, EVIL: "1"} if isinstance(last, dict) else EVIL
    return list(objects)


def check(result: Any) -> None:
    """No mark arrives, no line begins as the text wanted it to, and data can be read."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not RAW.search(result.output), RAW.findall(result.output)
    assert not [line for line in result.output.splitlines() if line.lstrip().startswith("FAKE")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(yaml.safe_dump_all(GOOD))
    return tmp_path


def called(folder: Path, words: tuple[str, ...], file: str = "evil.yaml") -> Any:
    names = {"FILE": file, "GOOD": "good.yaml", "OUT": str(folder / "out"), "EVIL": EVIL}
    return CliRunner().invoke(main, [names.get(word, word).replace("EVIL", EVIL) for word in words])


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", VERBS)
def test_no_text_of_a_file_reaches_the_terminal_as_it_is(folder: Path, verb: str) -> None:
    for place in PLACES.values():
        (folder / "evil.yaml").write_text(json.dumps({"kind": "List", "apiVersion": "v1",
                                                      "items": spoilt(place)}))  # fmt: skip
        result = called(folder, VERBS[verb])
        check(result)
        if verb.endswith("json") and result.stdout:
            json.loads(result.stdout)
        if verb.endswith("yaml") and result.stdout:
            yaml.safe_load(result.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_no_name_of_a_file_reaches_the_terminal_as_it_is(folder: Path, verb: str) -> None:
    name = EVIL.replace("/", "") + ".yaml"
    for content in ("kind: [", json.dumps(GOOD[0]), "objects: 5", "actions: nothing\ntiers: []"):
        (folder / name).write_text(content)
        check(called(folder, VERBS[verb], name))
        check(called(folder, VERBS[verb], f"missing-{name}"))


def test_data_means_what_it_holds(folder: Path) -> None:
    (folder / "evil.yaml").write_text(json.dumps(spoilt(PLACES["kind"])[4]))
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        result = called(folder, ("lint", "FILE", "-o", output))
        assert EVIL in json.dumps(read(result.stdout), ensure_ascii=False).encode().decode(
            "unicode_escape", "ignore"
        ) or any(EVIL in str(value) for one in read(result.stdout) for value in one.values())


def test_letters_of_all_languages_stay(folder: Path) -> None:
    (folder / "evil.yaml").write_text(
        "kind: Größe-数量-مرحبا\napiVersion: v1\nmetadata: {name: 5}\n"
    )
    assert "Größe-数量-مرحبا" in called(folder, ("run", "FILE")).output


@pytest.mark.parametrize(
    "words",
    [("--EVIL",), ("EVIL",), ("run", "--EVIL"), ("run", "x", "-o", "EVIL"), ("job", "EVIL"),
     ("sim", "--trace", "x", "--period", "EVIL"), ("vcctl", "EVIL"), ("vcctl", "job", "--EVIL"),
     ("vcctl", "help", "EVIL"), ("serve", "scheduler", "--EVIL=1"), ("job", "list", "-s", "EVIL"),
     ("explain", "-f", "good.yaml", "--now", "EVIL"), ("plugin", "show", "EVIL")],
)  # fmt: skip
def test_no_word_of_a_command_line_reaches_the_terminal_as_it_is(
    folder: Path, words: tuple[str, ...]
) -> None:
    check(called(folder, words))


class Evil(BaseHTTPRequestHandler):
    """An API server whose every text is hostile; it refuses what is not a list."""

    def do_GET(self) -> None:
        item = {
            "metadata": {
                "name": EVIL,
                "namespace": EVIL,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"queue": EVIL, "schedulerName": EVIL},
            "status": {"state": {"phase": EVIL}, "phase": EVIL},
        }
        found: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": [item]}
        code = 200
        if "jobs/" in self.path:
            found = item
        elif "nodes" in self.path or "queues" in self.path:
            code = 403
            found = {"kind": "Status", "message": EVIL, "reason": EVIL, "code": 403}
        body = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  # as the library calls it

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def evil_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "words",
    [("job", "list"), ("job", "list", "-o", "wide"), ("job", "list", "-o", "name"),
     ("job", "list", "-o", "json"), ("job", "list", "-o", "yaml"), ("job", "view", "--name", "x"),
     ("job", "suspend", "--name", "x"), ("queue", "list"), ("pod", "list"), ("jobflow", "list"),
     ("jobtemplate", "list", "-o", "yaml"), ("explain",), ("queue", "order"), ("doctor",),
     ("snapshot", "save", "--output", "saved.yaml"), ("whatif", "--add-nodes", "1"),
     ("vcctl", "job", "list"), ("vcctl", "job", "view", "--name", "x"), ("vcctl", "queue", "list")],
)  # fmt: skip
def test_no_text_of_a_server_reaches_the_terminal_as_it_is(
    folder: Path, evil_server: str, words: tuple[str, ...]
) -> None:
    result = called(folder, (*words, "--master", evil_server))
    check(result)
    if words[-1] == "json":
        assert json.loads(result.stdout)["items"][0]["metadata"]["name"] == EVIL
    if words[-1] == "yaml" and words[0] == "job":
        assert yaml.safe_load(result.stdout)["items"][0]["metadata"]["name"] == EVIL


def test_a_report_for_build_servers_is_right_xml(folder: Path) -> None:
    scenario = {"objects": spoilt(PLACES["pod"]), "expect": {"binds": {EVIL: "n1"}}}
    (folder / f"{EVIL.replace('/', '')}.yaml").write_text(json.dumps(scenario))
    check(called(folder, ("test", ".", "--junit", "report.xml")))
    root = ET.fromstring((folder / "report.xml").read_bytes())  # noqa: S314  (what is tested)
    assert int(root[0].attrib["tests"]) >= 1
    assert not RAW.search((folder / "report.xml").read_text())


def test_no_note_is_longer_than_a_screen_or_two(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(f"kind: {'x' * 1_000_000}\n")
    found = CliRunner().invoke(main, ["run", str(tmp_path / "long.yaml"), "-o", "json"])
    assert "xxx" in found.stderr
    assert len(found.stderr) < 5_000

"""Recorded command lines of Volcano's vcctl, run against ours.

A case holds the objects in the API server, the command, and its output and requests.  The
server is simulated from the recording; everything else is the real `pumice vcctl`.
"""

import contextlib
import copy
import difflib
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, cast

from pumice.api.kinds import BUILT_IN, Manifest, kind_of
from pumice.api.output_files import write_file
from pumice.api.times import epoch
from pumice.cli.connect import connect
from pumice.cli.vcctl.command import run_vcctl
from pumice.cluster.base import Cluster
from pumice.errors import AlreadyExistsError, ClusterError, NotFoundError, RejectedError

_KINDS: Final = {kind.name: kind for kind in BUILT_IN}
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_HIDDEN_UID: Final = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_FAILURE: Final = re.compile(
    r"^Failed to \w+ \w+: (.*?)(?=\n(?:Failed to|Created|Deleted) |\n?\Z)", re.MULTILINE | re.DOTALL
)
_LATER: Final = (0, 1)  # the clock was read just before the command

Write = tuple[str, str, Any]
"""Method, address and body of a request that changes something."""


def is_vcctl_case(case: Mapping[str, Any]) -> bool:
    """Return whether a recorded case is of this kind."""
    return isinstance(case.get("command"), list) and "exitCode" in case


def run_vcctl_case(case: Mapping[str, Any]) -> list[str]:
    """Run the command of a case and list how the outcome differs from the recorded one."""
    found: list[str] = []
    for later in _LATER:
        found = _run(case, later)
        if not found:
            return []
    return found


def _run(case: Mapping[str, Any], later: int) -> list[str]:
    played = _PlayedCluster(case, later)

    def connect_to(options: Any) -> AbstractContextManager[Cluster]:
        named = options.kubeconfig or options.master
        return connect(options, {}) if named else contextlib.nullcontext(cast("Cluster", played))

    out: list[str] = []
    err: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in (case.get("files") or {}).items():
            write_file(Path(name), text)
        code = run_vcctl(case["command"][1:], connect_to, out.append, err.append)
    return [
        *_text_differences("stdout", _wanted(case), "".join(out), case),
        *_text_differences("stderr", [case["stderr"]], "".join(err), case),
        *([f"exit code: {code}, expected {case['exitCode']}"] if code != case["exitCode"] else []),
        *_write_differences(case, played.writes),
    ]


def _wanted(case: Mapping[str, Any]) -> list[str]:
    """Return the accepted texts: the exact one, or any of those seen."""
    if "stdoutExact" in case:
        return [case["stdoutExact"]]
    return [case["stdout"], *case.get("stdoutVariants", ())]


def _text_differences(
    stream: str, wanted: list[str], found: str, case: Mapping[str, Any]
) -> Iterable[str]:
    if case["command"][1:] == ["version"]:  # the build is another program: labels only
        wanted, found = [_labels(text) for text in wanted], _labels(found)
    if found in wanted:
        return ()
    lines = difflib.unified_diff(
        wanted[0].splitlines(), found.splitlines(), "expected", "found", lineterm="", n=0
    )
    return [f"{stream}: {line}" for line in lines]


def _labels(text: str) -> str:
    return "".join(f"{line.partition(':')[0]}\n" for line in text.splitlines())


def _write_differences(case: Mapping[str, Any], found: list[Write]) -> list[str]:
    """Compare the changes that were accepted; refused ones need not be sent."""
    wanted = [
        _write(request["method"], request["path"], request.get("body"))
        for request in case["requests"]
        if request["method"] != "GET" and request["status"] < 400
    ]
    if wanted == found:
        return []
    return [f"changes: {found}, expected {wanted}"]


def _write(method: str, path: str, body: Any) -> Write:
    """Make a request comparable: uids differ, the namespace is already in the address."""
    if method == "DELETE":
        return method, path, None
    body = _hide_uids(body)
    if isinstance(body.get("metadata"), dict):
        body["metadata"].pop("namespace", None)
    return method, path, body


def _hide_uids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hide_uids(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_hide_uids(item) for item in value]
    return _UID.sub(_HIDDEN_UID, value) if isinstance(value, str) else value


class _PlayedCluster:
    """The API server of one case: its objects, and its recorded answers to changes."""

    def __init__(self, case: Mapping[str, Any], later: int) -> None:
        self._now = epoch(case["now"]) + later
        self._objects = {_identity(item): item for item in case["objectsBefore"]}
        self._requests = [one for one in case["requests"] if one["method"] != "GET"]
        self._messages = iter(_FAILURE.findall(case["stdout"]))
        self.writes: list[Write] = []

    def now(self) -> float:
        return self._now

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        item = self._objects.get((kind, namespace, name))
        if item is None:
            raise NotFoundError(kind, namespace, name)
        return copy.deepcopy(item)

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        chosen = [
            copy.deepcopy(item)
            for (one, place, _), item in self._objects.items()
            if one == kind and namespace in ("", place)
        ]
        wanted = (labels or {}).items()
        return [
            item for item in chosen if wanted <= (item["metadata"].get("labels") or {}).items()
        ], "1"

    def create(self, manifest: Manifest) -> Manifest:
        """Store an object, unless the recorded server refused it."""
        kind, namespace, name = _identity(manifest)
        self._ask("POST", kind, namespace, name, manifest)
        return manifest

    def patch(self, kind: str, namespace: str, name: str, patch: Any, **_: Any) -> Manifest:
        """Apply a change, unless the recorded server refused it."""
        self._ask("PATCH", kind, namespace, name, patch)
        return self.get(kind, namespace, name)

    def delete(self, kind: str, namespace: str, name: str, **_: Any) -> None:
        """Apply a deletion, unless the recorded server refused it."""
        self._ask("DELETE", kind, namespace, name, None)

    def _ask(self, method: str, kind: str, namespace: str, name: str, body: Any) -> None:
        path = _path(kind, namespace, "" if method == "POST" else name)
        recorded = self._requests.pop(0) if self._requests else {"status": 500}
        if recorded["status"] < 400:
            self.writes.append(_write(method, path, body))
            return
        message = next(self._messages, "nothing recorded")
        raise _refusal(recorded["status"], method, (kind, namespace, name), message)


def _refusal(
    status: int, method: str, identity: tuple[str, str, str], message: str
) -> ClusterError:
    """Make the error of a refused change; only a text that the server alone can know is its own."""
    if status == 404 and method == "POST":
        return NotFoundError("Namespace", "", identity[1])
    if status == 404:
        return NotFoundError(*identity)
    if status == 409:
        return AlreadyExistsError(*identity)
    return RejectedError(problem=message)


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return kind_of(manifest), metadata.get("namespace", ""), metadata.get("name", "")


def _path(kind: str, namespace: str, name: str) -> str:
    known = _KINDS[kind]
    root = f"/apis/{known.api_version}" if known.group else f"/api/{known.version}"
    inside = f"/namespaces/{namespace}" if known.namespaced else ""
    return f"{root}{inside}/{known.plural}" + (f"/{name}" if name else "")

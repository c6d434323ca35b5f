"""Staged situations: read, changed by a remedy, and compared with an answer.

Nothing here asks the code that explains: a remedy is applied to the manifests of the file, and the
changed cluster is decided by the scheduler.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from pumice.api.codes import Cause, Spared
from pumice.api.quantity import milli_value
from pumice.cluster.embedded.quotas import quota_status
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.runner import Replay, Timeline
from pumice.diagnosis.sources import load_world
from pumice.errors import InputError
from pumice.framework.registry import load_plugins

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.yaml"))
CAUSES = frozenset(map(str, Cause))
NOT_EVICTED = frozenset(map(str, Spared))
_SCENE = ("objects", "conf", "now", "nodeUsage")
_JOB_KINDS = frozenset({"Job", "PodGroup"})
_CYCLES = 40
"""Cycles within which a remedy must show: pods that leave have at most half a minute left."""

Content = dict[str, Any]


def read(path: Path) -> Content:
    """Return the content of a file."""
    return dict(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))


def world_of(content: Content) -> ClusterState:
    """Return the cluster of a situation, as the commands load it."""
    scene = {key: content[key] for key in _SCENE if key in content}
    world = load_world([json.dumps(scene)])
    world = replace(world, asks_extender=bool(content.get("askExtender")))
    if "plugin" in content:
        world = replace(world, plugins=load_plugins([str(HERE / content["plugin"])]))
    return world


# The extender of a situation


@contextmanager
def extender(content: Content) -> Iterator[Content]:
    """Serve the answers of a situation's extender, and yield the situation with its address.

    ``asked`` of it lists the verbs that were asked.
    """
    if "extender" not in content:
        yield content
        return
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(content["extender"], asked))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        conf = json.dumps(content["conf"]).replace("EXTENDER", address)
        yield {**content, "conf": json.loads(conf), "asked": asked}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answering(answers: Mapping[str, Any], asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(self.path.removeprefix("/"))
            body = json.dumps(answers.get(asked[-1], {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the library's name
            """Keep quiet."""

    return Service


# What the scheduler does with a job


def stands(world: ClusterState, name: str) -> str:
    """Return the state of a job after one cycle, with the pods that can be made."""
    world = world.edited(_creatable(world))
    try:
        job = world.find_job(name)
    except InputError:
        return "waits"  # its pod group is not made
    pods = {_key(pod): pod for pod in world.pods_by_group.get(job, ())}
    decisions = Replay(world).decide()
    if pods.keys() & decisions.binds.keys():
        return "starts"
    if not pods or any(not pod["spec"].get("nodeName") for pod in pods.values()):
        return "waits"
    gone = {key for key, pod in pods.items() if pod["metadata"].get("deletionTimestamp")}
    if gone or pods.keys() & set(decisions.evictions):
        return "evicted"
    phases = {pod["status"]["phase"] for pod in pods.values()}
    return "finished" if phases <= {"Succeeded", "Failed"} else "runs"


def gets_going(world: ClusterState, name: str) -> bool:
    """Return whether a job starts, is admitted before its pods are made, or is promised nodes."""
    world = world.edited(_creatable(world))
    job = world.find_job(name)
    before = (world.groups.get(job, {}).get("status") or {}).get("phase", "")
    pods = {_key(pod) for pod in world.pods_by_group.get(job, ())}
    decisions = Replay(world).decide()
    if pods & (decisions.binds.keys() | decisions.pipelined.keys()):
        return True
    timeline = Timeline(world)
    for _ in range(_CYCLES):
        if timeline.next_at is None or timeline.next_at - timeline.start > _CYCLES:
            return False
        decisions = timeline.step()
        if pods & (decisions.binds.keys() | decisions.pipelined.keys()):
            return True
        state = decisions.pod_groups.get(job)
        if not pods and before in ("", "Pending") and state and state.phase == "Inqueue":
            return True
    return False


def _creatable(world: ClusterState) -> Callable[[Any], Any]:
    """Return what drops pods that an API server would not create: their class does not exist."""
    classes = {"", *world.of_kind("PriorityClass")}

    def keep(one: Any) -> Any:
        named = (one.get("spec") or {}).get("priorityClassName", "")
        is_known = named in classes or named.startswith("system-")
        return one if one["kind"] != "Pod" or is_known else None

    return keep


def _key(manifest: Mapping[str, Any]) -> str:
    meta = manifest["metadata"]
    return f"{meta.get('namespace', 'default')}/{meta['name']}"


# Changes


def changed(content: Content, changes: list[dict[str, Any]]) -> Content:
    """Return a situation after the changes of a remedy."""
    out = copy.deepcopy(content)
    for change in changes:
        if change["op"] == "conf":
            out["conf"] = change["text"]
        else:
            out["objects"] = _CHANGES[change["op"]](out["objects"], change)
    return out


def _patch(objects: list[Any], change: dict[str, Any]) -> list[Any]:
    found = [one for one in objects if _is(one, change)]
    assert len(found) == 1, f"{change} is about an object that is not there"
    for step in change["patch"]:
        _step(found[0], step)
    return _without_children(objects, change)  # the controller of a Job makes them again


def _add(objects: list[Any], change: dict[str, Any]) -> list[Any]:
    new = change["object"]
    meta = new["metadata"]
    named = {"kind": new["kind"], "namespace": meta.get("namespace", ""), "name": meta["name"]}
    if new["kind"] == "Queue":  # its controller opens it
        new = {"status": {"state": "Open"}, **new}
    return [*(one for one in objects if not _is(one, named)), new]


def _remove(objects: list[Any], change: dict[str, Any]) -> list[Any]:
    left = [one for one in objects if not _is(one, change)]
    assert len(left) < len(objects), f"{change} is about an object that is not there"
    return _without_children(left, change)


def _wait(objects: list[Any], change: dict[str, Any]) -> list[Any]:
    """Take pods away; if they are not made yet, the Volcano Jobs that would make them.

    Meanwhile the controller of quotas counts the pods that are left.
    """
    gone = set(change["pods"])
    there = {_key(one) for one in objects if one["kind"] == "Pod"}
    jobs = {_key(one) for one in objects if one["kind"] == "Job"}
    over = {job for pod in gone - there for job in jobs if pod.startswith(f"{job}-")}
    assert gone <= there or over, f"{change} is about pods that are not there"
    ended = {"Pod": gone, "Job": over}
    left = [one for one in objects if _key(one) not in ended.get(one["kind"], ())]
    return [_recounted(one, left) if one["kind"] == "ResourceQuota" else one for one in left]


def _recounted(quota: Any, objects: list[Any]) -> Any:
    space = quota["metadata"].get("namespace", "default")

    def listed(kind: str) -> list[Any]:
        there = (one for one in objects if one["kind"] == kind)
        return [one for one in there if one["metadata"].get("namespace", "default") == space]

    return {**quota, "status": quota_status(quota, listed)} if quota.get("status") else quota


_CHANGES = {"patch": _patch, "add": _add, "remove": _remove, "wait": _wait}


def _without_children(objects: list[Any], change: dict[str, Any]) -> list[Any]:
    """Drop what was made for a Volcano Job and does not run yet."""
    if change["kind"] != "Job":
        return objects
    return [one for one in objects if not _made_for(one, change["name"])]


def _is(manifest: Mapping[str, Any], named: Mapping[str, Any]) -> bool:
    meta = manifest["metadata"]
    same = (manifest["kind"], meta["name"]) == (named["kind"], named["name"])
    space = named.get("namespace") or "default"
    return same and meta.get("namespace", space) == space


def _made_for(manifest: Mapping[str, Any], job: str) -> bool:
    meta = manifest["metadata"]
    owned = any(owner.get("name") == job for owner in meta.get("ownerReferences") or ())
    placed = bool((manifest.get("spec") or {}).get("nodeName"))
    return manifest["kind"] in ("Pod", "PodGroup") and owned and not placed


def _step(document: Any, step: Mapping[str, Any]) -> None:
    """Apply one operation of RFC 6902."""
    *path, last = [
        each.replace("~1", "/").replace("~0", "~") for each in step["path"].split("/")[1:]
    ]
    holder = document
    for each in path:
        holder = holder[int(each)] if isinstance(holder, list) else holder[each]
    if isinstance(holder, list):
        at = len(holder) if last == "-" else int(last)
        if step["op"] == "add":
            holder.insert(at, step["value"])
        elif step["op"] == "remove":
            del holder[at]
        else:
            _set(holder, at, step)
    elif step["op"] == "remove":
        del holder[last]
    else:
        _set(holder, last, step)


def _set(holder: Any, at: Any, step: Mapping[str, Any]) -> None:
    if step["op"] == "test":
        assert holder[at] == step["value"], f"{step} does not hold"
        return
    assert step["op"] in ("add", "replace"), f"unknown operation {step}"
    assert step["op"] == "add" or isinstance(holder, list) or at in holder, f"{step} replaces none"
    holder[at] = step["value"]


_CLAUSE = re.compile(r"(?=\b(?:lower|raise)\b)")
_MOVE = re.compile(r"from (\d[\w.]*) to (\d[\w.]*)")


def wrong_moves(text: str) -> list[str]:
    """Return the numbers of a remedy that are lowered upwards, or raised downwards."""
    found = []
    for clause in _CLAUSE.split(text):
        for old, new in _MOVE.findall(clause):
            move = milli_value(new) - milli_value(old)
            if not (move > 0 if clause.startswith("raise") else move < 0):
                found.append(f"{clause}: {old} to {new}")
    return found


# Comparing


def differences(truth: Mapping[str, Any], reported: Mapping[str, Any]) -> list[str]:
    """Return the errors of an explanation, a line each."""
    states = truth["state"] if isinstance(truth["state"], list) else [truth["state"]]
    if reported["state"] not in states:
        return [f"state: said {reported['state']}, is {' or '.join(states)}"]
    if reported["state"] != "waits":
        return []
    return [
        *_causes(truth, reported["causes"]),
        *_not_evicted(truth.get("notEvicted", {}), reported["notEvicted"]),
        *_funnel(truth.get("funnel", []), reported["funnel"]),
        *_remedies(truth.get("remedies", {}), reported["remedies"]),
    ]


def _causes(truth: Mapping[str, Any], causes: list[Any]) -> Iterator[str]:
    if not causes:
        yield "causes: none is given"
        return
    codes = [cause["code"] for cause in causes]
    if codes[0] not in truth["first"]:
        yield f"first cause: said {codes[0]}, is {' or '.join(truth['first'])}"
    for wanted in truth["codes"]:
        if not set(wanted.split("|")) & set(codes):
            yield f"causes: {wanted} holds and is not among {', '.join(codes)}"
    for code in set(truth.get("never", ())) & set(codes):
        yield f"causes: {code} is said and does not hold"
    for cause in causes:
        whole = set(cause) == {"code", "text", "object", "numbers"} and cause["text"]
        if not whole or cause["code"] not in CAUSES:
            yield f"causes: {cause} is not a cause with a code of the list, a text and all fields"
    yield from _decisive(truth, causes[0])


def _decisive(truth: Mapping[str, Any], cause: Mapping[str, Any]) -> Iterator[str]:
    """Compare the object and the numbers of the first cause."""
    if cause["code"] != truth["first"][0]:
        return  # they are those of the first code that is acceptable
    if "object" in truth and not _same_object(truth["object"], cause["object"]):
        yield f"object: said {cause['object']}, is {truth['object']}"
    for part in truth.get("text", ()):
        if part not in cause["text"]:
            yield f"text: {part!r} is not in {cause['text']!r}"
    for key, value in truth.get("numbers", {}).items():
        if not _same_number(value, cause["numbers"].get(key)):
            yield f"numbers: {key} is {value}, said {cause['numbers'].get(key)}"


def _same_object(wanted: Mapping[str, Any], found: Any) -> bool:
    """Compare objects; a Volcano Job and the pod group made for it are one."""
    if found is None:
        return False
    if {wanted["kind"], found["kind"]} <= _JOB_KINDS:
        name, other = str(found["name"]), str(wanted["name"])
        return name == other or name.startswith(f"{other}-")
    return (wanted["kind"], wanted["name"]) == (found["kind"], found["name"])


def _same_number(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _same_number(value, found.get(key)) for key, value in wanted.items()
        )
    if isinstance(found, list | dict):
        return len(found) == wanted if isinstance(wanted, int) else str(wanted) in json.dumps(found)
    if found is None or isinstance(found, bool):
        return False
    try:
        return milli_value(str(wanted)) == milli_value(str(found))
    except InputError:  # a name
        return str(wanted) in str(found)


def _not_evicted(wanted: Mapping[str, Any], reported: list[Any]) -> Iterator[str]:
    counts = {one["code"]: one["pods"] for one in reported}
    for code in counts.keys() - NOT_EVICTED:
        yield f"notEvicted: {code} is not of the closed list"
    for codes, pods in wanted.items():
        found = [counts[code] for code in codes.split("|") if code in counts]
        if not found:
            yield f"notEvicted: {codes} is not among {', '.join(counts) or 'none'}"
        elif pods is not None and pods not in found:
            yield f"notEvicted: {codes} said of {found[0]} pods, holds for {pods}"


def _funnel(wanted: list[Any], reported: list[Any]) -> Iterator[str]:
    rows = [(row["constraint"], row["left"]) for row in reported]
    left = [number for _, number in rows]
    if left != sorted(left, reverse=True):
        yield f"funnel: it widens: {rows}"
    if rows and rows[0][0] != "all nodes":
        yield f"funnel: it begins with {rows[0][0]}, not with all nodes"
    for row in wanted:
        if (row["constraint"], row["left"]) not in rows:
            yield f"funnel: {row['constraint']} leaves {row['left']}, said {rows}"


def _remedies(wanted: Mapping[str, Any], offered: list[Any]) -> Iterator[str]:
    changes = [change for remedy in offered for change in remedy["changes"]]
    if "exists" in wanted and wanted["exists"] != bool(offered):
        exists = "one" if wanted["exists"] else "none"
        yield f"remedies: {len(offered)} are offered, {exists} exists"
    if "kinds" in wanted and offered and not any(map(_matches(wanted["kinds"]), changes)):
        yield f"remedies: none is one of {wanted['kinds']}"
    for change in filter(_matches(wanted.get("forbidden", [])), changes):
        yield f"remedies: {change} must not be offered"


def _matches(kinds: list[Any]) -> Any:
    """Return what finds changes of some kinds; a recreated object counts as patched."""

    def is_one(change: Mapping[str, Any]) -> bool:
        kind = change["object"]["kind"] if "object" in change else change.get("kind")
        ops = ("add", "patch") if change["op"] == "add" else (change["op"],)
        return any(one["op"] in ops and one.get("kind", kind) == kind for one in kinds)

    return is_one

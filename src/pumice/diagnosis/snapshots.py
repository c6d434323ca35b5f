"""Snapshots: a world in one file, a summary of it, and what differs between two.

A snapshot is a scenario without expectations, so `pumice run` plays it and `pumice run --write`
makes it a policy test.  What controllers have still to make follows from the jobs, and is made
again whenever a snapshot is read.  Possible secrets (environment, commands, keys) are not saved.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import yaml

from pumice.api.kinds import Manifest, queue_of
from pumice.api.quantity import amount_text
from pumice.api.redaction import conf_without_secrets, without_secrets
from pumice.api.times import rfc3339
from pumice.cache.ingest import Ingest
from pumice.controllers.expected import is_expected
from pumice.core.snapshot import Snapshot
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.runner import Replay
from pumice.scheduler import Scheduler


def save_world(world: ClusterState, *, name: str = "snapshot", as_json: bool = False) -> str:
    """Write a world as the text of a snapshot file."""
    document: dict[str, Any] = {
        "name": name,
        "now": rfc3339(world.now),
        "seed": world.seed,
        "conf": conf_without_secrets(world.conf),
    }
    if world.node_usage:
        document["nodeUsage"] = {
            node: {k: rfc3339(v) if k == "metricsTime" else v for k, v in one.items()}
            for node, one in world.node_usage.items()
        }
    if world.hidden:
        document["hidden"] = dict(world.hidden)
    document["objects"] = [without_secrets(one) for one in saved_objects(world)]
    if as_json:
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def saved_objects(world: ClusterState) -> Iterator[Manifest]:
    """Yield the objects that exist and decide; a ConfigMap only if a plugin reads it."""
    read = set(Scheduler(world.scheduler_conf).config_maps)
    for one in world.objects:
        if not is_expected(one) and (one["kind"] != "ConfigMap" or key_of(one) in read):
            yield one
    yield from world.jobs.values()


# Summary


@dataclass(frozen=True, kw_only=True)
class NodeUse:
    """One resource over all nodes."""

    resource: str
    total: str
    free: str
    percent: float
    largest_free: str
    """The most that is free on one node that takes pods."""


@dataclass(frozen=True, kw_only=True)
class QueueUse:
    """One queue: what it holds, what its pods wait for, and its jobs by phase."""

    name: str
    parent: str
    state: str
    weight: int
    allocated: dict[str, str]
    pending: dict[str, str]
    jobs: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A world at a glance."""

    now: str
    conf_source: str
    actions: list[str]
    objects: dict[str, int]
    left_out: dict[str, int]
    nodes: int
    closed_nodes: list[str]
    """Nodes that are cordoned."""
    resources: list[NodeUse]
    queues: list[QueueUse]
    phases: dict[str, int]
    pods: dict[str, int]
    """How many exist by phase, and how many are still to be made or refused by quotas."""

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return asdict(self)


def summarise(world: ClusterState) -> Summary:
    """Sum a world up."""
    snapshot = Ingest(Snapshot()).load(world.typed(world.admitted_objects))
    phases = {key: _phase(group) or "Pending" for key, group in world.groups.items()}
    closed = np.flatnonzero(snapshot.nodes.unschedulable).tolist()
    return Summary(
        now=rfc3339(world.now),
        conf_source=world.conf_source,
        actions=list(world.scheduler_conf.actions),
        objects=dict(sorted(Counter(one["kind"] for one in saved_objects(world)).items())),
        left_out=dict(world.left_out),
        nodes=snapshot.nodes.n,
        closed_nodes=[snapshot.nodes.names[row] for row in closed],
        resources=list(_node_use(snapshot)),
        queues=list(_queue_use(world, snapshot, phases)),
        phases=dict(sorted(Counter(phases.values()).items())),
        pods=_pods_by_phase(world),
    )


def _pods_by_phase(world: ClusterState) -> dict[str, int]:
    """Count the pods that exist by phase, then those still to be made."""
    made = Counter(_phase(pod) or "Pending" for pod in world.pods if not is_expected(pod))
    refused = sum(len(each.pods) for each in world.refusals.values())
    unmade = len(world.pods) - made.total() - refused
    more = {"not created yet": unmade, "refused by quotas": refused}
    return {**dict(sorted(made.items())), **{what: n for what, n in more.items() if n}}


def _phase(manifest: Manifest) -> str:
    return str((manifest.get("status") or {}).get("phase") or "")


def _node_use(snapshot: Snapshot) -> Iterator[NodeUse]:
    nodes = snapshot.nodes
    total, idle = snapshot.total(), nodes.idle
    takes = ~nodes.unschedulable
    for row, name in enumerate(snapshot.resources.names):
        if total[row] <= 0:
            continue
        free = float(np.maximum(idle[row], 0.0).sum())
        yield NodeUse(
            resource=name,
            total=amount_text(name, float(total[row])),
            free=amount_text(name, free),
            percent=round(100.0 * (1.0 - free / float(total[row])), 1),
            largest_free=amount_text(name, float(idle[row][takes].max(initial=0.0))),
        )


def _queue_use(
    world: ClusterState, snapshot: Snapshot, phases: Mapping[str, str]
) -> Iterator[QueueUse]:
    queues, names = snapshot.queues, snapshot.resources.names
    by_queue: dict[str, Counter[str]] = {}
    for key, group in world.groups.items():
        by_queue.setdefault(queue_of(group), Counter())[phases[key]] += 1
    for name, queue in world.of_kind("Queue").items():
        row, spec = queues.row_of[name], queue.get("spec") or {}
        amounts = (queues.allocated[:, row].tolist(), queues.pending[:, row].tolist())
        allocated, pending = (
            {each: amount_text(each, x) for each, x in zip(names, column, strict=True) if x}
            for column in amounts
        )
        yield QueueUse(
            name=name,
            parent=str(spec.get("parent", "")),
            state=str((queue.get("status") or {}).get("state") or ""),
            weight=int(spec.get("weight") or 0),
            allocated=allocated,
            pending=pending,
            jobs=dict(sorted(by_queue.get(name, Counter()).items())),
        )


# Difference


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The differences of two worlds, and of the next cycle's decisions on them."""

    added: dict[str, list[str]]
    """Kind to names that only the second one has."""
    removed: dict[str, list[str]]
    changed: dict[str, dict[str, dict[str, tuple[Any, Any]]]]
    """Kind to name to field to both values."""
    conf: bool
    """Whether the configurations differ."""
    seconds: float
    """Time from the first to the second."""
    decisions: dict[str, dict[str, tuple[str, str]]]
    """Binds, evictions and phases to pod or job to what was decided on each side."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs except, perhaps, the time."""
        return not (self.added or self.removed or self.changed or self.conf or self.decisions)

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return asdict(self)


def diff_worlds(left: ClusterState, right: ClusterState) -> Difference:
    """Compare objects field by field, and the decisions of one cycle on each."""
    mine, theirs = _by_kind(left), _by_kind(right)
    added: dict[str, list[str]] = {}
    removed: dict[str, list[str]] = {}
    changed: dict[str, dict[str, dict[str, tuple[Any, Any]]]] = {}
    for kind in sorted({*mine, *theirs}):
        a, b = mine.get(kind, {}), theirs.get(kind, {})
        if new := sorted(b.keys() - a.keys()):
            added[kind] = new
        if gone := sorted(a.keys() - b.keys()):
            removed[kind] = gone
        fields = {key: dict(_fields(a[key], b[key])) for key in sorted(a.keys() & b.keys())}
        if some := {key: found for key, found in fields.items() if found}:
            changed[kind] = some
    return Difference(
        added=added,
        removed=removed,
        changed=changed,
        conf=_conf(left) != _conf(right),
        seconds=right.now - left.now,
        decisions=_decisions(_decided(left), _decided(right)),
    )


def _conf(world: ClusterState) -> Any:
    return yaml.safe_load(world.conf)


def _by_kind(world: ClusterState) -> dict[str, dict[str, Manifest]]:
    out: dict[str, dict[str, Manifest]] = {}
    for one in (*world.objects, *world.jobs.values()):
        out.setdefault(one["kind"], {})[key_of(one)] = without_secrets(one)
    return out


def _fields(left: Any, right: Any, path: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Walk two values; yield the paths at which they differ."""
    if left == right or path in ("metadata.resourceVersion", "metadata.generation"):
        return
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}, key=str):
            yield from _fields(left.get(key), right.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            yield from _fields(a, b, f"{path}[{i}]")
    else:
        yield path, (left, right)


def _decided(world: ClusterState) -> dict[str, Mapping[str, str]]:
    """Return what the next cycle decides; jobs by title, which one submitted again keeps."""
    found = Replay(world).decide()
    return {
        "binds": found.binds,
        "evictions": dict.fromkeys(found.evictions, "evicted"),
        "phases": {world.title(job): state.phase for job, state in found.pod_groups.items()},
        "why": {world.title(job): text for job, text in found.explanations.items()},
    }


def _decisions(
    left: Mapping[str, Mapping[str, str]], right: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, tuple[str, str]]]:
    out: dict[str, dict[str, tuple[str, str]]] = {}
    for what, a in left.items():
        b = right[what]
        found = {
            key: (a.get(key, ""), b.get(key, ""))
            for key in sorted({*a, *b})
            if a.get(key, "") != b.get(key, "")
        }
        if found:
            out[what] = found
    return out

"""What recording costs and takes: CPU and memory, bytes of a day, opening a moment of it.

``python -m bench.record`` plays a whole day of 5,000 nodes with 50,000 pods, on which as many come
and go as pods of Volcano jobs, on a virtual clock through the recorder, and prints a table against
the budgets.  ``--hours`` plays less of it.
"""

import argparse
import heapq
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from pumice.api.times import rfc3339
from pumice.cluster.base import Event
from pumice.diagnosis.job_history import spans_of
from pumice.records.entries import CycleEntry
from pumice.records.history import History
from pumice.records.recorder import Recorder
from pumice.records.segments import read_head, segment_files

_START: Final = 1_767_225_600.0
_DAY_S: Final = 86_400
_NODES, _PODS = 5_000, 50_000
_GROUP: Final = 10
"""Pods of a job."""
_HEARTBEAT_S: Final = 300
_TRACED: Final = range(3_500, 3_720)
"""Seconds in which memory is measured, which makes all slower: a checkpoint is among them."""
_CHANGES_OF_A_SEGMENT: Final = 2
"""How many changes for each object begin another segment, where they come fast."""
_BUDGETS: Final = {"cpu": 1.0, "memory": 60.0, "day": 500.0, "open": 2.0}
_Steps = Iterator[tuple[float, Event]]


def pod(number: int, rng: np.random.Generator, created: float) -> dict[str, Any]:
    """Make a pod as an API server returns one of a training job."""
    job = number // _GROUP
    name = f"train-{job:06d}-worker-{number % _GROUP}"
    uid = rng.bytes(16).hex()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{job % 40}",
            "uid": f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}",
            "resourceVersion": "1",
            "creationTimestamp": rfc3339(created),
            "labels": {
                "volcano.sh/job-name": f"train-{job:06d}",
                "volcano.sh/queue-name": f"q{job % 12}",
                "app": "trainer",
                "team": f"team-{job % 40}",
            },
            "annotations": {
                "scheduling.k8s.io/group-name": f"train-{job:06d}",
                "volcano.sh/task-spec": "worker",
                "volcano.sh/template-uid": f"train-{job:06d}-worker",
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "kind": "Job",
                    "name": f"train-{job:06d}",
                    "uid": f"{job:032x}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "enableServiceLinks": True,
            "priority": 0,
            "terminationGracePeriodSeconds": 30,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/train:2.1",
                    "command": ["python", "train.py"],
                    "env": [{"name": f"VAR_{n}", "value": f"value-{n}"} for n in range(20)],
                    "resources": {
                        "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
                        "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
                    },
                    "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "volumes": [{"name": "token", "projected": {"sources": [{"secret": {}}]}}],
        },
        "status": {"phase": "Pending", "qosClass": "Guaranteed"},
    }


def node(number: int, beat: float) -> dict[str, Any]:
    """Make a node as its kubelet reports it."""
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    amounts = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{number:05d}",
            "uid": f"{number:032x}",
            "resourceVersion": str(int(beat)),
            "labels": {
                "kubernetes.io/hostname": f"node-{number:05d}",
                "topology.kubernetes.io/zone": f"zone-{number % 4}",
                "node.kubernetes.io/instance-type": "gpu8",
            },
        },
        "spec": {"podCIDR": f"10.{number // 250}.{number % 250}.0/24"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [
                {
                    "type": kind,
                    "status": "True" if kind == "Ready" else "False",
                    "lastHeartbeatTime": rfc3339(beat),
                    "lastTransitionTime": rfc3339(_START),
                    "reason": f"Kubelet{kind}",
                    "message": "kubelet reports its state",
                }
                for kind in kinds
            ],
            "nodeInfo": {"kubeletVersion": "v1.31.2", "architecture": "amd64"},
        },
    }


def changing(first: dict[str, Any], at: float, steps: list[tuple[float, dict[str, Any]]]) -> _Steps:
    """Yield what happens to an object: it comes, its parts change as ``steps`` state, it goes."""
    known, end = first, at
    yield at, Event("ADDED", known)
    for after, parts in steps:
        end = at + after
        meta = {**known["metadata"], "resourceVersion": str(int(1000 * end))}
        meta.update(parts.get("metadata", {}))
        known = {
            **known,
            **{part: {**known.get(part, {}), **values} for part, values in parts.items()},
            "metadata": meta,
        }
        yield end, Event("MODIFIED", known)
    yield end + 300, Event("DELETED", known)


def pod_steps(host: str, wait_s: float, run_s: float) -> list[tuple[float, dict[str, Any]]]:
    """Return what a scheduler and a kubelet write of a pod."""

    def conditions(*kinds: str) -> list[dict[str, str]]:
        return [{"type": k, "status": "True", "lastTransitionTime": rfc3339(_START)} for k in kinds]

    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/5000 nodes are available: 5000 Insufficient nvidia.com/gpu.",
    }
    bound = {"conditions": conditions("PodScheduled")}
    started = {"conditions": conditions("PodScheduled", "Initialized"), "hostIP": "10.0.0.1"}
    ready = conditions("PodScheduled", "Initialized", "ContainersReady", "Ready")
    running = {"phase": "Running", "podIP": "10.1.2.3", "conditions": ready}
    return [
        (1.0, {"status": {"conditions": [waiting]}}),
        (wait_s, {"spec": {"nodeName": host}, "status": bound}),
        (wait_s + 1, {"status": started}),
        (wait_s + 5, {"status": running}),
        (wait_s + 5 + run_s, {"status": {"phase": "Succeeded", **bound}}),
    ]


def job(number: int, at: float) -> dict[str, Any]:
    """Make a job of Volcano."""
    template = pod(number * _GROUP, np.random.default_rng(number), at)
    made = {
        "name": f"train-{number:06d}",
        "namespace": f"team-{number % 40}",
        "uid": f"{number:032x}",
        "resourceVersion": "1",
        "creationTimestamp": rfc3339(at),
    }
    task = {"name": "worker", "replicas": _GROUP, "template": {"spec": template["spec"]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": made,
        "spec": {"queue": f"q{number % 12}", "minAvailable": _GROUP, "tasks": [task]},
        "status": {"state": {"phase": "Pending"}},
    }


def group(number: int, at: float) -> dict[str, Any]:
    """Make the pod group of a job."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "controller": True}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": f"train-{number:06d}",
            "namespace": f"team-{number % 40}",
            "uid": f"f{number:031x}",
            "resourceVersion": "1",
            "creationTimestamp": rfc3339(at),
            "ownerReferences": [{**owner, "name": f"train-{number:06d}", "uid": f"{number:032x}"}],
        },
        "spec": {"queue": f"q{number % 12}", "minMember": _GROUP, "minResources": {"cpu": "40"}},
        "status": {"phase": "Pending"},
    }


def group_steps(wait_s: float, run_s: float) -> list[tuple[float, dict[str, Any]]]:
    """Return what a scheduler writes of a pod group: its phase, and why it waits."""

    def waits(code: str) -> dict[str, Any]:
        why = f"{code}: 10 pods need 10 nvidia.com/gpu"
        return {
            "metadata": {
                "annotations": {
                    "pumice.dev/waiting-cause": code,
                    "pumice.dev/waiting-why": why,
                }
            },
            "status": {"phase": "Inqueue", "conditions": [{"type": "Unschedulable",
                "status": "True", "reason": "NotEnoughResources", "message": why}]},
        }  # fmt: skip

    causes = ("InsufficientResource", "JobAhead", "QueueOverCapability")
    return [
        *((1 + part * wait_s / 3, waits(code)) for part, code in enumerate(causes)),
        (wait_s, {"metadata": {"annotations": {}}, "status": {"phase": "Running"}}),
        (wait_s + 5 + run_s, {"status": {"phase": "Completed"}}),
    ]


def job_steps(wait_s: float, runs: list[float]) -> list[tuple[float, dict[str, Any]]]:
    """Return what the controller writes of a job: how many pods do what."""
    found: list[tuple[float, dict[str, Any]]] = [
        (2.0, {"status": {"pending": _GROUP, "minAvailable": _GROUP}}),
        (wait_s + 6, {"status": {"state": {"phase": "Running"}, "running": _GROUP}}),
    ]
    for done, run_s in enumerate(sorted(runs), 1):
        counts = {"running": _GROUP - done, "succeeded": done}
        found.append((wait_s + 6 + run_s, {"status": counts}))
    return [*found, (found[-1][0] + 1, {"status": {"state": {"phase": "Completed"}}})]


@dataclass(order=True)
class _Due:
    at: float
    number: int
    event: Event = field(compare=False)
    rest: _Steps = field(compare=False)


class Day:
    """Jobs that come and go, and nodes that report, in the order of time."""

    def __init__(self, seconds: int) -> None:
        self._rng = rng = np.random.default_rng(0)
        before = 4 * 3600  # some are there when the day begins
        count = _PODS * (seconds + before) // _DAY_S // _GROUP
        self._arrivals = np.sort(rng.uniform(-before, seconds, count))
        self._next = self._n_due = 0
        self._due: list[_Due] = []

    def until(self, passed: float) -> Iterator[Event]:
        """Yield what happens until so many seconds have passed."""
        while self._next < len(self._arrivals) and self._arrivals[self._next] <= passed:
            self._arrive(self._next, _START + float(self._arrivals[self._next]))
            self._next += 1
        while self._due and self._due[0].at <= _START + passed:
            due = heapq.heappop(self._due)
            yield due.event
            self._push(due.rest)

    def _push(self, steps: _Steps) -> None:
        step = next(steps, None)
        if step is not None:
            self._n_due += 1
            heapq.heappush(self._due, _Due(step[0], self._n_due, step[1], steps))

    def _arrive(self, number: int, at: float) -> None:
        rng = self._rng
        wait_s = 6 + float(rng.exponential(600))
        runs = [float(each) for each in rng.exponential(3600, _GROUP)]
        self._push(changing(job(number, at), at, job_steps(wait_s, runs)))
        self._push(changing(group(number, at), at, group_steps(wait_s, max(runs))))
        for task, run_s in enumerate(runs):
            made = pod(number * _GROUP + task, rng, at)
            host = f"node-{int(rng.integers(_NODES)):05d}"
            self._push(changing(made, at, pod_steps(host, wait_s, run_s)))


def standing() -> Iterator[dict[str, Any]]:
    """Yield pods that run all day."""
    rng = np.random.default_rng(1)
    for number in range(_PODS):
        one = pod(10 * _PODS + number, rng, _START)
        one["spec"]["nodeName"] = f"node-{number % _NODES:05d}"
        one["status"]["phase"] = "Running"
        yield one


def decided(at: float, events: list[Event]) -> CycleEntry:
    """Make the line of the cycle that gave pods their nodes."""
    bound = (
        each.object for each in events
        if each.object["kind"] == "Pod" and [*each.object["status"].get("conditions", ())][-1:]
        and len(each.object["status"]["conditions"]) == 1 and "nodeName" in each.object["spec"]
    )  # fmt: skip
    binds = {
        f"{one['metadata']['namespace']}/{one['metadata']['name']}": one["spec"]["nodeName"]
        for one in bound
    }
    return CycleEntry(now=at, steady=at, binds=binds, digest="0" * 16)


@dataclass
class Cost:
    """What recording took."""

    changes: int = 0
    seconds: float = 0.0
    """CPU besides checkpoints."""
    checkpoints: list[float] = field(default_factory=list)
    """CPU of each; the first is that of the beginning."""
    peak: float = 0.0
    """MiB besides the objects."""

    def share(self, objects: int) -> float:
        """Return the part of a core at 100 changes a second, in percent."""
        between = _CHANGES_OF_A_SEGMENT * objects / 100
        return 100 * (100 * self.seconds / self.changes + median(self.checkpoints) / between)


def play(folder: Path, seconds: int) -> Cost:
    """Record a day, or the beginning of one."""
    clock, cost, traffic = [_START], Cost(), Day(seconds)
    recorder = Recorder(folder, lambda: clock[0], by="scheduler")
    recorder.listed("Node", [node(n, _START) for n in range(_NODES)])
    recorder.listed("Pod", [*standing()])
    recorder.changed(traffic.until(0))
    recorder.flush()
    start = time.process_time()
    recorder.flush()  # the first segment has no checkpoint; the second one is as all others
    cost.checkpoints.append(time.process_time() - start)
    segments = len(segment_files(folder))
    for second in range(1, seconds):
        clock[0] = _START + second
        if second == _TRACED.start:
            tracemalloc.start()
        beats = range(second % _HEARTBEAT_S, _NODES, _HEARTBEAT_S)
        heard = [Event("MODIFIED", node(n, clock[0])) for n in beats]
        events = [*traffic.until(second), *heard]
        cycle = decided(clock[0], events)
        start = time.process_time()
        recorder.changed(events)
        recorder.decided(cycle)
        recorder.flush()
        taken = time.process_time() - start
        if second in _TRACED:
            if second in (_TRACED[-1], seconds - 1):
                cost.peak = tracemalloc.get_traced_memory()[1] / 2**20
                tracemalloc.stop()
                segments = len(segment_files(folder))
            continue
        if taken > 0.2 and len(segment_files(folder)) > segments:
            segments = len(segment_files(folder))
            cost.checkpoints.append(taken)
        else:
            cost.seconds += taken
            cost.changes += len(events)
    recorder.close()
    return cost


def timed(what: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds that something takes, and its result."""
    start = time.process_time()
    found = what()
    return time.process_time() - start, found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--keep", type=Path, help="leave the record in this directory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = given.keep or Path(place) / "record"
        cost = play(folder, int(3600 * given.hours))
        show(History(folder), cost, given.hours)


def show(history: History, cost: Cost, hours: float) -> None:
    """Print what was measured beside the budgets."""
    # the end of a segment is the moment that takes longest
    ends = [read_head(path).at - 1 for path in segment_files(history.folder).values()]
    opened = [timed(lambda at=at: history.at(at)) for at in (*ends[2:5], None)]  # type: ignore[misc]
    told, _ = timed(lambda: spans_of(history))
    moment, size = opened[-1][1], history.size / 2**20
    print(f"{len(moment.objects)} objects; {cost.changes} changes in {hours:g} h in "
          f"{len(segment_files(history.folder))} segments; a checkpoint takes "
          f"{median(cost.checkpoints):.1f} s")  # fmt: skip
    rows = (
        ("at 100 changes a second", cost.share(len(moment.objects)), "% of a core", "cpu"),
        ("memory of recording", cost.peak, "MiB", "memory"),
        (f"a record of {hours:g} h", size, "MiB", "day"),
        ("opening a moment", max(seconds for seconds, _ in opened), "s", "open"),
        ("history of all of it", told, "s", ""),
    )
    for words, value, unit, budget in rows:
        known = f"(budget {_BUDGETS[budget]:g})" if budget else ""
        print(f"{words:26}{value:8.2f} {unit:12}{known}".rstrip())


if __name__ == "__main__":
    main()

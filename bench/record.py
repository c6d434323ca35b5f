"""What recording costs and takes: CPU and memory at 100 changes a second, bytes of a day, opening.

``python -m bench.record`` plays minutes of a day of 5,000 nodes with 50,000 pods, on which as many
come and go in a day, on a virtual clock, and prints a table against the budgets.
"""

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from pumice.api.times import rfc3339
from pumice.cluster.base import Event
from pumice.records.entries import CycleEntry
from pumice.records.history import History, Moment
from pumice.records.recorder import Recorder

_START: Final = 1_767_225_600.0
_DAY_S: Final = 86_400
_NODES, _PODS = 5_000, 50_000
_GROUP: Final = 10
"""Pods of a job."""
_HEARTBEAT_S: Final = 300
_BUDGETS: Final = {"cpu": 1.0, "memory": 60.0, "day": 500.0, "open": 2.0}


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


def life(
    first: dict[str, Any], host: str, at: float, run_s: float
) -> Iterator[tuple[float, Event]]:
    """Yield what happens to a pod, from its creation to its deletion."""
    version = int(at)

    def step(moment: float, what: str, **status: Any) -> tuple[float, Event]:
        nonlocal version, first
        version += 1
        first = {
            **first,
            "metadata": {**first["metadata"], "resourceVersion": str(version)},
            "status": {**first["status"], **status},
        }
        return moment, Event(what, first)  # type: ignore[arg-type]

    def conditions(*kinds: str) -> list[dict[str, str]]:
        return [{"type": k, "status": "True", "lastTransitionTime": rfc3339(at)} for k in kinds]

    yield step(at, "ADDED")
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/5000 nodes are available: 5000 Insufficient nvidia.com/gpu.",
    }
    yield step(at + 1, "MODIFIED", conditions=[waiting])
    first = {**first, "spec": {**first["spec"], "nodeName": host}}
    yield step(at + 60, "MODIFIED", conditions=conditions("PodScheduled"))
    started = {"startTime": rfc3339(at + 61), "hostIP": "10.0.0.1"}
    yield step(at + 61, "MODIFIED", conditions=conditions("PodScheduled", "Initialized"), **started)
    ready = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    yield step(
        at + 65, "MODIFIED", phase="Running", podIP="10.1.2.3", conditions=conditions(*ready)
    )
    yield step(
        at + 65 + run_s, "MODIFIED", phase="Succeeded", conditions=conditions("PodScheduled")
    )
    yield step(at + 365 + run_s, "DELETED")


def day(pods: int, nodes: int, seconds: int, seed: int = 0) -> list[tuple[float, Event]]:
    """Return all changes of pods in their order."""
    rng = np.random.default_rng(seed)
    found: list[tuple[float, Event]] = []
    jobs = rng.uniform(-4 * 3600, seconds, pods * (seconds + 4 * 3600) // _DAY_S // _GROUP)
    arrivals = np.sort(jobs)
    for number in range(len(arrivals) * _GROUP):
        at = _START + float(arrivals[number // _GROUP])
        host = f"node-{int(rng.integers(nodes)):05d}"
        found += life(pod(number, rng, at), host, at, float(rng.exponential(3600)))
    return sorted((each for each in found if each[0] < _START + seconds), key=lambda e: e[0])


def standing() -> list[dict[str, Any]]:
    """Return pods that run all day."""
    rng, found = np.random.default_rng(1), []
    for number in range(_PODS):
        one = pod(10 * _PODS + number, rng, _START)
        one["spec"]["nodeName"] = f"node-{number % _NODES:05d}"
        one["status"]["phase"] = "Running"
        found.append(one)
    return found


def record_part(folder: Path, seconds: int) -> tuple[int, float, float, int]:
    """Record a part of a day; return changes, CPU seconds, memory, and bytes of changes."""
    clock = [_START]
    events = day(_PODS, _NODES, seconds)
    recorder = Recorder(folder, lambda: clock[0], by="scheduler")
    recorder.listed("Node", [node(n, _START) for n in range(_NODES)])
    place = next(n for n, (at, _) in enumerate(events) if at > _START)
    recorder.listed("Pod", standing())
    recorder.changed(event for _, event in events[:place])
    recorder.flush()
    recorder.flush()  # the first segment has no checkpoint; the second one is as all others
    before, changes, spent, peak = History(folder).size, 0, 0.0, 0.0
    tracemalloc.start()
    for second in range(1, seconds):
        clock[0] = _START + second
        due = place
        while due < len(events) and events[due][0] <= clock[0]:
            due += 1
        beats = range(second % _HEARTBEAT_S, _NODES, _HEARTBEAT_S)
        heard = [Event("MODIFIED", node(n, clock[0])) for n in beats]
        if second == seconds // 2:
            tracemalloc.stop()  # from here on CPU is measured, which tracing costs
        start = time.process_time()
        recorder.changed([*(event for _, event in events[place:due]), *heard])
        recorder.decided(CycleEntry(now=clock[0], steady=clock[0], digest="0" * 16))
        recorder.flush()
        if second >= seconds // 2:
            spent += time.process_time() - start
            changes += due - place + len(heard)
        else:
            peak = tracemalloc.get_traced_memory()[1] / 2**20
        place = due
    recorder.close()
    return changes, spent, peak, History(folder).size - before


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=10)
    seconds = 60 * parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "record"
        changes, spent, peak, size = record_part(folder, seconds)
        history = History(folder)
        start = time.process_time()
        moment = history.at()
        opened = time.process_time() - start
        checkpoint = _checkpoint_bytes(Path(place) / "other", moment)
    day_bytes = 2 * size * _DAY_S / seconds + 24 * checkpoint
    share = 100 * spent / changes * 100
    print(f"{len(moment.objects)} objects, {changes} changes in the second half")
    print(f"at 100 changes a second {share:7.2f} % of a core (budget {_BUDGETS['cpu']:g})")
    print(f"memory of recording     {peak:7.1f} MiB         (budget {_BUDGETS['memory']:g})")
    print(
        f"a whole day, at most    {day_bytes / 2**20:7.1f} MiB         (budget {_BUDGETS['day']:g})"
    )
    print(f"opening a moment        {opened:7.2f} s           (budget {_BUDGETS['open']:g})")


def _checkpoint_bytes(folder: Path, moment: Moment) -> int:
    """Return the bytes of a checkpoint: a day has one each hour, and one for as many changes."""
    recorder = Recorder(folder, lambda: moment.now, by="scheduler")
    for manifest in moment.objects.values():
        recorder.put(manifest)
    recorder.close()
    return History(folder).size


if __name__ == "__main__":
    main()

"""A cluster whose work never ends, for trying the dashboard.

Its last twenty minutes are played at once, then its time is that of the machine.
Scheduler, controllers and kubelet are the real ones; what arrives is drawn with a fixed seed.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import yaml

from pumice.api.annotations import RUN_SECONDS, ZONE
from pumice.api.kinds import Manifest
from pumice.api.quantity import milli_value, value
from pumice.apiserver.served_cluster import FastClock, ServedCluster
from pumice.clock import wall_time
from pumice.cluster.embedded.node_operations import add_node

_NAME: Final = "demo"
_CONFS: Final = ("lending", "reclaiming")


@contextmanager
def demo_runs() -> Iterator[Path]:
    """Yield a folder in which the runs appear after some seconds; it is removed in the end.

    Another process computes them, so that the demo's scheduler is not delayed.
    """
    here = resources.files("pumice.cli.demo")
    with (
        resources.as_file(here) as files,
        TemporaryDirectory(prefix="pumice-demo-", ignore_cleanup_errors=True) as folder,
    ):
        words = ["--trace", str(files / "simulation.yaml"), "--dir", str(Path(folder) / _NAME)]
        for name in _CONFS:
            words += ["--conf", str(files / f"{name}.conf")]
        command = [sys.executable, "-m", "pumice", "sim", *words]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(  # noqa: S603  # our own program on our own files
            command, stdin=quiet, stdout=quiet, stderr=quiet
        ) as process:
            try:
                yield Path(folder)
            finally:
                process.terminate()


HISTORY_S: Final = 1200.0
_GPU: Final = "nvidia.com/gpu"
_SEED: Final = 7
_STEP_S: Final = 3.0
_KEPT_S: Final = 240
"""How long a job that has ended stays."""
_SCRAPE_S: Final = 15.0


class DemoClock(FastClock):
    """A clock that is behind the machine's, can be moved on, and then runs with the machine."""

    def __init__(self, start: float) -> None:
        """Make one that is stopped at a time."""
        self._ahead = 0.0
        self._halted_at: float | None = time.monotonic()
        super().__init__(timer=self._seconds)
        self._start = start

    def _seconds(self) -> float:
        real = time.monotonic() if self._halted_at is None else self._halted_at
        return real + self._ahead

    def move_on(self, seconds: float) -> None:
        """Advance the clock at once."""
        self._ahead += seconds

    def run(self) -> None:
        """Start the clock from here on."""
        if self._halted_at is not None:
            self._ahead -= time.monotonic() - self._halted_at
            self._halted_at = None


class LivingCluster:
    """The cluster and what arrives there; ``served`` is not started yet."""

    def __init__(self, *, history_s: float = HISTORY_S, start: float | None = None) -> None:
        """Make the cluster as it is when its history begins: that long ago, or at ``start``."""
        self._history_s = history_s
        file = resources.files("pumice.cli.demo").joinpath("living_cluster.yaml")
        self._data = yaml.safe_load(file.read_text(encoding="utf-8"))
        self.clock = DemoClock(wall_time() - history_s if start is None else start)
        self._random = np.random.default_rng(_SEED)
        self._numbers: dict[str, int] = {}
        self._measured: tuple[float, dict[str, Any]] = (0.0, {})
        self.served = ServedCluster(self._data["conf"], clock=self.clock, usage=self._usage)
        self._begin()

    def play_history(self) -> None:
        """Play the history at once."""
        served, until = self.served, self.clock.now() + self._history_s
        served.publish_conf()
        while self.clock.now() < until:
            with served.cluster.lock:
                self.clock.run_due()
                changed = served.plane.step()
            due = self.clock.now() + _STEP_S
            if not changed:
                due = max(due, self.clock.next_at() or until)
            self.clock.move_on(max(0.1, min(due, until) - self.clock.now()))
        with served.cluster.lock:
            self.clock.run_due()
            served.plane.step()
            served.plane.step()

    def _begin(self) -> None:
        cluster, data = self.served.cluster, self._data
        for group in data["nodes"]:
            for number in range(1, group["count"] + 1):
                amounts = {"cpu": str(group["cpu"]), "memory": group["memory"]}
                labels = {ZONE: group["zone"], "pool": group["name"].partition("-")[0]}
                if "gpus" in group:
                    amounts[_GPU] = str(group["gpus"])
                    labels["gpu.model"] = group["model"]
                add_node(cluster, f"{group['name']}-{number}", amounts, labels=labels)
        for name in data["cordoned"]:
            cluster.patch("Node", "", name, {"spec": {"unschedulable": True}})
        self.served.load([*_queues(data), *_priorities(data)])
        for kind in data["work"]:
            self._expect(kind, float(self._random.uniform(0, kind["every"])))
        for guest in data["guests"]:
            at = self.clock.now() + max(0.0, self._history_s - guest["before"])
            self.clock.call_at(at, partial(self._submit, guest, guest["name"]))

    def _expect(self, kind: Mapping[str, Any], in_s: float) -> None:
        self.clock.call_at(self.clock.now() + in_s, lambda: self._arrive(kind))

    def _arrive(self, kind: Mapping[str, Any]) -> None:
        number = self._numbers[kind["name"]] = self._numbers.get(kind["name"], 0) + 1
        draw = self._random
        low, high = kind["pods"]
        shortest, longest = kind["seconds"]
        chosen = {
            **kind,
            "pods": int(draw.integers(low, high + 1)),
            "seconds": int(draw.integers(shortest, longest)),
        }
        self._submit(chosen, f"{kind['name']}-{number}")
        self._expect(kind, float(draw.exponential(kind["every"])))

    def _submit(self, job: Mapping[str, Any], name: str) -> None:
        self.served.cluster.create(_job(job, name))

    def _usage(self, now: float) -> Mapping[str, Any]:
        """Measure nodes as a metrics server would: pods use a part of what they ask for."""
        at, known = self._measured
        if now - at < _SCRAPE_S:
            return known
        cluster = self.served.cluster
        used: dict[str, list[float]] = {}
        for pod in cluster.list("Pod")[0]:
            if (pod.get("status") or {}).get("phase") == "Running":
                asked = pod["spec"]["containers"][0]["resources"]["requests"]
                part = 0.35 + 0.5 * (sum(map(ord, pod["metadata"]["name"])) % 100) / 100
                sums = used.setdefault(pod["spec"]["nodeName"], [0.0, 0.0])
                sums[0] += part * milli_value(asked["cpu"])
                sums[1] += part * value(asked["memory"])
        found = {}
        for node in cluster.list("Node")[0]:
            offered = node["status"]["allocatable"]
            cpu, memory = used.get(node["metadata"]["name"], (0.0, 0.0))
            found[node["metadata"]["name"]] = {
                "cpu": round(100 * cpu / milli_value(offered["cpu"]), 1),
                "memory": round(100 * memory / value(offered["memory"]), 1),
                "metricsTime": now,
            }
        self._measured = (now, found)
        return found


def _queues(data: Mapping[str, Any]) -> list[Manifest]:
    out = []
    for name, facts in data["queues"].items():
        spec: Manifest = {"reclaimable": True, "deserved": _amounts(facts["deserved"])}
        if "parent" in facts:
            spec["parent"] = facts["parent"]
        if "capability" in facts:
            spec["capability"] = _amounts(facts["capability"])
        if "guarantee" in facts:
            spec["guarantee"] = {"resource": _amounts(facts["guarantee"])}
        out.append(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    return out


def _priorities(data: Mapping[str, Any]) -> list[Manifest]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": number,
        }
        for name, number in data["priorities"].items()
    ]


def _amounts(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in given.items()}


def _job(job: Mapping[str, Any], name: str) -> Manifest:
    requests = {"cpu": str(job["cpu"]), "memory": job["memory"]}
    amounts: Manifest = {"requests": requests}
    if "gpus" in job:
        requests[_GPU] = str(job["gpus"])
        amounts["limits"] = {_GPU: requests[_GPU]}
    container = {"name": "main", "image": "work", "resources": amounts}
    pod: Manifest = {"restartPolicy": "Never", "containers": [container]}
    if "selector" in job:
        pod["nodeSelector"] = dict(job["selector"])
    template = {"metadata": {"annotations": {RUN_SECONDS: str(job["seconds"])}}, "spec": pod}
    spec: Manifest = {
        "schedulerName": "volcano",
        "queue": job["queue"],
        "minAvailable": job.get("gang", job["pods"]),
        "ttlSecondsAfterFinished": _KEPT_S,
        "tasks": [{"name": "worker", "replicas": job["pods"], "template": template}],
    }
    if "priority" in job:
        spec["priorityClassName"] = job["priority"]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": job["namespace"]},
        "spec": spec,
    }

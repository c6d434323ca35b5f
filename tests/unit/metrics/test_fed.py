"""Every figure that is offered is fed by a control plane at work; none is there for show."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.base import Key
from pumice.controllers.controller_metrics import ControllerMetrics
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.errors import UnavailableError
from pumice.metrics import CATALOGUE, Metrics
from pumice.scheduler import Scheduler
from pumice.serve.options import SchedulerOptions
from pumice.serve.scheduler.conf_reload import ConfFile
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.testing import pod, pod_group, priority_class, queue

GPU = "nvidia.com/gpu"
QUEUE = "Queue.scheduling.volcano.sh"
CONF = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


class Cluster(EmbeddedCluster):
    """An embedded cluster with what a served scheduler asks of a real one; takes no events."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)

    def wait_current(self, timeout_s: Any) -> Any:
        return []

    def wait_synced(self, timeout_s: Any) -> Any:
        return []

    def read(self, kind: Any, namespace: Any, name: Any, *, timeout_s: Any) -> Any:
        return self.get(kind, namespace, name)

    def troubles(self) -> Any:
        return {}

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        if write.verb == "record":
            done(UnavailableError(sent=False))
        else:
            DirectWriter(self).submit(write, lane=lane, done=done)

    def flush(self, timeout_s: Any) -> bool:
        return True


FLOW_API = "flow.volcano.sh/v1alpha1"


def job_spec(*, fails: Any) -> Any:
    end = "fail-after-seconds" if fails else "run-seconds"
    marks = {f"pumice.dev/{end}": "1"}
    template = {
        "metadata": {"annotations": marks},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    return {
        "minAvailable": 1,
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": template}],
    }


def made(api: Any, kind: Any, name: Any, spec: Any) -> Any:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def workload() -> Iterator[Any]:
    """Return jobs and flows that end well and badly, a queue with limits, and victims."""
    yield priority_class("high", value=9)
    yield queue("q", capability={"cpu": 6, "memory": "4Gi", GPU: 2})
    for name, fails in (("good", False), ("bad", True)):
        yield made(FLOW_API, "JobTemplate", name, job_spec(fails=fails))
        flow = {"jobRetainPolicy": "retain", "flows": [{"name": name}]}
        yield made(FLOW_API, "JobFlow", f"flow-{name}", flow)
    yield pod_group("low", queue="q", min_member=1, phase=None)
    for index in range(4):
        marks = {"volcano.sh/preemptable": "true"}
        yield pod(f"low-{index}", group="low", cpu=1, annotations=marks)
    yield pod_group("huge", queue="q", min_member=1, phase="Inqueue")
    yield pod("huge-0", group="huge", cpu=9)
    bad = pod("unreadable", cpu=1)
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    yield bad


def urgent() -> Iterator[Any]:
    """Return a job for which others must go."""
    yield pod_group("high", queue="q", min_member=1, phase="Inqueue", priority_class="high")
    yield pod("high-0", group="high", cpu=4, priority_class="high")


class Broken:
    """A controller that fails on everything."""

    name = "broken"
    watches = (QUEUE,)

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
        return [Key(kind, "", manifest["metadata"]["name"])]

    def reconcile(self, key: Any, view: Any) -> Any:
        raise RuntimeError("no")


class Plane:
    """Scheduler, controllers and kubelet on one cluster, all telling one set of figures."""

    def __init__(self, folder: Any) -> None:
        self.metrics = Metrics()
        self.clock = VirtualClock(0.0)
        self.cluster = cluster = Cluster(self.clock)
        self.kubelet = Kubelet(cluster)
        path = folder / "conf.yaml"
        path.write_text(CONF)
        conf_file = ConfFile(str(path), Scheduler, metrics=self.metrics)
        live: Any = cluster
        self.scheduler = SchedulerLoop(
            live, SchedulerOptions(), conf_file.latest, self.metrics, clock=cluster.now
        )
        self.controllers = ThreadedLoop(
            cluster, [*all_controllers(), Broken()], wake=threading.Event(), metrics=self.metrics
        )
        figures = ControllerMetrics(self.metrics, self.controllers.view)
        self.controllers.on_change.append(figures.notice)

    def run(self, seconds: Any) -> None:
        for _ in range(seconds):
            self.controllers.run_until_quiet()
            self.scheduler._turn()
            self.kubelet.sync()
            self.clock.advance(1.0)
        self.controllers.run_until_quiet()


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Any]:
    plane = Plane(tmp_path)
    yield plane
    plane.controllers.close()


def samples(text: Any) -> Any:
    found: dict[Any, Any] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found.setdefault(name.partition("{")[0], []).append(float(value))
    return found


def test_every_figure_moves_in_a_run(plane: Any) -> None:
    plane.scheduler._wait_synced(threading.Event())
    plane.run(1)
    add_node(plane.cluster, "n", {"cpu": "6", "memory": "8Gi", GPU: "2"})
    for manifest in workload():
        plane.cluster.create(manifest)
    plane.run(12)
    for manifest in urgent():
        plane.cluster.create(manifest)
    plane.run(12)
    for number in range(40):
        plane.cluster.create(queue(f"late-{number}"))
    plane.controllers.turn()  # more than it can look at at once
    found = samples(plane.metrics.text())
    still = []
    for figure in CATALOGUE:
        if figure.name.startswith("pumice_shadow_"):  # those of a shadow: see its own tests
            continue
        name = f"{figure.name}_count" if figure.kind == "histogram" else figure.name
        values = found.get(name, [])
        if not (values if figure.kind == "gauge" and figure.labels else any(values)):
            still.append(figure.name)
    assert still == []

"""A full cluster on which gangs wait: the same objects for the same arguments, always."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.checkouts import HERE
from pumice.api.annotations import RUN_SECONDS
from pumice.api.conf import DEFAULT_CONF
from pumice.testing.builders import node, pod, pod_group, priority_class, queue

Manifest = dict[str, Any]

EVICTING: Final = HERE / "examples" / "volcano-scheduler.conf"
"""A configuration in which jobs preempt and reclaim."""
CONFIGURATIONS: Final = {"default": DEFAULT_CONF, "evicting": EVICTING.read_text()}
ASKED: Final = "bench/wait00500"
"""A job in the middle of those that wait."""
PRIORITIES: Final = {"work": 100, "urgent": 1000}
_PODS_PER_NODE: Final = 10
_RUNNING_GANG: Final = 20
_WAITING_GANG: Final = 4
_QUEUES: Final = 4
_WAITING_AT: Final = 50_000
"""When the first gang that waits was made, in seconds of the day."""


@dataclass(frozen=True)
class FullCluster:
    """Nodes with ten pods each, and gangs of four whose pods find no room.

    All have the same priority, and queues hold what they deserve: nobody is evicted, unless
    ``marks`` and ``extra`` say otherwise.  With ``run_s`` jobs end, the first after that time and
    each other one that much later.
    """

    nodes: int = 1000
    gangs: int = 1000
    run_s: int = 0
    running_cpu: float = 3.2
    """What each running pod asks for; ten of 3.2 take a whole node."""
    gang: int = _WAITING_GANG
    """Pods of each gang that waits."""
    cpu: int = 0
    """What each of them asks for; 0: from 4 to 8."""
    priority: str = "work"
    """The priority class of those that wait."""
    running: Manifest = field(default_factory=dict)
    """More arguments of the pods that run, as `pod` takes them."""
    running_groups: Manifest = field(default_factory=dict)
    """More arguments of their groups, as `pod_group` takes them."""
    extra: tuple[Manifest, ...] = ()
    """More objects."""

    def objects(self) -> list[Manifest]:
        """Return all manifests of the cluster."""
        return list(self._stream())

    def written(self, file: Path, conf: str) -> Path:
        """Write the cluster and a configuration to a file that commands read."""
        file.write_text(json.dumps({"objects": self.objects(), "conf": conf}))
        return file

    def _stream(self) -> Iterator[Manifest]:
        for name, value in PRIORITIES.items():
            yield priority_class(name, value=value)
        for each in range(_QUEUES):
            yield queue(f"q{each}", created=_when(each))
        for each in range(self.nodes):
            yield node(f"node-{each:05d}", cpu=32, memory="128Gi", labels={"zone": f"z{each % 10}"})
        yield from self.extra
        yield from self._running()
        for number in range(self.gangs):
            yield from self.waiting(number)

    def _running(self) -> Iterator[Manifest]:
        for job in range(self.nodes * _PODS_PER_NODE // _RUNNING_GANG):
            name, made = f"run{job:05d}", _when(100 + job)
            ends = {RUN_SECONDS: str(_WAITING_AT + (job + 1) * self.run_s)} if self.run_s else {}
            size = _RUNNING_GANG, self.running_cpu
            more = {"annotations": ends} | self.running_groups
            yield _group(name, job, size, phase="Running", made=made, **more)
            for each in range(_RUNNING_GANG):
                on = f"node-{(job * _RUNNING_GANG + each) % self.nodes:05d}"
                yield _pod(name, each, self.running_cpu, made, node=on, **self.running)

    def waiting(self, number: int) -> Iterator[Manifest]:
        """Return a gang that waits."""
        name, made = f"wait{number:05d}", _when(_WAITING_AT + number)
        cpu = self.cpu or 4 + number % 5
        size, more = (self.gang, cpu), {"priority_class": self.priority}
        yield _group(name, number, size, phase="Inqueue", made=made, **more)
        for each in range(self.gang):
            yield _pod(name, each, cpu, made, priority=PRIORITIES[self.priority], **more)


def _group(
    name: str, job: int, size: tuple[int, float], *, phase: str, made: str, **more: Any
) -> Manifest:
    members, cpu = size
    stated: Manifest = {
        "namespace": "bench",
        "min_member": members,
        "queue": f"q{job % _QUEUES}",
        "phase": phase,
        "min_resources": {"cpu": cpu * members, "memory": f"{2 * cpu * members:g}Gi"},
        "priority_class": "work",
        "created": made,
    }
    return pod_group(name, **(stated | more))


def _pod(group: str, number: int, cpu: float, made: str, **more: Any) -> Manifest:
    stated: Manifest = {
        "namespace": "bench",
        "group": group,
        "role": "w",
        "cpu": cpu,
        "memory": f"{2 * cpu:g}Gi",
        "priority": 100,
        "priority_class": "work",
        "created": made,
    }
    return pod(f"{group}-w-{number}", **(stated | more))


def _when(seconds: int) -> str:
    hour, rest = divmod(seconds, 3600)
    return f"2026-01-15T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z"

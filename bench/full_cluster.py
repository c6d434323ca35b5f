"""A full cluster on which gangs wait: the same objects for the same arguments, always."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
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
_PODS_PER_NODE: Final = 10
_RUNNING_GANG: Final = 20
_WAITING_GANG: Final = 4
_QUEUES: Final = 4
_WAITING_AT: Final = 50_000
"""When the first gang that waits was made, in seconds of the day."""


@dataclass(frozen=True)
class FullCluster:
    """Nodes with ten pods each, and gangs of four whose pods find no room.

    All have the same priority, and queues hold what they deserve: nobody is evicted.  With
    ``run_s`` jobs end, the first after that time and each other one that much later.
    """

    nodes: int = 1000
    gangs: int = 1000
    run_s: int = 0
    running_cpu: float = 3.2
    """What each running pod asks for; ten of 3.2 take a whole node."""

    def objects(self) -> list[Manifest]:
        """Return all manifests of the cluster."""
        return list(self._stream())

    def written(self, file: Path, conf: str) -> Path:
        """Write the cluster and a configuration to a file that commands read."""
        file.write_text(json.dumps({"objects": self.objects(), "conf": conf}))
        return file

    def _stream(self) -> Iterator[Manifest]:
        yield priority_class("work", value=100)
        for each in range(_QUEUES):
            yield queue(f"q{each}", created=_when(each))
        for each in range(self.nodes):
            yield node(f"node-{each:05d}", cpu=32, memory="128Gi", labels={"zone": f"z{each % 10}"})
        yield from self._running()
        yield from self._waiting()

    def _running(self) -> Iterator[Manifest]:
        for job in range(self.nodes * _PODS_PER_NODE // _RUNNING_GANG):
            name, made = f"run{job:05d}", _when(100 + job)
            ends = {RUN_SECONDS: str(_WAITING_AT + (job + 1) * self.run_s)} if self.run_s else {}
            yield _group(
                name, job, (_RUNNING_GANG, self.running_cpu), phase="Running", made=made, **ends
            )
            for each in range(_RUNNING_GANG):
                on = f"node-{(job * _RUNNING_GANG + each) % self.nodes:05d}"
                yield _pod(name, each, self.running_cpu, made, on)

    def _waiting(self) -> Iterator[Manifest]:
        for job in range(self.gangs):
            name, made = f"wait{job:05d}", _when(_WAITING_AT + job)
            cpu = 4 + job % 5
            yield _group(name, job, (_WAITING_GANG, cpu), phase="Inqueue", made=made)
            for each in range(_WAITING_GANG):
                yield _pod(name, each, cpu, made, None)


def _group(
    name: str, job: int, size: tuple[int, float], *, phase: str, made: str, **marks: str
) -> Manifest:
    members, cpu = size
    return pod_group(
        name,
        namespace="bench",
        min_member=members,
        queue=f"q{job % _QUEUES}",
        phase=phase,
        min_resources={"cpu": cpu * members, "memory": f"{2 * cpu * members:g}Gi"},
        priority_class="work",
        annotations=marks,
        created=made,
    )


def _pod(group: str, number: int, cpu: float, made: str, on: str | None) -> Manifest:
    return pod(
        f"{group}-w-{number}",
        namespace="bench",
        group=group,
        role="w",
        cpu=cpu,
        memory=f"{2 * cpu:g}Gi",
        node=on,
        priority=100,
        priority_class="work",
        created=made,
    )


def _when(seconds: int) -> str:
    hour, rest = divmod(seconds, 3600)
    return f"2026-01-15T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z"

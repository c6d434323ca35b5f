"""Logs in the Standard Workload Format of the Parallel Workloads Archive.

Every processor of a job is a pod of its own; all pods of a job start together.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from pumice.api.pods import PodSpec
from pumice.errors import InputError
from pumice.sim.limits import MAX_JOB_PODS, check_at_most, within_limits
from pumice.sim.readers.text import read_text
from pumice.sim.workload import JobSpec, NodeHint, PodSpecs, TaskSpec, Workload, in_order

_FIELDS = 18
_SUBMIT, _RUN, _PROCS, _ASKED, _MEMORY = 1, 3, 4, 7, 9
_GROUP, _QUEUE = 12, 14
_END_OF_TIME = 253_000_000_000
"""Seconds since 1970 after which a header's time is invalid: the year 9987."""


def looks_like(text: str) -> bool:
    """Return whether a text is such a log, by its comments, or by its eighteen numbers a line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.startswith(";"):
        return True
    parts = first.split()
    return len(parts) == _FIELDS and all(re.fullmatch(r"-?[0-9.]+", part) for part in parts)


def read(path: Path) -> Workload:
    """Read a log; its queues, or else its user groups, are queues."""
    text = read_text(path)
    header = [line for line in text.splitlines() if line.startswith(";")]
    skipped = [0]
    found = _jobs(text, str(path), _queue_names(header), skipped)
    jobs = list(within_limits(found, str(path)))
    notes = ["each processor of a job is one pod of one cpu"]
    if skipped[0]:
        notes.append(f"{skipped[0]} jobs without a run time or processors were left out")
    return Workload(
        name=path.name,
        format="swf",
        jobs=in_order(jobs),
        node_hint=_node_hint(header, max((job.size for job in jobs), default=1)),
        start=_start(header, min((job.arrival for job in jobs), default=0.0)),
        notes=tuple(notes),
    )


def _jobs(text: str, file: str, queues: dict[int, str], skipped: list[int]) -> Iterator[JobSpec]:
    pod_specs, specs = PodSpecs(), dict[float, PodSpec]()
    for line, row in enumerate(text.splitlines(), start=1):
        if not row.strip() or row.startswith(";"):
            continue
        parts = row.split()
        try:
            values = list(map(float, parts))
        except ValueError:
            values = []
        if len(values) < _FIELDS or not all(map(math.isfinite, values)):
            raise InputError(wanted=f"{_FIELDS} numbers", found=row.strip(), file=f"{file}:{line}")
        n = int(values[_ASKED] if values[_ASKED] > 0 else values[_PROCS])
        at = f"{file}:{line}"
        check_at_most(n, MAX_JOB_PODS, "processors of a job", file=at, field="processors")
        if n < 1 or values[_RUN] < 0:
            skipped[0] += 1
            continue
        memory = max(values[_MEMORY], 0.0)
        if memory not in specs:
            asked = {"memory": f"{int(memory)}Ki"} if memory > 0 else {}
            specs[memory] = pod_specs.spec({"cpu": "1", **asked})
        yield JobSpec(
            name=f"job-{int(values[0]):07d}",
            arrival=values[_SUBMIT],
            tasks=(TaskSpec(specs[memory], n, values[_RUN], role="proc"),),
            min_member=n,
            queue=_queue(int(values[_QUEUE]), int(values[_GROUP]), queues),
        )


def _queue(queue: int, group: int, names: dict[int, str]) -> str:
    if queue >= 0:
        return names.get(queue, f"queue-{queue}")
    return f"group-{group}" if group >= 0 else "default"


def _queue_names(header: list[str]) -> dict[int, str]:
    found = (re.match(r";\s*Queue:\s*(\d+)\s+(\S+)", line) for line in header)
    names = {_whole(m[1]): re.sub(r"[^a-z0-9-]+", "-", m[2].lower()).strip("-") for m in found if m}
    return {number: name or f"queue-{number}" for number, name in names.items()}


def _whole(digits: str) -> int:
    """Read a whole number; one of very many digits is cut, and still too large."""
    return int(digits[:20])


def _start(header: list[str], first: float) -> float | None:
    """Return when the first job arrived, if the header states the start of the log."""
    found = (re.match(r";\s*UnixStartTime:\s*(\d+)", line) for line in header)
    begins = next((_whole(match[1]) for match in found if match), 0)
    return begins + first if 0 < begins < _END_OF_TIME else None


def _node_hint(header: list[str], largest: int) -> NodeHint:
    """Size the machine by the header, or by its largest job."""
    told: dict[str, int] = {}
    for line in header:
        match = re.match(r";\s*(MaxNodes|MaxProcs):\s*(\d+)", line)
        if match:
            told[match[1]] = _whole(match[2])
    procs = max(told.get("MaxProcs", 0), told.get("MaxNodes", 0), largest)
    nodes = min(told.get("MaxNodes", 0) or procs, procs)
    cpus = -(-procs // nodes)
    amounts = {"cpu": str(cpus), "memory": f"{4 * cpus}Gi", "pods": str(max(110, cpus))}
    return NodeHint(amounts, count=nodes)

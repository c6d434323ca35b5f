"""Logs in the Standard Workload Format, as the Parallel Workloads Archive and others keep them.

Every processor of a job is a pod of its own, but where a log of MetaCentrum states the nodes of a
job: there every node's part is a pod.  All pods of a job start together.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pumice.api.pods import PodSpec
from pumice.api.wording import counted, verb
from pumice.errors import InputError
from pumice.sim.options import MAX_JOB_PODS, check_at_most, within_limits
from pumice.sim.readers.node_sizes import node_for
from pumice.sim.readers.table_files import first_lines, lines, read_text
from pumice.sim.workload import JobSpec, NodeHint, PodSpecs, TaskSpec, Workload, expected, in_order

_FIELDS: Final = 18
_SUBMIT, _RUN, _PROCS, _ASKED, _WALLTIME, _MEMORY = 1, 3, 4, 7, 8, 9
_USER, _GROUP, _QUEUE = 11, 12, 14
_QUEUE_NAME, _NODES = 19, 20
"""Columns of MetaCentrum behind the eighteen, after the list of the nodes that were used."""
_NODE_PART: Final = re.compile(r"(\d{1,6}):ppn=(\d{1,6})\b")
_NUMBER: Final = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_COMMENTS: Final = (";", "#")
_KI, _GI = 1 << 10, 1 << 30
_DATES_BEGIN: Final = 315_532_800
"""Submit times from here on count from 1970: this is the year 1980."""
_END_OF_TIME: Final = 253_000_000_000
"""Seconds since 1970 after which a header's time is invalid: the year 9987."""


def looks_like(text: str) -> bool:
    """Return whether a text is such a log, by its comments or its numbers on each line."""
    for line in first_lines(text):
        if line.startswith(";"):
            return True
        parts = line.split()
        if parts and not line.startswith("#") and not _is_title(parts):
            return len(parts) >= _FIELDS and all(map(_NUMBER.fullmatch, parts[:_FIELDS]))
    return False


def _is_title(parts: Sequence[str]) -> bool:
    """Return whether a line names the columns, as some logs begin."""
    return len(parts) >= _FIELDS and not any(map(_NUMBER.fullmatch, parts))


@dataclass
class _Log:
    """A log on the way through it."""

    file: str
    queues: dict[int, str]
    skipped: int = 0
    by_node: int = 0
    """Jobs of which the log states the nodes."""
    specs: PodSpecs = field(default_factory=PodSpecs)
    known: dict[tuple[int, float], PodSpec] = field(default_factory=dict)

    def spec(self, cpus: int, memory: float) -> PodSpec:
        """Return the pod of so many CPUs and bytes of memory."""
        found = self.known.get((cpus, memory))
        if found is None:
            asked = {"memory": f"{int(memory / _KI)}Ki"} if memory >= _KI else {}
            found = self.known[cpus, memory] = self.specs.spec({"cpu": str(cpus), **asked})
        return found


def read(path: Path) -> Workload:
    """Read a log; its queues, or else its user groups, are queues."""
    text = read_text(path)
    header = [line for line in lines(text, str(path)) if line.startswith(_COMMENTS)]
    log = _Log(str(path), _queue_names(header))
    jobs = list(within_limits(_jobs(text, log), str(path)))
    notes = ["each processor of a job is one pod of one cpu"]
    if log.by_node:
        notes = [
            f"of {counted(log.by_node, 'job')} each node's part is one pod; else each processor is"
        ]
    if log.skipped:
        notes.append(
            f"{counted(log.skipped, 'job')} without a run time, processors or a submit time "
            f"{verb(log.skipped, 'was', 'were')} left out"
        )
    return Workload(
        name=path.name,
        format="swf",
        jobs=in_order(jobs),
        node_hint=_node_hint(header, jobs),
        start=_start(header, min((job.arrival for job in jobs), default=0.0)),
        notes=tuple(notes),
    )


def _jobs(text: str, log: _Log) -> Iterator[JobSpec]:
    begun = False
    for line, row in enumerate(lines(text, log.file), start=1):
        if not row.strip() or row.startswith(_COMMENTS):
            continue
        parts = row.split()
        if not begun and _is_title(parts):
            continue
        begun = True
        at = f"{log.file}:{line}"
        job = _job(parts, line, at, log)
        if job is None:
            log.skipped += 1
        else:
            yield job


def _job(parts: Sequence[str], line: int, at: str, log: _Log) -> JobSpec | None:
    """Read one line; None if it does not tell what a job needs."""
    try:
        values = list(map(float, parts[:_FIELDS]))
    except ValueError:
        values = []
    if len(values) < _FIELDS or not all(map(math.isfinite, values)):
        raise InputError(wanted=f"{_FIELDS} numbers", found=" ".join(parts), file=at)
    n = int(values[_ASKED] if values[_ASKED] > 0 else values[_PROCS])
    check_at_most(n, MAX_JOB_PODS, "processors of a job", file=at, field="processors")
    if n < 1 or values[_RUN] < 0 or values[_SUBMIT] < 0:
        return None
    tasks = _tasks(parts, values, n, log)
    return JobSpec(
        name=f"job-{int(values[0]) if values[0] >= 0 else line:07d}",
        arrival=values[_SUBMIT],
        tasks=tasks,
        min_member=sum(task.count for task in tasks),
        queue=_queue(parts, values, log.queues),
        annotations=expected(values[_WALLTIME] if values[_WALLTIME] > 0 else None),
        user=f"user-{int(values[_USER])}" if values[_USER] >= 0 else "",
    )


def _tasks(parts: Sequence[str], values: list[float], n: int, log: _Log) -> tuple[TaskSpec, ...]:
    run, memory = values[_RUN], max(values[_MEMORY], 0.0)
    if len(parts) > _NODES and (found := _NODE_PART.findall(parts[_NODES])):
        nodes = [(int(count), int(cpus)) for count, cpus in found]
        if sum(count * cpus for count, cpus in nodes) == n and all(map(all, nodes)):
            log.by_node += 1  # memory is in bytes, for each node
            return tuple(
                TaskSpec(log.spec(cpus, memory), count, run, role=f"node-{number}")
                for number, (count, cpus) in enumerate(nodes)
            )
        memory /= n * _KI
    return (TaskSpec(log.spec(1, memory * _KI), n, run, role="proc"),)


def _queue(parts: Sequence[str], values: list[float], names: dict[int, str]) -> str:
    queue, group = int(values[_QUEUE]), int(values[_GROUP])
    if queue >= 0:
        return names.get(queue, f"queue-{queue}")
    if len(parts) > _NODES and (named := _name(parts[_QUEUE_NAME])):
        return named
    return f"group-{group}" if group >= 0 else "default"


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")


def _queue_names(header: list[str]) -> dict[int, str]:
    found = (re.match(r";\s*Queue:\s*(\d+)\s+(\S+)", line) for line in header)
    names = {_whole(m[1]): _name(m[2]) for m in found if m}
    return {number: name or f"queue-{number}" for number, name in names.items()}


def _whole(digits: str) -> int:
    """Read a whole number; one of very many digits is cut, and still too large."""
    return int(digits[:20])


def _start(header: list[str], first: float) -> float | None:
    """Return when the first job arrived, by the header or by submit times since 1970."""
    found = (re.match(r";\s*UnixStartTime:\s*(\d+)", line) for line in header)
    begins = next((_whole(match[1]) for match in found if match), 0)
    if not begins and first > _DATES_BEGIN:
        return first if first < _END_OF_TIME else None
    return begins + first if 0 < begins < _END_OF_TIME else None


def _node_hint(header: list[str], jobs: Sequence[JobSpec]) -> NodeHint:
    """Size the machine by the header, and so that the largest job and pod fit.

    Without a header there are as many nodes as the work fills.
    """
    sizes: dict[str, int] = {}
    for line in header:
        match = re.match(r";\s*(MaxNodes|MaxProcs):\s*(\d+)", line)
        if match:
            sizes[match[1]] = _whole(match[2])
    if not any(sizes.values()):
        return node_for(jobs)
    largest = max((job.size for job in jobs), default=1)
    procs = max(sizes.get("MaxProcs", 0), sizes.get("MaxNodes", 0), largest)
    nodes = min(sizes.get("MaxNodes", 0) or procs, procs)
    cpus = -(-procs // nodes)
    usual = {"cpu": cpus, "memory": 4 * _GI, "pods": max(110, cpus)}
    memory = int(node_for(jobs, usual).allocatable["memory"].removesuffix("Gi"))
    amounts = {"cpu": str(cpus), "memory": f"{cpus * memory}Gi", "pods": str(max(110, cpus))}
    return NodeHint(amounts, count=nodes)

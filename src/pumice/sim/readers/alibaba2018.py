"""Alibaba's cluster trace of 2018: the tables of batch tasks and instances, and lists made of them.

Every task is a job, every instance a pod that starts when there is room for it.  The tables come
without a line that names their columns.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pumice.api.pods import PodSpec
from pumice.sim.options import MAX_JOB_PODS, MAX_PODS, check_at_most, within_limits
from pumice.sim.readers.table_files import columns_of, first_lines, number, rows_of
from pumice.sim.workload import JobSpec, NodeHint, PodSpecs, TaskSpec, Workload, in_order

TASK_COLUMNS: Final = (
    *("task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem"),
)
INSTANCE_COLUMNS: Final = (
    *("instance_name", "task_name", "job_name", "task_type", "status", "start_time", "end_time"),
    *("machine_id", "seq_no", "total_seq_no", "cpu_avg", "cpu_max", "mem_avg", "mem_max"),
)
LIST_COLUMNS: Final = frozenset({"submit_time", "duration", "job_id", "task_id", "instances_num"})
_NODE: Final = NodeHint({"cpu": "96", "memory": "100Gi", "pods": "1000"})
_STATUS: Final = 4
_STATES: Final = frozenset(
    {"Terminated", "Failed", "Running", "Waiting", "Cancelled", "Interrupted", "Ready"}
)
_MOST: Final = 1e9
"""Beyond every amount and time of the trace."""
Row = Mapping[str, str]


@dataclass
class _Table:
    """A table on the way through it."""

    file: str
    skipped: int = 0
    specs: PodSpecs = field(default_factory=PodSpecs)

    def pod(self, cpus: float, memory: float) -> PodSpec:
        """Return the pod of so many CPUs and hundredths of a machine's memory, a GiB each."""
        amounts = {"cpu": f"{max(round(1000 * cpus), 1)}m"}
        if memory > 0:
            amounts["memory"] = f"{max(round(1024 * memory), 1)}Mi"
        return self.specs.spec(amounts)


def is_header(columns: set[str]) -> bool:
    """Return whether columns are those of such a table, or of a list made of one."""
    task, instance = {"task_name", "plan_cpu"}, {"instance_name", "cpu_max"}
    return task <= columns or instance <= columns or columns >= LIST_COLUMNS


def looks_like(text: str) -> bool:
    """Return whether the first row of a text is one of such a table."""
    cells = next(first_lines(text), "").split(",")
    if len(cells) not in (len(TASK_COLUMNS), len(INSTANCE_COLUMNS)):
        return False
    return cells[_STATUS] in _STATES and all(cell.isdigit() or not cell for cell in cells[5:7])


def read(path: Path) -> Workload:
    """Read a table of tasks or of instances, or a list of tasks with durations."""
    columns = columns_of(path)
    table = _Table(str(path))
    notes: tuple[str, ...]
    if set(columns) >= LIST_COLUMNS:
        found, notes = _listed(path, table), ("a task arrives once those before it may have ended",)
    elif "instance_name" in columns or len(columns) == len(INSTANCE_COLUMNS):
        found, notes = _instances(path, table), ("pods ask for the most that instances used",)
    else:
        found, notes = _tasks(path, table), ("all instances of a task run as long as the task",)
    jobs = in_order(within_limits(found, str(path)))
    memory = "memory is known in hundredths of the largest machine: one is taken for 1 GiB"
    if table.skipped:
        notes += (f"{table.skipped} rows without instances or times were left out",)
    return Workload(
        name=path.name,
        format="alibaba2018",
        jobs=jobs,
        node_hint=_NODE,
        notes=(*notes, memory),
    )


def _tasks(path: Path, table: _Table) -> Iterator[JobSpec]:
    for line, row in rows_of(path, TASK_COLUMNS):
        times = _times(row, table.file, line)
        count = int(_known(row, "instance_num", table.file, line))
        if times is None or count < 1:
            table.skipped += 1
            continue
        at = f"{table.file}:{line}"
        check_at_most(count, MAX_JOB_PODS, "instances of a task", file=at, field="instance_num")
        cpus = _known(row, "plan_cpu", table.file, line) / 100
        memory = _known(row, "plan_mem", table.file, line)
        task = TaskSpec(table.pod(cpus, memory), count, times[1] - times[0])
        yield _job(row, times[0], (task,))


def _instances(path: Path, table: _Table) -> Iterator[JobSpec]:
    """Put the instances of a task together, equal ones as one."""
    found: dict[tuple[str, str], list[tuple[float, PodSpec, float]]] = {}
    first: dict[tuple[str, str], Row] = {}
    for n, (line, row) in enumerate(rows_of(path, INSTANCE_COLUMNS), start=1):
        check_at_most(n, MAX_PODS, "instances", file=table.file)
        times = _times(row, table.file, line)
        if times is None:
            table.skipped += 1
            continue
        cpus = _known(row, "cpu_max", table.file, line) / 100
        spec = table.pod(cpus, _known(row, "mem_max", table.file, line))
        key = row.get("job_name", ""), row.get("task_name", "")
        first.setdefault(key, row)
        found.setdefault(key, []).append((times[0], spec, times[1] - times[0]))
    for key, pods in found.items():
        equal: dict[tuple[int, float], tuple[PodSpec, int]] = {}
        for _, spec, run in pods:
            equal[id(spec), run] = spec, equal.get((id(spec), run), (spec, 0))[1] + 1
        tasks = tuple(TaskSpec(spec, n, run) for (_, run), (spec, n) in equal.items())
        yield _job(first[key], min(pod[0] for pod in pods), tasks)


def _job(row: Row, arrival: float, tasks: tuple[TaskSpec, ...]) -> JobSpec:
    return JobSpec(
        name=_name(f"{row.get('job_name')}-{row.get('task_name')}"),
        arrival=arrival,
        tasks=tasks,
        min_member=1,
        queue=f"type-{row['task_type']}" if row.get("task_type") else "default",
    )


def _times(row: Row, file: str, line: int) -> tuple[float, float] | None:
    """Return start and end; None where the trace does not have them, which is 0 there."""
    start, end = (_known(row, column, file, line) for column in ("start_time", "end_time"))
    return (start, end) if 0 < start <= end else None


def _known(row: Row, column: str, file: str, line: int) -> float:
    """Read a number; one that is not known is empty, or -1 or 101 for a share."""
    text = row.get(column, "").strip()
    if text in ("", "-1", "-1.0"):
        return 0.0
    value = number(row, column, file, line, most=_MOST)
    return 0.0 if value == 101 and column.endswith(("_mem", "mem_max")) else value


# Lists made of the tables


def _listed(path: Path, table: _Table) -> Iterator[JobSpec]:
    """Read tasks with the time at which their job came; they wait for others by their names."""
    by_job: dict[str, list[tuple[int, Row]]] = {}
    for line, row in rows_of(path):
        by_job.setdefault(row["job_id"], []).append((line, row))
    for tasks in by_job.values():
        yield from _job_of_list(tasks, table)


def _job_of_list(tasks: Iterable[tuple[int, Row]], table: _Table) -> Iterator[JobSpec]:
    ends: dict[str, float] = {}
    for line, row in sorted(tasks, key=lambda each: _place(each[1])):
        count = int(number(row, "instances_num", table.file, line, most=_MOST))
        if count < 1:
            table.skipped += 1
            continue
        at = f"{table.file}:{line}"
        check_at_most(count, MAX_JOB_PODS, "instances of a task", file=at, field="instances_num")
        own, *before = re.findall(r"\d+", row["task_id"]) or [row["task_id"]]
        come = number(row, "submit_time", table.file, line, most=_MOST)
        come = max((come, *(ends[each] for each in before if each in ends)))
        run = number(row, "duration", table.file, line, most=_MOST)
        ends[own] = come + run
        cpus, memory = (_known(row, column, table.file, line) for column in ("cpu", "memory"))
        yield JobSpec(
            name=_name(f"j-{row['job_id']}-{row['task_id']}"),
            arrival=come,
            tasks=(TaskSpec(table.pod(cpus, 100 * memory), count, run),),  # parts of a machine
            min_member=1,
        )


def _place(row: Row) -> int:
    """Number a task: those it waits for have smaller numbers."""
    found = re.search(r"\d{1,9}", row["task_id"])
    return int(found[0]) if found else 0


def _name(text: str) -> str:
    """Write a name as Kubernetes takes it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:200] or "task"

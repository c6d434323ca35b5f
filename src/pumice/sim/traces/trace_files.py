"""Workloads as files: Pumice's own table of jobs, the Standard Workload Format, manifests."""

import gzip
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from pumice.api.annotations import ACTUAL_SECONDS, RUN_SECONDS, USER
from pumice.api.kinds import DEFAULT_QUEUE, Manifest
from pumice.api.objects import Node, ObjectMeta, Pod, Queue, to_manifest
from pumice.api.output_files import write_file
from pumice.api.pods import PodSpec
from pumice.api.times import rfc3339
from pumice.api.wording import counted
from pumice.errors import InputError
from pumice.sim.inputs import make_nodes
from pumice.sim.options import WRITTEN
from pumice.sim.output import write_table
from pumice.sim.readers.job_table import AMOUNTS, REQUEST
from pumice.sim.readers.manifests import ARRIVAL
from pumice.sim.readers.node_sizes import amounts_of
from pumice.sim.readers.table_files import write_csv
from pumice.sim.sim_cluster import open_queue
from pumice.sim.workload import JobSpec, Workload, seconds_text


@dataclass(frozen=True, slots=True)
class UniformJob:
    """A job as a form holds it whose jobs have equal pods."""

    job: JobSpec
    pods: int
    run: float
    asked: Mapping[str, float]
    """By one pod."""

    @classmethod
    def of(cls, job: JobSpec) -> "UniformJob":
        """Take the mean of pods that differ."""
        if len(job.tasks) == 1:
            [task] = job.tasks
            return cls(job, task.count, task.run_seconds, amounts_of(task.spec))
        total: dict[str, float] = {}
        for task in job.tasks:
            for name, amount in amounts_of(task.spec).items():
                total[name] = total.get(name, 0.0) + amount * task.count
        seconds = sum(task.run_seconds * task.count for task in job.tasks)
        asked = {name: amount / job.size for name, amount in total.items()}
        return cls(job, job.size, seconds / job.size, asked)


def losses(workload: Workload) -> list[str]:
    """Describe what manifests would have kept, in words."""
    several = sum(len(job.tasks) > 1 for job in workload.jobs)
    found = []
    if several:
        found.append(f"{counted(several, 'job')} of pods that differ: the mean of them is written")
    wishes = _jobs_with(workload, {id(spec) for spec in _specs(workload) if _has_wishes(spec)})
    if wishes:
        found.append(f"{counted(wishes, 'job')}: all but what pods ask for, such as affinities")
    kinds = Counter(type(thing).__name__ for thing in workload.objects)
    if kinds:
        counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        found.append(f"what the cluster is made of: {counts}; name it with --nodes")
    return found


def losses_in_table(workload: Workload) -> list[str]:
    """Describe what a table of jobs cannot hold besides."""
    hint, found = workload.node_hint, lost_date(workload)
    if hint is not None and hint.count is not None:
        found.append(f"the number of nodes, {hint.count}; name nodes with --nodes")
    return found


def lost_date(workload: Workload) -> list[str]:
    """Describe when the first job arrived, for forms that count seconds from it."""
    if workload.start is None:
        return []
    return [f"the date of the first job; simulate it with --start {rfc3339(workload.start)}"]


def losses_in_swf(workload: Workload) -> list[str]:
    """Describe what the Standard Workload Format cannot hold besides."""
    amounts = {id(spec): amounts_of(spec) for spec in _specs(workload)}
    others = sorted({name for asked in amounts.values() for name in asked} - {"cpu", "memory"})
    found = []
    for name in others:
        n = _jobs_with(workload, {key for key, asked in amounts.items() if asked.get(name)})
        if n:
            found.append(f"{counted(n, 'job')}: {name}, which the format does not know")
    parts = _jobs_with(workload, {key for key, asked in amounts.items() if asked.get("cpu", 0) % 1})
    if parts:
        found.append(f"{counted(parts, 'job')}: parts of a CPU, rounded up to whole processors")
    early = sum(0 < job.min_member < job.size for job in workload.jobs)
    if early:
        found.append(f"{counted(early, 'job')}: that some of the pods are enough to start")
    return found


def _specs(workload: Workload) -> list[PodSpec]:
    return list({id(task.spec): task.spec for job in workload.jobs for task in job.tasks}.values())


def _jobs_with(workload: Workload, specs: set[int]) -> int:
    """Count the jobs with pods of some specifications, named by their identity."""
    return sum(any(id(task.spec) in specs for task in job.tasks) for job in workload.jobs)


def _has_wishes(spec: PodSpec) -> bool:
    """Return whether amounts alone do not decide where a pod may run."""
    return bool(
        spec.affinity
        or spec.node_selector
        or spec.tolerations
        or spec.topology_spread_constraints
        or spec.volumes
        or spec.resource_claims
        or spec.scheduling_gates
        or any(container.ports for container in spec.containers)
    )


_COLUMNS: Final = (
    *("name", "user", "queue", "priority_class", "arrival", "run", "walltime", "pods", "needed"),
)
_MEBI: Final = 1 << 20


def write_parquet(workload: Workload, path: Path) -> None:
    """Write jobs as Parquet, numbers as such."""
    equal = [UniformJob.of(job) for job in workload.jobs]
    columns = _columns(equal)
    write_table(path, columns, _typed(_rows(equal, columns)))


def as_csv(workload: Workload) -> str:
    """Write jobs as CSV."""
    out = io.StringIO()
    equal = [UniformJob.of(job) for job in workload.jobs]
    columns = _columns(equal)
    write_csv(out, columns, _rows(equal, columns))
    return out.getvalue()


def _columns(jobs: Iterable[UniformJob]) -> list[str]:
    own = {resource: column for column, resource in AMOUNTS.items()}
    names = {name: None for job in jobs for name in job.asked}
    return [*_COLUMNS, *(own.get(name, f"{REQUEST}{name}") for name in names)]


def _rows(jobs: Iterable[UniformJob], columns: Sequence[str]) -> Iterator[list[str]]:
    resources = [AMOUNTS.get(name, name.removeprefix(REQUEST)) for name in columns]
    for each in jobs:
        job, walltime = each.job, each.job.walltime
        yield [
            job.name,
            job.user,
            job.queue,
            job.priority_class,
            seconds_text(job.arrival),
            seconds_text(each.run),
            "" if walltime is None else seconds_text(walltime),
            str(each.pods),
            str(max(job.min_member, 1)),
            *(
                _quantity(name, each.asked[name]) if name in each.asked else ""
                for name in resources[len(_COLUMNS) :]
            ),
        ]


def _typed(rows: Iterable[Sequence[str]]) -> Iterator[list[Any]]:
    """Write the numbers of a row as such."""
    for row in rows:
        name, user, queue, ranked, arrival, run, walltime, pods, needed, *asked = row
        seconds = [float(text) if text else None for text in (arrival, run, walltime)]
        yield [name, user, queue, ranked, *seconds, int(pods), int(needed), *asked]


def _quantity(resource: str, amount: float) -> str:
    """Write an amount as a quantity: bytes as such, else in thousandths if it is not whole."""
    if resource in ("memory", "ephemeral-storage"):
        whole, rest = divmod(round(amount), _MEBI)
        return str(round(amount)) if rest else f"{whole}Mi"
    thousandths = round(1000 * amount)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def as_swf(workload: Workload) -> str:
    """Write jobs in the Standard Workload Format."""
    queues = {name: n for n, name in enumerate(dict.fromkeys(job.queue for job in workload.jobs))}
    users = {name: n for n, name in enumerate(dict.fromkeys(job.user for job in workload.jobs), 1)}
    lines = [*_header(workload, queues)]
    lines += [
        " ".join(_row(number, UniformJob.of(job), users, queues))
        for number, job in enumerate(workload.jobs, start=1)
    ]
    return "\n".join(lines) + "\n"


def _header(workload: Workload, queues: Mapping[str, int]) -> Iterator[str]:
    yield "; Version: 2.2"
    yield f"; Computer: {' '.join(workload.name.split())}"
    yield "; Note: written by pumice; each cpu is one processor"
    yield f"; MaxJobs: {len(workload.jobs)}"
    if workload.start is not None:
        yield f"; UnixStartTime: {int(workload.start)}"
    hint = workload.node_hint
    if hint is not None and hint.count is not None:
        cpus = math.ceil(float(hint.allocatable.get("cpu", "1")))
        yield f"; MaxNodes: {hint.count}"
        yield f"; MaxProcs: {hint.count * cpus}"
    yield f"; MaxQueues: {len(queues)}"
    yield from (f"; Queue: {number} {'-'.join(name.split())}" for name, number in queues.items())


def _row(
    number: int, each: UniformJob, users: Mapping[str, int], queues: Mapping[str, int]
) -> list[str]:
    job = each.job
    cpus = max(math.ceil(each.asked.get("cpu", 1.0) - 1e-9), 1)
    memory = math.ceil(each.asked.get("memory", -1024.0) / 1024 / cpus)
    walltime = "-1" if job.walltime is None else seconds_text(job.walltime)
    processors = str(each.pods * cpus)
    user = str(users[job.user]) if job.user else "-1"
    return [
        *(str(number), seconds_text(job.arrival), "-1", seconds_text(each.run), processors),
        *("-1", "-1", processors, walltime, str(memory or -1), "1", user, "-1", "-1"),
        *(str(queues[job.queue]), "-1", "-1", "-1"),
    ]


_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the C one is much faster


def as_manifests(workload: Workload, *, as_json: bool = False) -> str:
    """Write nodes, queues and jobs, the latter as Volcano jobs."""
    objects = [*workload.objects]
    if workload.node_hint is not None and not any(isinstance(one, Node) for one in objects):
        objects += make_nodes(workload)
    known = {one.metadata.name for one in objects if isinstance(one, Queue)} | {DEFAULT_QUEUE}
    names, queues = _Names(), _Names()
    missing = dict.fromkeys(queues.of(job.queue) for job in workload.jobs)
    objects += [open_queue(name) for name in missing if name not in known]
    manifests = [
        *map(to_manifest, objects),
        *(_job_manifest(job, names.of(job.key), queues.of(job.queue)) for job in workload.jobs),
    ]
    if as_json:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}) + "\n"
    return "---\n".join(
        yaml.dump(one, Dumper=_DUMPER, sort_keys=False, allow_unicode=True) for one in manifests
    )


class _Names:
    """Names as Kubernetes takes them, each for one thing only."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        """Return the name for something, the same each time."""
        if name not in self._known:
            plain = re.sub(r"[^a-z0-9]+", "-", name.rpartition("/")[2].lower())[:50].strip("-")
            found, n = plain or "job", 2
            while found in self._taken:
                found, n = f"{plain}-{n}", n + 1
            self._taken.add(found)
            self._known[name] = found
        return self._known[name]


def _job_manifest(job: JobSpec, name: str, queue: str) -> Manifest:
    """Write a job as a Volcano job with the times of the trace as annotations."""
    walltime = job.walltime
    marks = {**job.annotations, ARRIVAL: seconds_text(job.arrival)}
    if job.user:
        marks[USER] = job.user
    time = RUN_SECONDS if walltime is None else ACTUAL_SECONDS
    left, tasks = job.min_member, []
    for number, task in enumerate(job.tasks):
        pod = to_manifest(Pod(metadata=ObjectMeta(name="pod"), spec=task.spec))["spec"]
        for container in pod["containers"]:
            container.setdefault("image", "busybox")
        own = {**task.annotations, time: seconds_text(task.run_seconds)}
        template = {"metadata": {"annotations": own, "labels": dict(task.labels)}, "spec": pod}
        tasks.append(
            {
                "name": f"task-{number}",
                "replicas": task.count,
                "minAvailable": min(left, task.count),
                "template": template,
            }
        )
        left -= min(left, task.count)
    spec = {"queue": queue, "minAvailable": job.min_member, "tasks": tasks}
    if job.priority_class:
        spec["priorityClassName"] = job.priority_class
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": job.namespace, "annotations": marks},
        "spec": {"schedulerName": "volcano", **spec},
    }


_SUFFIXES: Final = {
    ".csv": "jobs", ".parquet": "jobs", ".swf": "swf",
    ".yaml": "manifests", ".yml": "manifests", ".json": "manifests",
}  # fmt: skip


def form_of(path: Path, named: str = "") -> str:
    """Choose how to write a file: as named, or by its suffix.

    Raises:
        InputError: Its suffix stands for none.
    """
    form = named or _SUFFIXES.get(_suffix(path), "")
    if form not in WRITTEN:
        wanted = f"a name that ends in {', '.join(_SUFFIXES)}, with .gz or without"
        raise InputError(wanted=wanted, found=path.name, hint="or choose with --as")
    return form


def _suffix(path: Path) -> str:
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def write_trace(workload: Workload, path: Path, named: str = "") -> list[str]:
    """Write a workload; return what the form cannot hold, in words.

    Raises:
        InputError: The form does not follow from the name.
        OutputError: The file cannot be written.
    """
    form = form_of(path, named)
    if form == "jobs" and path.suffix == ".parquet":
        write_parquet(workload, path)
        return [*losses(workload), *losses_in_table(workload)]
    if form == "manifests":
        text = as_manifests(workload, as_json=_suffix(path) == ".json")
    else:
        text = as_csv(workload) if form == "jobs" else as_swf(workload)
    data = text.encode()
    write_file(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    if form == "manifests":
        return lost_date(workload)
    more = losses_in_table if form == "jobs" else losses_in_swf
    return [*losses(workload), *more(workload)]

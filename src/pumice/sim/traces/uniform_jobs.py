"""Jobs for forms whose jobs have equal pods, and what is lost by that."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pumice.api.pods import PodSpec
from pumice.api.times import rfc3339
from pumice.api.wording import counted
from pumice.sim.readers.node_sizes import amounts_of
from pumice.sim.workload import JobSpec, Workload


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

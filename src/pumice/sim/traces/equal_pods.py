"""Jobs for forms whose jobs have equal pods, and what is lost by that."""

from collections.abc import Mapping
from dataclasses import dataclass

from pumice.api.pods import PodSpec
from pumice.sim.readers.node_sizes import amounts_of
from pumice.sim.workload import JobSpec, PodSpecs, Workload


@dataclass(frozen=True, slots=True)
class EqualPods:
    """A job as a form holds it whose jobs have equal pods."""

    job: JobSpec
    pods: int
    run: float
    asked: Mapping[str, float]
    """By one pod."""

    @classmethod
    def of(cls, job: JobSpec) -> "EqualPods":
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
    """Describe what manifests would have kept."""
    bare = PodSpecs()
    several = sum(len(job.tasks) > 1 for job in workload.jobs)
    specs = {id(task.spec): task.spec for job in workload.jobs for task in job.tasks}
    bound = {key for key, spec in specs.items() if not _is_bare(spec, bare)}
    wishes = sum(any(id(task.spec) in bound for task in job.tasks) for job in workload.jobs)
    found = []
    if several:
        found.append(f"{several} jobs of pods that differ are written with the mean of them")
    if wishes:
        found.append(f"{wishes} jobs lose all but what their pods ask for, such as affinities")
    return found


def _is_bare(spec: PodSpec, bare: PodSpecs) -> bool:
    """Return whether a pod asks for amounts and nothing else."""
    if len(spec.containers) != 1:
        return False
    asked = spec.containers[0].resources.requests
    return spec == bare.spec({name: str(amount) for name, amount in asked.items()})

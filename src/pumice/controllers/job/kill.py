"""Kill passes: removing the pods of a job, or of a part of it, and their objects."""

from collections.abc import Callable, Iterable

import msgspec

from pumice.api.kinds import ENDED_PHASES, POD_GROUP, Manifest
from pumice.controllers.base import Delete, Effect, Key, UpdateStatus
from pumice.controllers.job.names import PARTITION_ID
from pumice.controllers.job.phases import QUIET
from pumice.controllers.job.plugins import JobPlugin
from pumice.controllers.job.pods import removal
from pumice.controllers.job.state import JobState, deleting, pod_phase
from pumice.controllers.job.status import Counts, Status

Change = Callable[[Status], None]
"""Sets retry count and phase after the counts are known."""


class Target(msgspec.Struct, frozen=True):
    """The part of a job that an action is about."""

    action: str
    task: str = ""
    pod: str = ""
    partition: str = ""

    def pods(self, state: JobState) -> list[Manifest]:
        """Return the pods of the target."""
        pods = state.pods.get(self.task, {})
        if self.action == "RestartPod":
            return [pods[self.pod]] if self.pod in pods else []
        found = [pods[name] for name in sorted(pods)]
        if self.action == "RestartPartition":
            labels = ((pod, pod["metadata"].get("labels") or {}) for pod in found)
            return [pod for pod, marks in labels if marks.get(PARTITION_ID) == self.partition]
        return found


def kill_job(
    state: JobState, plugins: Iterable[JobPlugin], keep: frozenset[str], change: Change
) -> list[Effect]:
    """Remove all pods but those in a phase to keep, the PodGroup, and what plugins made.

    At the last retry ended pods stay whatever was asked, so that their logs can be read.
    """
    if state.retries >= int(state.spec.get("maxRetry") or 0) - 1:
        keep = ENDED_PHASES
    kept = [pod for pod in state.all_pods() if not deleting(pod) and pod_phase(pod) in keep]
    held = {str(pod["metadata"]["uid"]) for pod in kept}
    rest = [pod for pod in state.all_pods() if str(pod["metadata"]["uid"]) not in held]
    status = Status.of(state.job)
    status.set_count("version", state.version + 1)
    counts = Counts()
    counts.add_terminating(len(rest))
    status.set_counts(counts)
    change(status)
    if status.phase in QUIET:  # the pods that stay are the result of the job
        counts.add_all(kept)
        status.set_counts(counts)
    status.set_duration(state.job)
    cleaning = _plugin_removals(state, plugins, status)
    # The status first: if it were refused after the pods are gone, the reason would be lost.
    effects: list[Effect] = [UpdateStatus(status.on(state.job))]
    effects += [effect for pod in rest if not deleting(pod) for effect in removal(pod)]
    effects += cleaning
    if state.podgroup is not None:
        name = str(state.podgroup["metadata"]["name"])
        effects.append(Delete(Key(POD_GROUP, state.namespace, name)))
    return effects


def kill_target(state: JobState, target: Target, change: Change) -> list[Effect] | None:
    """Remove a part of a job and nothing else; None when there is no such partition."""
    pods = target.pods(state)
    if target.action == "RestartPartition" and not pods:
        return None
    status = Status.of(state.job)
    counts = Counts()
    counts.add_terminating(len(pods))
    status.set_counts(counts)
    change(status)
    status.set_duration(state.job)
    removals = [effect for pod in pods if not deleting(pod) for effect in removal(pod)]
    return [UpdateStatus(status.on(state.job)), *removals]


def settled(state: JobState, plugins: Iterable[JobPlugin]) -> bool:
    """Return whether a job in a quiet phase is as a kill pass would leave it."""
    if state.version == 0 or state.podgroup is not None:
        return False
    pods = list(state.all_pods())
    counts = Counts()
    counts.add_all(pod for pod in pods if not deleting(pod))
    if any(not deleting(pod) and pod_phase(pod) not in ENDED_PHASES for pod in pods):
        return False
    counts.add_terminating(sum(deleting(pod) for pod in pods))
    counted = Status.of(state.job)
    counted.set_counts(counts)
    if counted.manifest != state.status:
        return False
    return not _plugin_removals(state, plugins, Status.of(state.job))


def _plugin_removals(state: JobState, plugins: Iterable[JobPlugin], status: Status) -> list[Effect]:
    """Remove what plugins made for the job."""
    resources = dict(status.manifest.get("controlledResources") or {})
    effects: list[Effect] = []
    for plugin in plugins:
        resources.pop(f"plugin-{plugin.name}", None)
        for owned in plugin.objects(state.job):
            found = state.view.get(owned.kind, state.namespace, owned.name)
            if found is not None and not deleting(found) and _is_ours(found, state):
                effects.append(Delete(Key(owned.kind, state.namespace, owned.name)))
    status.set_resources(resources)
    return effects


def _is_ours(found: Manifest, state: JobState) -> bool:
    """Return whether an object was made for this very job."""
    owners = found["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == state.uid for owner in owners)

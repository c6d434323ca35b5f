"""Actions on a job, by phase: the effect of a policy, a Command or a plain change."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from pumice.api.kinds import CLAIM, ENDED_PHASES, JOB, POD_GROUP, QUEUE, Manifest
from pumice.controllers.base import (
    SOURCE,
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Record,
    Update,
    UpdateStatus,
)
from pumice.controllers.job.objects import (
    Expansion,
    claims,
    is_forwarded,
    pending_event,
    plain_removal,
    podgroup_effects,
    removal,
    wanted_pods,
)
from pumice.controllers.job.plugins import JobPlugin, Owned
from pumice.controllers.job.state import FORWARDING, PARTITION_ID, JobState, deleting, pod_phase
from pumice.controllers.job.status import NEXT, QUIET, Counts, NextPhase, Status

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


BATCH: Final = 250
"""Pods created for a job before other jobs have their turn; more if it has more tasks."""


class Outcome(msgspec.Struct):
    """The result of a reconciliation; a failed one is retried with growing delays."""

    effects: list[Effect] = msgspec.field(default_factory=list)
    failed: bool = False
    waits_for: Key | None = None
    """The object that would cure the failure."""
    is_part: bool = False
    """Whether there are more pods to make."""
    if_refused: list[Effect] = msgspec.field(default_factory=list)
    """What to write if a quota refuses a pod: the status without those still to be made."""


def sync_job(state: JobState, plugins: Sequence[JobPlugin], following: NextPhase) -> Outcome:
    """Reconcile a job that is to run with its spec; at most one write to the job itself."""
    wanted = Key(QUEUE, "", state.queue)
    if state.view.get(wanted.kind, wanted.namespace, wanted.name) is None:
        return Outcome(failed=True, waits_for=wanted)
    forwarded = is_forwarded(state)
    if forwarded and (state.job["metadata"].get("annotations") or {}).get(FORWARDING) != "true":
        key = Key(JOB, state.namespace, state.name)
        return Outcome([Patch(key, {"metadata": {"annotations": {FORWARDING: "true"}}})])
    if not state.phase:
        return Outcome([_first_status(state)])
    resources = dict(state.status.get("controlledResources") or {})
    effects = _plugin_objects(state, plugins, resources)
    if state.phase == "Pending":
        found = claims(state)
        effects += found.effects
        if found.missing:
            wanted = Key(CLAIM, state.namespace, found.missing)
            effects.append(_missing_claim(state, found.missing))
            return Outcome(effects, failed=True, waits_for=wanted)
        if found.named:
            return Outcome(effects)
        resources |= found.resources
    effects += _leftovers(state)
    effects += [*podgroup_effects(state), *pending_event(state)]
    expansion = Expansion(state=state, plugins=plugins, is_forwarded=forwarded)
    pods = _pods(expansion) if state.admitted else None
    counts = None if pods is None else pods.with_new()
    effects += () if pods is None else pods.effects
    effects += _status_update(state, counts, following, resources)
    return Outcome(
        effects,
        is_part=pods is not None and pods.is_part,
        if_refused=_status_update(state, pods.known, following, resources)
        if pods is not None and pods.news
        else [],
    )


def _status_update(
    state: JobState, counts: Counts | None, following: NextPhase, resources: dict[str, str]
) -> list[Effect]:
    """Write the status if the counts or the phase have changed; None: pods are not counted."""
    status = Status.of(state.job)
    if counts is not None:
        status.set_counts(counts)
        status.set_count("minAvailable", state.min_available)
        status.manifest.pop("runningDuration", None)
    phase = following(state, status)
    if phase is not None:
        status.set_phase(phase, state.view.now)
    if status.manifest == state.status:
        return []
    # Objects of plugins are written along with other changes, never alone.
    status.set_resources(dict(resources))
    return [UpdateStatus(status.on(state.job))]


def _leftovers(state: JobState) -> list[Effect]:
    """Remove pods that an earlier kill pass missed."""
    pods = [pod for pod in state.all_pods() if state.left_over(pod)]
    return [effect for pod in pods for effect in removal(pod)]


def _first_status(state: JobState) -> Effect:
    status = Status.of(state.job)
    status.set_count("minAvailable", state.min_available)
    status.set_phase("Pending", state.view.now)
    return UpdateStatus(status.on(state.job))


def _missing_claim(state: JobState, name: str) -> Effect:
    message = (
        f"Failed to create PVC, err: pvc {name} is not found,"
        " the job will be in the Pending state until the PVC is created"
    )
    return Record(state.job, "Warning", "PVCError", message, SOURCE)


def _plugin_objects(
    state: JobState, plugins: Sequence[JobPlugin], resources: dict[str, str]
) -> list[Effect]:
    """Make the objects of plugins for a job; past the start only those that must stay in step."""
    starting = state.phase == "Pending"
    effects: list[Effect] = []
    for plugin in plugins:
        for owned in plugin.objects(state.job):
            if starting or owned.rewritten:
                effects += _kept(state, owned)
        if starting and plugin.listed:
            resources[f"plugin-{plugin.name}"] = plugin.name
    return effects


def _kept(state: JobState, owned: Owned) -> list[Effect]:
    """Make an object that is missing, and rewrite one of ours that is out of step."""
    found = state.view.get(owned.kind, state.namespace, owned.name)
    if found is None:
        return [Create(owned.build())]
    if not (owned.rewritten and _is_ours(found, state)):
        return []  # whoever may create jobs need not have the right to change other objects
    if found.get("data") != (data := owned.build()["data"]):
        return [Update({**found, "data": data})]
    return []


class _Pods(msgspec.Struct):
    """What to do about the pods of a job, and their numbers."""

    effects: list[Effect] = msgspec.field(default_factory=list)
    known: Counts = msgspec.field(default_factory=Counts)
    """Pods that are there."""
    news: dict[str, int] = msgspec.field(default_factory=dict)
    """Task to how many are made."""

    @property
    def is_part(self) -> bool:
        """Whether there are more to make.

        A job of many waits for its turn in between, so that others are not delayed and the work at
        a time is bounded.
        """
        return sum(self.news.values()) >= BATCH

    def with_new(self) -> Counts:
        """Count the pods that are there and those that are made."""
        # without a name a pod belongs to no task and is never found again
        named = {task: number for task, number in self.news.items() if task}
        return self.known.with_pending(named) if named else self.known


def _pods(expansion: Expansion) -> _Pods:
    """Make missing pods, remove surplus ones, and count the others."""
    state, found = expansion.state, _Pods()
    made = _new_pods(expansion)
    for task, news in zip(state.tasks, made, strict=True):
        name = str(task.get("name") or "")
        wanted = wanted_pods(state, task)
        for pod in wanted.values():
            if deleting(pod) or state.left_over(pod):
                found.known.add_terminating()
            else:
                found.known.add(pod)
        if news:
            found.news[name] = found.news.get(name, 0) + len(news)
        found.effects += map(Create, news)
        surplus = {one: pod for one, pod in state.pods.get(name, {}).items() if one not in wanted}
        found.known.add_terminating(len(surplus))
        found.effects += [
            plain_removal(surplus[one]) for one in sorted(surplus) if not deleting(surplus[one])
        ]
    return found


def _new_pods(expansion: Expansion) -> list[list[Manifest]]:
    """Write the next pods of each task, as evenly as they are missing.

    Every task gets a turn, so that a large one whose pods a quota refuses holds up no other.
    """
    made: list[list[Manifest]] = [[] for _ in expansion.tasks]
    turns = [
        (news, expansion.new_pods(task)) for news, task in zip(made, expansion.tasks, strict=True)
    ]
    left = max(BATCH, len(turns))
    while turns:
        unfinished = []
        for news, pods in turns[:left]:
            found = next(pods, None)
            if found is not None:
                news.append(found)
                unfinished.append((news, pods))
        turns = unfinished
        left -= len(unfinished)
    return made


SYNC: Final = "SyncJob"
_ENDINGS: Final = {
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}
TARGETED: Final = frozenset({"RestartTask", "RestartPod", "RestartPartition"})
CHANGING: Final = frozenset({*_ENDINGS, *TARGETED, "RestartJob"})
"""Actions that change a pending or running job; all others only bring it in step."""


class Execution(msgspec.Struct, frozen=True):
    """One action on one job."""

    state: JobState
    plugins: Sequence[JobPlugin]
    target: Target = msgspec.field(default_factory=lambda: Target(SYNC))

    def run(self) -> Outcome:
        """Carry the action out as the phase of the job requires."""
        phase = self.state.phase
        if phase in QUIET:
            return self._in_quiet_phase()
        if phase == "Restarting":
            return self._while_restarting()
        action = self.target.action
        if action in TARGETED:
            return self._kill_target(self._restart)
        if action == "RestartJob":
            return self._kill(frozenset(), self._restart)
        if action in _ENDINGS:
            return self._kill(ENDED_PHASES, lambda status: self._enter(status, _ENDINGS[action]))
        return self._sync()

    def _in_quiet_phase(self) -> Outcome:
        """Kill what is left; only an aborted job can be resumed."""
        action = self.target.action
        if action == "ResumeJob" and self.state.phase in ("Aborting", "Aborted"):
            return self._kill(ENDED_PHASES, self._restart)
        resting = NEXT[self.state.phase](self.state, Status.of(self.state.job)) is None
        if action == SYNC and resting and settled(self.state, self.plugins):
            return Outcome()
        return self._kill(ENDED_PHASES, self._next)

    def _while_restarting(self) -> Outcome:
        """Continue a restart; a further action only adds to what is killed."""
        action = self.target.action
        if action == SYNC:
            return self._sync()
        if action in TARGETED:
            return self._kill_target(self._next)
        return self._kill(frozenset(), self._next)

    def _sync(self) -> Outcome:
        return sync_job(self.state, self.plugins, NEXT[self.state.phase])

    def _kill(self, keep: frozenset[str], change: Change) -> Outcome:
        return Outcome(kill_job(self.state, self.plugins, keep, change))

    def _kill_target(self, change: Change) -> Outcome:
        effects = kill_target(self.state, self.target, change)
        return self._sync() if effects is None else Outcome(effects)

    def _enter(self, status: Status, phase: str) -> None:
        status.set_phase(phase, self.state.view.now)

    def _restart(self, status: Status) -> None:
        status.set_count("retryCount", self.state.retries + 1)
        self._enter(status, "Restarting")

    def _next(self, status: Status) -> None:
        phase = NEXT[self.state.phase](self.state, status)
        if phase is not None:
            self._enter(status, phase)

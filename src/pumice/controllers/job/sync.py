"""Reconciliation of a job that is to run: everything it needs exists, every pod is counted."""

from collections.abc import Sequence
from typing import Final

import msgspec

from pumice.api.kinds import CLAIM, JOB, QUEUE, Manifest
from pumice.controllers.base import Create, Effect, Key, Patch, Record, Update, UpdateStatus
from pumice.controllers.job.expand import Expansion, is_forwarded, wanted_pods
from pumice.controllers.job.names import FORWARDING
from pumice.controllers.job.phases import NextPhase
from pumice.controllers.job.plugins import JobPlugin, Owned
from pumice.controllers.job.podgroup import pending_event, podgroup_effects
from pumice.controllers.job.pods import plain_removal, removal
from pumice.controllers.job.state import JobState, deleting
from pumice.controllers.job.status import Counts, Status
from pumice.controllers.job.volumes import claims
from pumice.controllers.ownership import SOURCE

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
    """Make an object that is missing, and rewrite one that is out of step."""
    found = state.view.get(owned.kind, state.namespace, owned.name)
    if found is None:
        return [Create(owned.build())]
    if owned.rewritten and found.get("data") != (data := owned.build()["data"]):
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

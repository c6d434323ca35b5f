"""The job controller: one reconciliation of a job turns what it sees into effects."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pumice.api.kinds import (
    CLAIM,
    COMMAND,
    JOB,
    NETWORK_POLICY,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Manifest,
)
from pumice.controllers.base import (
    SOURCE,
    Delete,
    Effect,
    Key,
    Plan,
    Record,
    View,
    controller_of,
    key_of,
    phase_of,
)
from pumice.controllers.job.actions import CHANGING, SYNC, TARGETED, Execution, Outcome, Target
from pumice.controllers.job.plugins import KeyMaker, new_key_pair, plugins_of
from pumice.controllers.job.policies import JobTracker, Reaction, TrackedJob, event_key, reactions
from pumice.controllers.job.state import JobState, deleting, pod_phase
from pumice.controllers.job.status import QUIET, Status, go_duration

_GROUP: Final = "batch.volcano.sh/"
_YET_TO_RUN: Final = frozenset({"Pending", "Restarting"})


class _Request(msgspec.Struct, frozen=True):
    """An action to take, its reason, and the event to write."""

    target: Target
    command: Manifest | None = None
    reaction: Reaction | None = None
    announced: bool = True


class JobController:
    """Runs Volcano jobs: PodGroups, pods, policies, commands, plugins and volumes."""

    name = "job"
    watches = (
        JOB,
        "Pod",
        POD_GROUP,
        COMMAND,
        QUEUE,
        CLAIM,
        PRIORITY_CLASS,
        "Service",
        "ConfigMap",
        "Secret",
        NETWORK_POLICY,
    )

    def __init__(self, *, max_requeue_num: int = 15, keys: KeyMaker = new_key_pair) -> None:
        """Set how often a failing reconciliation is repeated, and how keys for ssh are made."""
        self._max_requeue_num = max_requeue_num
        self._keys = keys
        self._tracker = JobTracker()
        self._waiting: dict[Key, set[Key]] = {}  # a missing queue or claim, and jobs that want it

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Name the job behind a change; remember pods that are gone."""
        if kind == JOB:
            return (key_of(manifest),)
        if kind == "Pod":
            has_owner = bool(manifest["metadata"].get("ownerReferences"))
            return self._of_pod(manifest, view) if has_owner else ()
        if kind == POD_GROUP:
            return _of_podgroup(manifest, view)
        if kind == COMMAND:
            return _target(manifest)
        return self._waiting.pop(key_of(manifest), ())

    def reconcile(self, key: Key, view: View) -> Plan:
        """Take the next step of a job."""
        job = view.get(key.kind, key.namespace, key.name)
        commands = [
            command
            for command in view.list(COMMAND, key.namespace)
            if key in _target(command) and not deleting(command)
        ]
        if job is None or deleting(job):
            if job is None:
                self._tracker.forget(key)
            return Plan([Delete(key_of(command)) for command in commands])
        state = JobState.read(job, view)
        tracked = self._tracker.of(key, state.uid)
        if commands:
            target = Target(str(commands[0].get("action") or ""))
            return self._execute(state, tracked, _Request(target, command=commands[0]))
        return self._react(state, tracked)

    def _of_pod(self, pod: Manifest, view: View) -> tuple[Key, ...]:
        """Name the job of a pod."""
        owner = controller_of(pod)
        keys = () if owner is None else _owner(pod)
        if not keys or owner is None:
            return ()
        job = view.get(JOB, keys[0].namespace, keys[0].name)
        present = view.get(*_place(pod))
        gone = present is None or present["metadata"]["uid"] != pod["metadata"]["uid"]
        if job is not None and job["metadata"]["uid"] == owner["uid"]:
            tracked = self._tracker.of(keys[0], str(owner["uid"]))
            if gone:
                tracked.notice_gone(pod, view.now)
            else:
                tracked.notice_restarts(pod)
        return keys

    def _react(self, state: JobState, tracked: TrackedJob) -> Plan:
        """Follow the policies of a job, or just reconcile it."""
        found = [] if state.phase in QUIET else [*reactions(state, tracked)]
        tracked.keep_only({event_key(one.event) for one in found})
        open_ones = [
            one
            for one in found
            if not tracked.answered(one.event, state.retries) and not _overtaken(state, one)
        ]
        reported = [one for one in open_ones if not one.delay_s and _only_reported(state, one)]
        for one in open_ones:
            if one not in reported and not one.delay_s:
                return self._execute(state, tracked, _request(one, announced=True))
        tracked.reported |= {event_key(one.event) for one in reported}
        records: list[Effect] = [
            _started(state, one.action) for one in reported if one.action != SYNC
        ]
        plan = self._wait(state, tracked, [one for one in open_ones if one.delay_s])
        _forget_gone(state, tracked, found)
        plan.effects = [*records, *plan.effects]
        return plan

    def _wait(self, state: JobState, tracked: TrackedJob, delayed: list[Reaction]) -> Plan:
        """Take the first action that is due, else reconcile the job until then.

        What starts a timer is not counted before the next change, as in the original.
        """
        now = state.view.now
        news = [one for one in delayed if event_key(one.event) not in tracked.armed]
        left = {one: tracked.since(one.event, now) + one.delay_s - now for one in delayed}
        ripe = (one for one in delayed if left[one] <= 0 and not _only_reported(state, one))
        due = next(ripe, None)
        if due is not None:
            return self._execute(state, tracked, _request(due, announced=False))
        plan = Plan()
        if not news or not _explained(state, news):
            plan = self._execute(state, tracked, _Request(Target(SYNC)))
        records = [
            _event(state, f"Execute action {one.action} after {go_duration(one.delay_s)}")
            for one in news
        ]
        times = [each for each in left.values() if each > 0]  # others only bring it in step, as now
        times += [] if plan.again_in_s is None else [plan.again_in_s]
        plan.again_in_s = min(times, default=None)
        plan.effects = [*records, *plan.effects]
        return plan

    def _execute(self, state: JobState, tracked: TrackedJob, request: _Request) -> Plan:
        """Take an action; a failure is retried, and at the limit ends the job."""
        effects = [*_announcements(state, request)]
        plugins, unknown = plugins_of(state.job, self._keys)
        if unknown and state.phase:
            message = f"Execute plugin when job add failed, err: failed to get plugin {unknown}"
            reported = Record(state.job, "Warning", "PluginError", message, SOURCE)
            outcome = Outcome([reported], failed=True)
        else:
            outcome = Execution(state, plugins, request.target).run()
        _track(state, tracked, request)
        effects += outcome.effects
        if request.command is not None:
            # Last, so that a command whose effects were refused is still there.
            effects.append(Delete(key_of(request.command)))
        if not outcome.failed:
            tracked.failures = 0
            return Plan(effects, is_part=outcome.is_part, if_refused=outcome.if_refused)
        if outcome.waits_for is not None:
            self._waiting.setdefault(outcome.waits_for, set()).add(key_of(state.job))
        limit = self._max_requeue_num
        delay_s = tracked.failed(state.view.now)
        if limit < 0 or tracked.failures <= limit:
            return Plan(effects, delay_s)
        action = request.target.action
        effects.append(_event(state, f"Job failed on action {action} for retry limit reached"))
        if not unknown:  # an unknown plugin cannot clean up either
            effects += Execution(state, plugins, Target("TerminateJob")).run().effects
        return Plan(effects)


def _place(manifest: Manifest) -> tuple[str, str, str]:
    """Return the arguments of a view."""
    key = key_of(manifest)
    return key.kind, key.namespace, key.name


def _owner(manifest: Manifest) -> tuple[Key, ...]:
    """Name the job that controls an object."""
    owner = controller_of(manifest)
    if owner is None or owner.get("kind") != "Job" or not owner["apiVersion"].startswith(_GROUP):
        return ()
    return (Key(JOB, str(manifest["metadata"]["namespace"]), str(owner["name"])),)


def _of_podgroup(group: Manifest, view: View) -> tuple[Key, ...]:
    """Name the job of a PodGroup; of one that is gone only if the job would not change otherwise.

    A running job changes with its pods, and its PodGroup comes back then, as in the original.
    Pods that wait are never placed without a PodGroup, and those that have ended change no more:
    nothing else would ever happen to a job of such pods alone.
    """
    keys = _owner(group)
    if not keys or view.get(*_place(group)) is not None:
        return keys
    job = view.get(JOB, keys[0].namespace, keys[0].name)
    if job is None or phase_of(job) in QUIET:
        return ()
    return keys if phase_of(job) in _YET_TO_RUN or JobState.read(job, view).is_still else ()


def _target(command: Manifest) -> tuple[Key, ...]:
    """Name the job that a Command is for."""
    target = command.get("target") or {}
    if target.get("kind") != "Job" or not str(target.get("apiVersion")).startswith(_GROUP):
        return ()
    return (Key(JOB, str(command["metadata"]["namespace"]), str(target.get("name"))),)


def _request(reaction: Reaction, *, announced: bool) -> _Request:
    """Turn the reaction of a policy into an action."""
    about = reaction.event
    target = Target(reaction.action, about.task, about.pod, about.partition)
    return _Request(target, reaction=reaction, announced=announced)


def _event(state: JobState, message: str, reason: str = "ExecuteAction") -> Record:
    """Write an event on the job."""
    return Record(state.job, "Normal", reason, message, SOURCE)


def _started(state: JobState, action: str) -> Record:
    """Write the event of an action that is being taken."""
    return _event(state, f"Start to execute action {action} ")


def _announcements(state: JobState, request: _Request) -> Iterator[Effect]:
    """Yield the events of an action that is about to be taken."""
    action = request.target.action
    if request.command is not None:
        message = (
            f"Start to execute command {action}, and clean it up"
            " to make sure executed not more than once."
        )
        yield _event(state, message, "CommandIssued")
    if action != SYNC and request.announced:
        yield _started(state, action)


def _track(state: JobState, tracked: TrackedJob, request: _Request) -> None:
    """Track what an action answered, where the objects themselves will not show it."""
    if request.reaction is None:
        return
    event = request.reaction.event
    action = request.target.action
    if action in TARGETED and event.name in ("PodEvicted", "Unknown"):
        more = 0 if state.phase == "Restarting" else 1
        tracked.awaited[event_key(event)] = state.retries + more


def _only_reported(state: JobState, reaction: Reaction) -> bool:
    """Return whether an action changes nothing, so that only its event is written."""
    return reaction.action not in CHANGING and state.phase != "Restarting"


def _overtaken(state: JobState, reaction: Reaction) -> bool:
    """Return whether the pod that was gone runs again, which stops its timer."""
    if reaction.event.name != "PodEvicted":
        return False
    pod = state.pods.get(reaction.event.task, {}).get(reaction.event.pod)
    return pod is not None and pod_phase(pod) == "Running"


def _forget_gone(state: JobState, tracked: TrackedJob, found: list[Reaction]) -> None:
    """Drop pods that are not needed any more."""
    waiting = {
        one.event.subject
        for one in found
        if one.delay_s and not tracked.answered(one.event, state.retries)
    }
    tracked.gone = {uid: entry for uid, entry in tracked.gone.items() if uid in waiting}


def _explained(state: JobState, news: list[Reaction]) -> bool:
    """Return whether the counts differ from the status only by what started new timers."""
    failed = sum(one.event.name == "PodFailed" for one in news)
    if not failed:
        return False
    pods = list(state.all_pods())
    live = [pod_phase(pod) for pod in pods if not deleting(pod)]
    status = Status.of(state.job)
    return (
        live.count("Failed") - failed == status.count("failed")
        and live.count("Succeeded") == status.count("succeeded")
        and live.count("Pending") == status.count("pending")
        and len(pods) - len(live) == status.count("terminating")
    )

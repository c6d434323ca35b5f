"""CronJob: starts jobs by the clock and keeps a short history of them."""

from collections.abc import Iterable
from datetime import UTC
from typing import Any, Final

import msgspec

from pumice.api.cloning import clone
from pumice.api.cron_schedule import Schedule, latest, load_zone, parse_schedule
from pumice.api.kinds import CRON_JOB, JOB, Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.base import (
    SOURCE,
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Plan,
    Record,
    View,
    controlled_by,
    controller_of,
    key_of,
    phase_of,
)
from pumice.controllers.job.status import FINISHED
from pumice.errors import InputError

_MANY: Final = 100
"""Number of missed times at which the clock or the controller must be wrong."""


class ScheduleWarning(msgspec.Struct, frozen=True):
    """A warning to write about a CronJob."""

    reason: str
    message: str


class Due(msgspec.Struct, frozen=True):
    """The latest time a CronJob missed, if any, and its problem, if any."""

    at: float | None = None
    warning: ScheduleWarning | None = None


def read_schedule(cron: Manifest) -> tuple[Schedule | None, ScheduleWarning | None]:
    """Read the schedule of a CronJob in its time zone; None if it cannot be read."""
    spec = cron["spec"]
    zone_name, text = spec.get("timeZone"), str(spec["schedule"])
    try:
        zone = UTC if zone_name is None else load_zone(zone_name)
    except InputError:
        message = f'Invalid time zone "{zone_name}": unknown time zone {zone_name}'
        return None, ScheduleWarning("InvalidTimeZone", message)
    warning = None
    if "TZ" in text:
        message = (
            f'CRON_TZ or TZ in the schedule "{text}" is not officially supported. '
            "If set, the TimeZone field will be ignored during execution."
        )
        warning = ScheduleWarning("UnsupportedSchedule", message)
    try:
        return parse_schedule(text, zone), warning
    except InputError:
        # Volcano: an unreadable schedule is reported on a change, not at creation
        if cron["metadata"].get("generation", 1) > 1:
            message = f"unparseable schedule for cronjob: {text}"
            warning = ScheduleWarning("UnParseableCronJobSchedule", message)
        return None, warning


def due(cron: Manifest, schedule: Schedule, now: float) -> Due:
    """Find the latest time not later than now that has not been served and is not too late."""
    since = _since(cron)
    deadline_s = cron["spec"].get("startingDeadlineSeconds")
    if deadline_s is not None:
        since = max(since, now - float(deadline_s))
    first = schedule.next(since)
    if first is None:
        message = "time difference between two schedules is less than 1 second"
        return Due(
            None, ScheduleWarning("InvalidSchedule", f"Error getting schedule time: {message}")
        )
    if now < first:
        return Due()
    second = schedule.next(first)
    if second is None or now < second:
        return Due(first)
    n_missed = (now - first) // (second - first) + 1
    message = (
        "too many missed start times. "
        "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    )
    warning = ScheduleWarning("TooManyMissedTimes", message) if n_missed > _MANY else None
    return Due(latest(schedule, since, now), warning)


def wait_s(cron: Manifest, schedule: Schedule, now: float) -> float | None:
    """Return how long it is until the next time, None if there is none."""
    since = _since(cron)
    last = latest(schedule, since, now)
    following = schedule.next(since if last is None else last)
    return None if following is None else max(following - now, 0.0)


def _since(cron: Manifest) -> float:
    """Return the time from which a CronJob counts: the last one served, or its creation."""
    last = (cron.get("status") or {}).get("lastScheduleTime")
    return epoch(last or cron["metadata"]["creationTimestamp"])


SCHEDULED_AT: Final = "volcano.sh/cronjob-scheduled-timestamp"
"""Annotation of a job: the time it was scheduled for, in the zone of its CronJob."""


class CronJobSync:
    """Gathers effects; the status is written once, at the end, and only if it changed.

    A job is listed as active, and its time as served, by one write: when it is seen.
    """

    def __init__(self, cron: Manifest, view: View) -> None:
        self._cron, self._view = cron, view
        self._spec: dict[str, Any] = cron["spec"]
        self._status: dict[str, Any] = dict(cron.get("status") or {})
        self._active: list[Manifest] = list(self._status.get("active") or [])
        self._jobs = view.owned_by(JOB, cron)
        self._effects: list[Effect] = []

    @property
    def _namespace(self) -> str:
        return str(self._cron["metadata"]["namespace"])

    def tidy(self) -> None:
        """Bring the list of active jobs up to date and cut the history to its limits."""
        replaced = self._replaced()
        self._active = [
            reference
            for reference in self._active
            if reference["uid"] not in replaced and self._is_active(reference)
        ]
        listed = {reference["uid"] for reference in self._active}
        for job in self._jobs:
            if not _is_over(job) and job["metadata"]["uid"] not in listed:
                self._adopt(job)
        completed = [job for job in self._jobs if phase_of(job) == "Completed"]
        failed = [job for job in self._jobs if phase_of(job) == "Failed"]
        self._note_success(completed)
        self._cut(completed, self._spec.get("successfulJobsHistoryLimit", 3))
        self._cut(failed, self._spec.get("failedJobsHistoryLimit", 1))

    def start(self) -> float | None:
        """Create the job that is due; return the seconds until the next one."""
        schedule, warning = read_schedule(self._cron)
        if warning is not None:
            self._record("Warning", warning.reason, warning.message)
        if schedule is None:
            return None
        now = self._view.now
        found = due(self._cron, schedule, now)
        if found.at is not None and self._is_listed(self._name_at(found.at)):
            self._status["lastScheduleTime"] = rfc3339(found.at)
            return wait_s(self._cron, schedule, now)
        if found.warning is not None:
            self._record("Warning", found.warning.reason, found.warning.message)
        if found.at is not None and self._may_start():
            self._start_at(found.at)
        return wait_s(self._cron, schedule, now)

    def finish(self) -> list[Effect]:
        """Return all effects, the new status last."""
        self._status["active"] = self._active or None
        before = self._cron.get("status") or {}
        changes = {name: value for name, value in self._status.items() if value != before.get(name)}
        if not changes:
            return self._effects
        write = Patch(key_of(self._cron), {"status": changes}, subresource="status")
        return [*self._effects, write]

    def _replaced(self) -> set[str]:
        """Return the jobs of the list (UIDs) that made room for one that exists by now."""
        present = {job["metadata"]["uid"] for job in self._jobs if not _is_over(job)}
        if self._spec.get("concurrencyPolicy") != "Replace" or not present:
            return set()
        known = {job["metadata"]["uid"]: job for job in self._jobs}
        listed = {reference["uid"] for reference in self._active} - present
        return {uid for uid in listed if uid not in known or _is_leaving(known[uid])}

    def _is_active(self, reference: Manifest) -> bool:
        """Check whether a job of the list still runs, and record why not."""
        name, uid = reference["name"], reference["uid"]
        job = self._view.get(JOB, self._namespace, name)
        if job is None:
            message = f'Active job "{name}" no longer exists (UID: {uid})'
        elif job["metadata"]["uid"] != uid:
            message = (
                f'Active job reference "{name}" points to a different UID '
                f"(expected: {uid}, actual: {job['metadata']['uid']})"
            )
        elif phase_of(job) in FINISHED:
            self._record(
                "Normal", "SawCompletedJob", f"Saw completed job: {name} in active, remove"
            )
            return False
        else:
            return True
        self._record("Warning", "StaleReference", message)
        return False

    def _adopt(self, job: Manifest) -> None:
        """List a job that was created before; warn about one from elsewhere."""
        metadata = job["metadata"]
        if SCHEDULED_AT in (metadata.get("annotations") or {}):
            self._active.append(
                {
                    "apiVersion": job["apiVersion"],
                    "kind": job["kind"],
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                }
            )
            return
        message = "Detected orphaned job forgotten or not managed by controller"
        what = f"{metadata['name']} (UID: {metadata['uid']})"
        self._record("Warning", "OrphanedJob", f"{message}: {what}")

    def _note_success(self, completed: list[Manifest]) -> None:
        times = [job["status"]["state"].get("lastTransitionTime") for job in completed]
        times.append(self._status.get("lastSuccessfulTime"))
        known = [text for text in times if text]
        if known:
            self._status["lastSuccessfulTime"] = max(known, key=epoch)

    def _cut(self, finished: list[Manifest], limit: int) -> None:
        """Delete the oldest finished jobs beyond a limit."""
        ordered = sorted(
            finished,
            key=lambda job: (epoch(job["metadata"]["creationTimestamp"]), job["metadata"]["name"]),
        )
        for job in ordered[: max(len(ordered) - limit, 0)]:
            if not job["metadata"].get("deletionTimestamp"):
                self._delete(job["metadata"]["name"], job["metadata"]["uid"])

    def _is_listed(self, name: str) -> bool:
        return any(reference["name"] == name for reference in self._active)

    def _may_start(self) -> bool:
        """Check that nothing prevents a new job; active ones may have to make room."""
        policy = self._spec.get("concurrencyPolicy")
        if policy == "Forbid" and self._active:
            message = "Skipping job creation because another job is already running"
            self._record("Warning", "ForbidConcurrent", message)
            return False
        if policy == "Replace" and self._active:
            self._record("Warning", "ReplaceConcurrent", "Replacing active job for CronJob")
            for reference in self._active:  # listed until the new job is: never is there none
                self._delete(reference["name"], reference["uid"])
        return True

    def _start_at(self, at: float) -> None:
        """Create the job of a time, unless it already exists."""
        name = self._name_at(at)
        existing = self._view.get(JOB, self._namespace, name)
        if existing is None:
            self._effects.append(Create(self._job(name, at)))
            whose = f"{self._namespace}/{self._cron['metadata']['name']}"
            message = f"Created job {name} for CronJob {whose}"
            self._record("Normal", "SuccessfulCreate", message)
            return
        owner = controller_of(existing)
        if owner is None or owner.get("uid") != self._cron["metadata"]["uid"]:
            whose = "none" if owner is None else owner["name"]
            message = f"Job {name} exists but is not owned by this CronJob"
            self._record("Warning", "ForeignJob", f"{message} (current owner: {whose})")
            return
        self._status["lastScheduleTime"] = rfc3339(at)

    def _name_at(self, at: float) -> str:
        """Name the job of a time after its minute, so that no two are made for one."""
        return f"{self._cron['metadata']['name']}-{int(at) // 60}"

    def _job(self, name: str, at: float) -> Manifest:
        """Make the job of a time."""
        template = self._spec["jobTemplate"]
        metadata = template.get("metadata") or {}
        zone = load_zone(self._spec.get("timeZone") or "")
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": dict(metadata.get("labels") or {}),
                "annotations": {
                    **(metadata.get("annotations") or {}),
                    SCHEDULED_AT: rfc3339(at, zone),
                },
                "ownerReferences": [controlled_by(self._cron)],
            },
            "spec": clone(template["spec"]),
        }

    def _delete(self, name: str, uid: str) -> None:
        self._effects.append(Delete(Key(JOB, self._namespace, name), uid=uid))
        self._record("Normal", "SuccessfulDelete", f'Deleted job "{name}"')

    def _record(self, event_type: str, reason: str, message: str) -> None:
        self._effects.append(Record(self._cron, event_type, reason, message, SOURCE))


def _is_over(job: Manifest) -> bool:
    return phase_of(job) in FINISHED or _is_leaving(job)


def _is_leaving(job: Manifest) -> bool:
    return bool(job["metadata"].get("deletionTimestamp"))


class CronJobController:
    """Starts jobs by the clock."""

    name = "cronjob"
    watches: tuple[str, ...] = (CRON_JOB, JOB)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:  # noqa: ARG002
        """Look at the CronJob itself, or at the one that controls a job."""
        key = key_of(manifest)
        if kind == CRON_JOB:
            return (key,)
        owner = controller_of(manifest)
        if owner is None or owner["kind"] != "CronJob":
            return ()
        return (Key(CRON_JOB, key.namespace, owner["name"]),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """Tidy up, then start what is due and return when to reconcile again."""
        cron = view.get(CRON_JOB, key.namespace, key.name)
        if cron is None or cron["metadata"].get("deletionTimestamp"):
            return Plan()
        sync = CronJobSync(cron, view)
        sync.tidy()
        again_in_s = None if cron["spec"].get("suspend") else sync.start()
        return Plan(sync.finish(), again_in_s)

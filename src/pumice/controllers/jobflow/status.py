"""The status of a JobFlow, computed from its jobs and what it said before."""

from collections.abc import Iterable
from typing import Any, Final

from pumice.api.duration import parse_duration
from pumice.api.kinds import Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.ownership import phase_of

_LISTS: Final = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
}
_UNLISTED: Final = frozenset({"Completing", "Terminating"})
"""Phases on the way to another, kept in no list."""


def flow_status(before: Manifest, jobs: Iterable[Manifest], n_steps: int, now: float) -> Manifest:
    """Sum up the jobs of a flow; lists that are empty are left out."""
    ordered = sorted(jobs, key=lambda job: str(job["metadata"]["name"]))
    lists = _by_phase(ordered)
    status: Manifest = {name: names for name, names in lists.items() if names}
    if entries := _entries(before.get("jobStatusList") or [], ordered, now):
        status["jobStatusList"] = entries
    if conditions := {job["metadata"]["name"]: _condition(job) for job in ordered}:
        status["conditions"] = conditions
    phase = (before.get("state") or {}).get("phase") or "Pending"
    status["state"] = {"phase": _advance(phase, lists, n_steps)}
    return status


def _by_phase(jobs: list[Manifest]) -> dict[str, list[str]]:
    """Sort names of jobs into the lists of the status."""
    lists: dict[str, list[str]] = {name: [] for name in (*_LISTS.values(), "unKnowJobs")}
    for job in jobs:
        phase = phase_of(job)
        if phase not in _UNLISTED:
            lists[_LISTS.get(phase, "unKnowJobs")].append(job["metadata"]["name"])
    return lists


def _advance(phase: str, lists: dict[str, list[str]], n_steps: int) -> str:
    """Move on from a phase as far as the jobs allow."""
    has_failed = lists["failedJobs"] or lists["terminatedJobs"]
    if phase == "Pending":
        has_begun = lists["runningJobs"] or lists["completedJobs"]
        if not has_begun and not has_failed:
            return "Pending"
        phase = "Running"
    if phase == "Running":
        if len(lists["completedJobs"]) == n_steps:
            return "Succeed"
        return "Failed" if has_failed else "Running"
    return phase


def _condition(job: Manifest) -> Manifest:
    status = job.get("status") or {}
    condition = {
        "phase": phase_of(job),
        "createTime": job["metadata"].get("creationTimestamp"),
        "runningDuration": status.get("runningDuration"),
        "taskStatusCount": status.get("taskStatusCount"),
    }
    return {name: value for name, value in condition.items() if value}


def _entries(before: list[Manifest], jobs: list[Manifest], now: float) -> list[Manifest]:
    """Renew the entries of jobs that are there, keep those of jobs that went, add new ones."""
    known = {entry["name"]: entry for entry in before}
    for job in jobs:
        name = job["metadata"]["name"]
        known[name] = _entry(job, known.get(name, {}).get("runningHistories") or [], now)
    return list(known.values())


def _entry(job: Manifest, history: list[Manifest], now: float) -> Manifest:
    status = job.get("status") or {}
    made = job["metadata"].get("creationTimestamp")
    ended = None
    if made and status.get("runningDuration"):
        ended = rfc3339(epoch(made) + parse_duration(status["runningDuration"]))
    entry: dict[str, Any] = {
        "name": job["metadata"]["name"],
        "state": phase_of(job),
        "startTimestamp": made,
        "endTimestamp": ended,
        "runningHistories": _history(job, history, now),
    }
    kept = {name: value for name, value in entry.items() if value}
    return kept | {"restartCount": status.get("retryCount") or 0}


def _history(job: Manifest, before: list[Manifest], now: float) -> list[Manifest]:
    """Add the phases a job went through since; its conditions tell also those nobody looked at."""
    phase = phase_of(job)
    if not phase:
        return before
    passed = [
        (str(one["status"]), one.get("lastTransitionTime") or rfc3339(now))
        for one in (job["status"].get("conditions") or ())
    ]
    if not passed or passed[-1][0] != phase:
        passed.append((phase, rfc3339(now)))
    history = [dict(entry) for entry in before]
    if history:
        phases = [name for name, _ in passed]
        last = history[-1]["state"]
        passed = passed[phases.index(last) + 1 :] if last in phases else passed[-1:]
    for name, since in passed:
        if history:
            history[-1]["endTimestamp"] = since
        history.append({"state": name, "startTimestamp": since})
    return history

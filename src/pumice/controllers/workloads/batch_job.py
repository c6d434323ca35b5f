"""Jobs of ``batch/v1``: pods until enough have succeeded or too many have failed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pumice.api.annotations import CONTROLLER_UID
from pumice.api.kinds import POD, Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.base import Create, Delete, Effect, Plan, Record, View, key_of
from pumice.controllers.workloads.replicated import (
    AT_ONCE,
    condition,
    is_active,
    is_ready,
    new_status,
    phase,
    pod_of,
    removal,
)

_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_OURS: Final = "kubernetes.io/job-controller"
_SOURCE: Final = "job-controller"
_BACK_OFF_S: Final = 10.0
_BACK_OFF_MOST_S: Final = 360.0
_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_MOST_INDEXES: Final = 100_000
"""The most completions of a job whose pods have numbers, as an API server limits them."""
_ENDS: Final = ("Complete", "Failed")


class _JobPods:
    """The pods of a job, counted."""

    def __init__(self, job: Manifest, pods: Sequence[Manifest]) -> None:
        self.job = job
        self.spec = job.get("spec") or {}
        status = job.get("status") or {}
        self.active = [pod for pod in pods if is_active(pod)]
        ended = [pod for pod in pods if phase(pod) in ("Succeeded", "Failed")]
        self.failures = [pod for pod in ended if phase(pod) == "Failed"]
        won = [pod for pod in ended if phase(pod) == "Succeeded"]
        # pods that were deleted since still count
        self.failed = max(len(self.failures), int(status.get("failed") or 0))
        limit = min(self.completions or 0, _MOST_INDEXES)
        self.done = _read_indexes(str(status.get("completedIndexes") or ""), limit)
        self.succeeded = max(len(won), int(status.get("succeeded") or 0))
        if self.is_indexed:
            last = (self.completions or 0) - 1
            self.done |= {index for index in map(_index, won) if 0 <= index <= last}
            self.succeeded = len(self.done)

    @property
    def is_indexed(self) -> bool:
        """Whether each pod has a number."""
        return self.spec.get("completionMode") == "Indexed"

    @property
    def completions(self) -> int | None:
        """How many pods must succeed; None if one is enough and the others may finish."""
        number = self.spec.get("completions")
        return None if number is None else max(int(number), 0)

    @property
    def parallelism(self) -> int:
        """How many pods may be active."""
        number = self.spec.get("parallelism")
        return 1 if number is None else max(int(number), 0)

    def lacking(self) -> int:
        """Return how many pods to make; negative if there are too many."""
        most = self.parallelism
        if self.completions is not None:
            most = min(most, max(self.completions - self.succeeded, 0))
        elif self.succeeded:
            most = min(most, len(self.active))
        return most - len(self.active)

    def free_indexes(self) -> Iterator[int]:
        """Yield numbers that no pod has."""
        taken = self.done | {_index(pod) for pod in self.active}
        return (index for index in range(self.completions or 0) if index not in taken)


def reconcile_job(job: Manifest, view: View) -> Plan:
    """Make pods, or finish the job."""
    spec = job.get("spec") or {}
    if spec.get("managedBy") not in (None, _OURS) or not spec.get("template"):
        return Plan()
    if _ended_at(job) is not None:
        return _cleared(job, view.now)
    pods = _JobPods(job, view.owned_by(POD, job))
    if end := _end(pods, view.now):
        return Plan(_finished(pods, *end, view))
    if spec.get("suspend"):
        return Plan(_suspended(pods, view))
    wait_s = _back_off_s(pods, view.now)
    effects = [*_status_of(pods, view)]
    lacking = pods.lacking()
    if lacking > 0 and not wait_s:
        effects += [Create(pod) for pod in _new_pods(pods, min(lacking, AT_ONCE))]
    elif lacking < 0:
        effects += [removal(pod) for pod in sorted(pods.active, key=is_ready)[:-lacking]]
    limit_s = _deadline_s(pods, view.now)
    times = [each for each in (wait_s, limit_s) if each is not None and each > 0]
    return Plan(effects, again_in_s=min(times, default=None))


def _new_pods(pods: _JobPods, count: int) -> Iterator[Manifest]:
    job, metadata = pods.job, pods.job["metadata"]
    name, uid = metadata["name"], str(metadata["uid"])
    labels = {
        CONTROLLER_UID: uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    if not pods.is_indexed:
        for _ in range(count):
            yield pod_of(job, pods.spec["template"], generateName=f"{name}-", labels=labels)
        return
    for index, _ in zip(pods.free_indexes(), range(count), strict=False):
        mark = {_INDEX: str(index)}
        pod = pod_of(
            job,
            pods.spec["template"],
            generateName=f"{name}-{index}-",
            labels={**labels, **mark},
            annotations=mark,
        )
        pod["spec"].setdefault("hostname", f"{name}-{index}")
        for container in pod["spec"].get("containers") or ():
            given = [one for one in container.get("env") or () if one.get("name") != _VARIABLE]
            container["env"] = [*given, {"name": _VARIABLE, "value": str(index)}]
        yield pod


def _end(pods: _JobPods, now: float) -> tuple[str, str, str] | None:
    """Return type, reason and message of the condition that ends a job, None if it goes on."""
    wanted, limit = pods.completions, pods.spec.get("backoffLimit")
    limit = 6 if limit is None else int(limit)
    restarts = _restarts(pods) if _restarts_in_place(pods) else 0
    if pods.failed > limit or (restarts and restarts >= max(limit, 1)):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left_s = _deadline_s(pods, now)
    if left_s is not None and left_s <= 0:
        text = "Job was active longer than specified deadline"
        return "Failed", "DeadlineExceeded", text
    if pods.succeeded >= wanted if wanted is not None else pods.succeeded and not pods.active:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _restarts_in_place(pods: _JobPods) -> bool:
    template = pods.spec["template"].get("spec") or {}
    return template.get("restartPolicy") == "OnFailure"


def _restarts(pods: _JobPods) -> int:
    return sum(
        int(status.get("restartCount") or 0)
        for pod in pods.active
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
    )


def _deadline_s(pods: _JobPods, now: float) -> float | None:
    """Return how long a job may still be active, None if nothing limits it."""
    limit = pods.spec.get("activeDeadlineSeconds")
    began = (pods.job.get("status") or {}).get("startTime")
    if limit is None or not began or pods.spec.get("suspend"):
        return None
    return epoch(began) + float(limit) - now


def _back_off_s(pods: _JobPods, now: float) -> float | None:
    """Return how long to wait after failures, None if a pod may be made now."""
    ends = [_finished_at(pod) for pod in pods.failures]
    if not ends:
        return None
    wait_s = min(_BACK_OFF_S * 2.0 ** min(len(ends) - 1, 10), _BACK_OFF_MOST_S)
    left_s = max(ends) + wait_s - now
    return left_s if left_s > 0 else None


def _finished_at(pod: Manifest) -> float:
    """Return when a pod ended."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if ended:
            return epoch(ended)
    return epoch(pod["metadata"]["creationTimestamp"])


def _counts(pods: _JobPods, active: Sequence[Manifest]) -> dict[str, Any]:
    return {
        "active": len(active) or None,
        "ready": sum(map(is_ready, active)),
        "succeeded": pods.succeeded or None,
        "failed": pods.failed or None,
        "terminating": 0,
        "completedIndexes": _write_indexes(pods.done) or None,
    }


def _status_of(pods: _JobPods, view: View) -> list[Effect]:
    """Write the counts of a job that is active, and when it became so."""
    began = (pods.job.get("status") or {}).get("startTime") or rfc3339(view.now)
    status = {"startTime": began, **_counts(pods, pods.active)}
    held = _conditions(pods.job)
    if held:  # it was suspended before
        now = rfc3339(view.now)
        about = {"reason": "JobResumed", "message": "Job resumed", "now": now}
        resumed = condition(pods.job, "Suspended", holds=False, **about)
        status["conditions"] = [resumed]
    return new_status(pods.job, status)


def _suspended(pods: _JobPods, view: View) -> list[Effect]:
    about = {"reason": "JobSuspended", "message": "Job suspended", "now": rfc3339(view.now)}
    held = condition(pods.job, "Suspended", holds=True, **about)
    status = {**_counts(pods, ()), "startTime": None, "conditions": [held]}
    return [*(removal(pod) for pod in pods.active), *new_status(pods.job, status)]


def _finished(pods: _JobPods, kind: str, reason: str, message: str, view: View) -> list[Effect]:
    """Write the end of a job; pods that are still active are deleted."""
    now = rfc3339(view.now)
    first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    conditions = [
        condition(pods.job, one, holds=True, reason=reason, message=message, now=now)
        for one in (first, kind)
    ]
    began = (pods.job.get("status") or {}).get("startTime") or now
    status = {"startTime": began, **_counts(pods, ()), "conditions": conditions}
    if kind == "Complete":
        status["completionTime"] = now
    level, word = ("Normal", "Completed") if kind == "Complete" else ("Warning", reason)
    text = "Job completed" if kind == "Complete" else message
    return [
        *(removal(pod) for pod in pods.active),
        *new_status(pods.job, status),
        Record(pods.job, level, word, text, _SOURCE),
    ]


def _conditions(job: Manifest) -> list[Manifest]:
    return (job.get("status") or {}).get("conditions") or []


def _ended_at(job: Manifest) -> float | None:
    """Return when a job ended, None if it has not."""
    for one in _conditions(job):
        if one.get("type") in _ENDS and one.get("status") == "True":
            return epoch(one["lastTransitionTime"]) if one.get("lastTransitionTime") else 0.0
    return None


def _cleared(job: Manifest, now: float) -> Plan:
    """Delete a job that has ended once its time to live is over."""
    ttl_s, ended = job["spec"].get("ttlSecondsAfterFinished"), _ended_at(job)
    if ttl_s is None or ended is None:
        return Plan()
    left_s = ended + float(ttl_s) - now
    if left_s > 0:
        return Plan(again_in_s=left_s)
    uid = str(job["metadata"]["uid"])
    return Plan([Delete(key_of(job), propagation="Foreground", uid=uid)])


def _index(pod: Manifest) -> int:
    text = str((pod["metadata"].get("annotations") or {}).get(_INDEX) or "")
    return int(text) if text.isdecimal() else -1


def _read_indexes(text: str, completions: int) -> set[int]:
    """Read numbers below a bound, such as ``0-2,5``."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first) + 1, completions)))
    return found


def _write_indexes(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)

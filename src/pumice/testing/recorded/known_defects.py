"""Known defects of the original, put right in what a case expects.

A job that ended shows no succeeded or failed pods there, although the pods are still listed
(upstream issue 4616).  Ours counts them, so the expected counts are taken from the expected pods.
"""

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.testing.recorded.differences import Path

_ENDED: Final = {"Succeeded": "succeeded", "Failed": "failed"}
_QUIET: Final = frozenset({
    "Aborting", "Aborted", "Terminating", "Terminated", "Completing", "Completed", "Failed",
})  # fmt: skip


def amended(expect: Mapping[str, Any], skipped: set[Path]) -> Manifest:
    """Give what a case expects with the counts of ended jobs put right."""
    wanted = deepcopy(dict(expect))
    counts = {name: _kept(name, wanted) for name in wanted.get("jobs") or {}}
    for name, job in (wanted.get("jobs") or {}).items():
        status = job.get("status") or {}
        if status.get("phase") not in _QUIET:
            continue
        for phase, field in _ENDED.items():
            number = sum(phases[phase] for phases in counts[name].values())
            if ("jobs", name, "status", field) not in skipped:
                status[field] = number
        tasks = {task: dict(phases) for task, phases in counts[name].items()}
        status["taskStatusCount"] = {**(status.get("taskStatusCount") or {}), **tasks}
    for flow in (wanted.get("jobflows") or {}).values():
        for name, condition in (flow.get("status", {}).get("conditions") or {}).items():
            if condition.get("phase") in _QUIET and name in counts:
                condition["taskStatusCount"] = {
                    task: dict(phases) for task, phases in counts[name].items()
                }
    return wanted


def _kept(job: str, expect: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Count the ended pods of a job, by task and phase."""
    found: dict[str, Counter[str]] = {}
    for pod in (expect.get("pods") or {}).values():
        annotations = pod.get("annotations") or {}
        owned = any(one.get("kind") == "Job" for one in pod.get("ownerReferences") or [])
        if not owned or annotations.get("volcano.sh/job-name") != job or pod.get("deleting"):
            continue
        if pod.get("phase") in _ENDED:
            task = str(annotations.get("volcano.sh/task-spec"))
            found.setdefault(task, Counter())[pod["phase"]] += 1
    return found

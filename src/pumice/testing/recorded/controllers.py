"""Recorded controller cases, played on the embedded cluster and compared step by step."""

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pumice.api.annotations import JOB_NAME, TASK_SPEC
from pumice.api.kinds import Manifest
from pumice.testing.recorded.differences import Path, differences, event_differences, skipped_paths
from pumice.testing.recorded.observed import KINDS
from pumice.testing.recorded.stage import NAMESPACE, Stage

_ENDED: Final = {"Succeeded": "succeeded", "Failed": "failed"}
_QUIET: Final = frozenset({
    "Aborting", "Aborted", "Terminating", "Terminated", "Completing", "Completed", "Failed",
})  # fmt: skip


def amended(expect: Mapping[str, Any], skipped: set[Path]) -> Manifest:
    """Return what a case expects with corrected counts of ended jobs."""
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
        if not owned or annotations.get(JOB_NAME) != job or pod.get("deleting"):
            continue
        if pod.get("phase") in _ENDED:
            task = str(annotations.get(TASK_SPEC))
            found.setdefault(task, Counter())[pod["phase"]] += 1
    return found


_PLUGIN_KINDS: Final = ("services", "configmaps", "secrets", "networkpolicies")
_OWN_KINDS: Final = {
    "Command": ("commands",),
    "JobFlow": ("jobflows", "jobtemplates"),
    "JobTemplate": ("jobflows", "jobtemplates"),
    "CronJob": ("cronjobs",),
}
_COUNTED: Final = ("pods", "podgroups")


def is_controller_case(case: Mapping[str, Any]) -> bool:
    """Return whether a recorded case is of this kind."""
    steps = case.get("steps")
    return isinstance(steps, list) and all("expect" in step for step in steps)


def run_controller_case(case: Mapping[str, Any]) -> list[str]:
    """Play a case; stops at the first step that differs and lists how."""
    world = Stage(case.get("controllerFlags") or ())
    watcher = _Watcher(world, case)
    for number, step in enumerate(case["steps"]):
        world.play(step)
        found = watcher.look(step)
        if found:
            note = f" ({step['note']})" if step.get("note") else ""
            failures = [f"a controller failed: {one}" for one in world.loop.failures]
            return [f"step {number}{note}", *found, *failures]
    return []


class _Watcher:
    """Observes the settled cluster as a recording does, and remembers earlier observations."""

    def __init__(self, world: Stage, case: Mapping[str, Any]) -> None:
        self._world = world
        self._kinds = _looked_at(case)
        self._queues = set(case.get("queues") or ())
        self._stand_ins = world.stand_ins
        self._lives: dict[tuple[str, str], list[str]] = {}
        self._events: set[tuple[str, ...]] = set()

    def look(self, step: Mapping[str, Any]) -> list[str]:
        """Compare the cluster with what a step expects."""
        skipped = skipped_paths(step)
        expect = amended(step["expect"], skipped)
        found: list[str] = []
        for kind in self._kinds:
            expected = _without_protection(expect.get(kind) or {})
            found += differences(expected, self._seen(kind), skipped, (kind,))
        self._see_events()
        others_allowed = ("events",) in skipped
        return found + event_differences(
            expect.get("events") or [], self._events, others_allowed=others_allowed
        )

    def _seen(self, kind: str) -> Manifest:
        """Return the objects of a kind by name, as a recording writes them."""
        name_of_kind, reduced = KINDS[kind]
        seen: Manifest = {}
        for manifest in self._world.cluster.list(name_of_kind)[0]:
            metadata = manifest["metadata"]
            name = str(metadata["name"])
            if kind == "queues":
                if name not in self._queues:
                    continue
            elif metadata.get("namespace") != NAMESPACE:
                continue
            one = reduced(manifest)
            if kind in _COUNTED:
                one["incarnation"] = self._incarnation(kind, name, str(metadata["uid"]))
            seen[name] = one
        return dict(self._stand_ins.write(seen))

    def _incarnation(self, kind: str, name: str, uid: str) -> int:
        """Count the objects of a name that were seen at rest."""
        lives = self._lives.setdefault((kind, name), [])
        if uid not in lives:
            lives.append(uid)
        return lives.index(uid) + 1

    def _see_events(self) -> None:
        """Add the events that were written since the last look."""
        for event in self._world.cluster.list("Event")[0]:
            about = event["involvedObject"]
            story = (
                about.get("kind"),
                about.get("name"),
                event.get("type"),
                event.get("reason"),
                event.get("message"),
                (event.get("source") or {}).get("component"),
            )
            self._events.add(tuple(self._stand_ins.write(str(part or "")) for part in story))


def _looked_at(case: Mapping[str, Any]) -> list[str]:
    """List the kinds a case is about; a recording includes others only where they matter."""
    kinds = ["jobs", "podgroups", "pods", "queues"]
    for step in case["steps"]:
        for manifest in step.get("apply") or []:
            kinds += _OWN_KINDS.get(str(manifest["kind"]), ())
            spec = manifest.get("spec") or {}
            if spec.get("plugins"):
                kinds += _PLUGIN_KINDS
            if manifest["kind"] == "Job" and spec.get("volumes"):
                kinds.append("persistentvolumeclaims")
        kinds += [kind for kind in step["expect"] if kind in KINDS]
    return list(dict.fromkeys(kinds))


def _without_protection(objects: Mapping[str, Any]) -> Manifest:
    """Leave out the finalizer that another controller puts on claims."""
    cleaned: Manifest = {}
    for name, manifest in objects.items():
        others = [one for one in manifest.get("finalizers") or [] if not one.endswith("protection")]
        rest = {key: one for key, one in manifest.items() if key != "finalizers"}
        cleaned[name] = {**rest, "finalizers": others} if others else rest
    return cleaned

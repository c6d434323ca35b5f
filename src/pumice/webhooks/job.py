"""Jobs: the defaults of the mutating webhook, and the checks on creation and on update."""

from typing import Any, Final

from pumice.api.kinds import DEFAULT_QUEUE
from pumice.webhooks.job_checks import (
    check_new_job,
    check_partition,
    check_replicas,
    check_topology,
    count_replicas,
)
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Options,
    Patch,
    Request,
    denied,
    wrap32,
)
from pumice.webhooks.types.decoding import decode, in_order, same

KIND: Final = "batch.Job"
_RETRIES: Final = 3
_NEEDS_SERVICE: Final = frozenset({"tensorflow", "mpi", "pytorch", "ray"})
_FIXED: Final = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)
_MAY_CHANGE: Final = (
    "the value it has: only minAvailable, tasks[*].replicas and priorityClassName may change"
)


def mutate_job(request: Request, existing: Existing, options: Options) -> Answer:
    """Fill in the defaults of a job, also of a changed one, so that a file can be applied twice.

    Volcano fills in new jobs only: there, a file that leaves defaults out is refused the second
    time, because it seems to remove them.
    """
    del existing
    job = decode(request.object, KIND)
    if request.operation not in ("CREATE", "UPDATE"):
        return denied([Finding("expect operation to be 'CREATE' ")])
    # An empty mapping of plugins is one, which the decoded job does not show.
    spec = (request.object or {}).get("spec") or {}
    plugins = None if spec.get("plugins") is None else job["spec"].get("plugins") or {}
    return Answer(patch=_patch(job["spec"], plugins, options) or None)


def _patch(spec: dict[str, Any], plugins: dict[str, Any] | None, options: Options) -> Patch:
    patch = [_add(f"/spec/{name}", value) for name, value in _missing(spec, options).items()]
    tasks = spec.get("tasks") or []
    filled = [_filled(task, index) for index, task in enumerate(tasks)]
    if filled != tasks:
        patch.append({"op": "replace", "path": "/spec/tasks", "value": filled})
    if not spec.get("minAvailable"):
        total = sum(task["minAvailable"] for task in filled)
        patch.append(_add("/spec/minAvailable", wrap32(total)))
    if plugins is not None:
        patch.append({"op": "replace", "path": "/spec/plugins", "value": _with_needed(plugins)})
    return patch


def _missing(spec: dict[str, Any], options: Options) -> dict[str, Any]:
    """Return the plain fields that a specification leaves out, with their defaults."""
    names = options.scheduler_names
    defaults = {
        "queue": DEFAULT_QUEUE,
        "schedulerName": names[0] if names else "volcano",
        "maxRetry": _RETRIES,
    }
    return {name: value for name, value in defaults.items() if not spec.get(name)}


def _defaulted(spec: dict[str, Any], options: Options) -> dict[str, Any]:
    """Return a specification as it is once the defaults are filled in."""
    tasks = [_filled(task, index) for index, task in enumerate(spec.get("tasks") or ())]
    plugins = _with_needed(spec.get("plugins") or {})
    return {**spec, **_missing(spec, options), "tasks": tasks, "plugins": plugins}


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _filled(task: dict[str, Any], index: int) -> dict[str, Any]:
    """Fill in a task; fields stay in the order in which Go writes them."""
    new = dict(task)
    new.setdefault("name", f"default{index}")
    pod = task["template"]["spec"]
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        spec = in_order({**pod, "dnsPolicy": "ClusterFirstWithHostNet"}, "v1.PodSpec")
        new["template"] = {**task["template"], "spec": spec}
    if new.get("minAvailable") is None:
        policy = new.get("partitionPolicy") or {}
        fewest = new.get("replicas", 0)
        if policy.get("minPartitions", 0) > 0:
            fewest = wrap32(policy["minPartitions"] * policy["partitionSize"])
        new["minAvailable"] = fewest
    new.setdefault("maxRetry", _RETRIES)
    return in_order(new, "batch.TaskSpec")


def _with_needed(plugins: dict[str, Any]) -> dict[str, Any]:
    needed = dict(plugins)
    if _NEEDS_SERVICE & set(plugins):
        needed.setdefault("svc", [])
    if "mpi" in plugins:
        needed.setdefault("ssh", [])
    return dict(sorted(needed.items()))


def validate_job(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed job."""
    job = decode(request.object, KIND)
    too_many = check_replicas(job["spec"], options.max_job_replicas)
    if request.operation == "CREATE":
        return denied(check_new_job(job, existing) or too_many)
    if request.operation != "UPDATE":
        return denied([Finding("expect operation to be 'CREATE' or 'UPDATE'")])
    old = decode(request.old, KIND)["spec"]
    found = _check_update(old, job, options)
    if count_replicas(job["spec"]) > count_replicas(old):  # an admitted one can shrink
        found = found or [*too_many]
    return denied(found, found[0].text if found else "")


def _check_update(old: dict[str, Any], job: dict[str, Any], options: Options) -> list[Finding]:
    """Find the first thing an update may not do; to leave a default out changes nothing."""
    new = job["spec"]
    total = 0
    for index, task in enumerate(new.get("tasks") or ()):
        found = _check_numbers(task, index, job)
        if found:
            return found
        total = wrap32(total + task.get("replicas", 0))
    found = _check_least(new, total) or [
        *check_topology(new.get("networkTopology"), ("spec", "networkTopology"))
    ]
    if found:
        return found
    tasks = len(new.get("tasks") or ())
    if len(old.get("tasks") or ()) != tasks:
        text = "job updates may not add or remove tasks"
        return [Finding(text, ("spec", "tasks"), tasks, "as many as before")]
    before, after = (_fixed_part(_defaulted(spec, options)) for spec in (old, new))
    if not same(after, before, "batch.JobSpec"):
        return [Finding(_FIXED, ("spec",), wanted=_MAY_CHANGE)]
    return []


def _check_least(spec: dict[str, Any], total: int) -> list[Finding]:
    least, path = spec.get("minAvailable", 0), ("spec", "minAvailable")
    if least > total:
        text = "job 'minAvailable' must not be greater than total replicas"
        return [Finding(text, path, least, f"at most {total}, the replicas of all tasks")]
    if least < 0:
        return [Finding("job 'minAvailable' must be >= 0", path, least, "at least 0")]
    return []


def _check_numbers(task: dict[str, Any], index: int, job: dict[str, Any]) -> list[Finding]:
    name, replicas, least = task.get("name", ""), task.get("replicas", 0), task.get("minAvailable")
    path = ("spec", "tasks", index)
    if replicas < 0:
        text = f"'replicas' must be >= 0 in task: {name}"
        return [Finding(text, (*path, "replicas"), replicas, "at least 0")]
    if least is not None and least < 0:
        text = f"'minAvailable' must be >= 0 in task: {name}"
        return [Finding(text, (*path, "minAvailable"), least, "at least 0")]
    if least is not None and least > replicas:
        text = f"'minAvailable' must be <= 'replicas' in task: {name}"
        wanted = f"at most {replicas}, the replicas"
        return [Finding(text, (*path, "minAvailable"), least, wanted)]
    found = check_partition(task, job, (*path, "partitionPolicy"))
    text = "".join(one.text for one in found)
    return [Finding(text, found[0].path, found[0].found, found[0].wanted)] if found else []


def _fixed_part(spec: dict[str, Any]) -> dict[str, Any]:
    """Leave out what an update may change."""
    kept = {
        key: value
        for key, value in spec.items()
        if key not in ("minAvailable", "priorityClassName")
    }
    kept["tasks"] = [
        {key: value for key, value in task.items() if key not in ("replicas", "minAvailable")}
        for task in spec.get("tasks") or ()
    ]
    kept["volumes"] = [
        {
            key: value
            for key, value in volume.items()
            if not (key == "volumeClaimName" and volume.get("volumeClaim") is not None)
        }
        for volume in spec.get("volumes") or ()
    ]
    return kept

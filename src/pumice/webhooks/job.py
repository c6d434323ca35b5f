"""Jobs: the defaults of the mutating webhook, and the checks on creation and on update."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.quantity import Amount, amounts
from pumice.controllers.job.plugins import JOB_PLUGINS
from pumice.webhooks.fields import quoted
from pumice.webhooks.go_types import decode, in_order, same
from pumice.webhooks.names import dns_subdomain, qualified_name
from pumice.webhooks.pods.template import TemplateChecks
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Options,
    Patch,
    Request,
    denied,
    of_field,
    within_length,
    wrap32,
)

Path = tuple[str | int, ...]
_EVENTS: Final = (
    "*", "JobUpdated", "PodEvicted", "PodFailed", "PodPending", "TaskCompleted", "TaskFailed",
    "Unknown",
)  # fmt: skip
_ACTIONS: Final = (
    "AbortJob", "CompleteJob", "RestartJob", "RestartPartition", "RestartPod", "RestartTask",
    "ResumeJob", "TerminateJob",
)  # fmt: skip
_VALID: Final = (
    f" valid events are [{' '.join(_EVENTS)}], valid actions are [{' '.join(_ACTIONS)}];"
)
_TOPOLOGY: Final = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
)
_CLAIMS: Final = (
    "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
    "If you want to create a new PVC, you do not need to specify VolumeClaimName"
)
_NO_DAG: Final = (
    " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"
)


def check_new_job(job: dict[str, Any], existing: Existing) -> list[Finding]:
    """Find what is wrong with a decoded new job."""
    spec = job["spec"]
    tasks = spec.get("tasks") or []
    if not tasks:
        return [Finding("No task specified in job spec", ("spec", "tasks"), [], "a task")]
    plugins = spec.get("plugins") or {}
    if "mpi" in plugins:
        master = mpi_master(plugins["mpi"] or [])
        if all(task.get("name", "") != master for task in tasks):
            text = "The specified mpi master task was not found"
            return [Finding(text, ("spec", "plugins", "mpi"), master, "the name of a task")]
    return within_length(_check_parts(job, tasks, existing))


def _check_parts(
    job: dict[str, Any], tasks: list[dict[str, Any]], existing: Existing
) -> Iterator[Finding]:
    spec = job["spec"]
    yield from check_topology(spec.get("networkTopology"), ("spec", "networkTopology"))
    yield from _tasks(job, tasks)
    yield from _whole(job, tasks)
    yield from _policies(spec.get("policies") or [], "spec.policies", ("spec", "policies"))
    yield from _plugins(spec.get("plugins") or {})
    yield from _volumes(spec.get("volumes") or [])
    yield from _queue(spec.get("queue", ""), existing)
    looked_at = _up_to_repeated(tasks)
    if any(task.get("dependsOn") is not None for task in looked_at) and not _is_acyclic(tasks):
        yield Finding(_NO_DAG, ("spec", "tasks"), wanted="tasks that wait for earlier ones")


def check_topology(given: Mapping[str, Any] | None, path: Path) -> Iterator[Finding]:
    """Refuse both fields for the highest tier."""
    both = given or {}
    if both.get("highestTierAllowed") is not None and both.get("highestTierName"):
        yield Finding(_TOPOLOGY, path, dict(both), "highestTierAllowed or highestTierName")


def _tasks(job: dict[str, Any], tasks: list[dict[str, Any]]) -> Iterator[Finding]:
    names: set[str] = set()
    templates = TemplateChecks()
    for index, task in enumerate(tasks):
        path = ("spec", "tasks", index)
        name, least = task.get("name", ""), task.get("minAvailable")
        replicas = task.get("replicas", 0)
        if least is not None and least > replicas:
            text = f" 'minAvailable' is greater than 'replicas' in task: {name}, job: {_name(job)};"
            wanted = f"at most {replicas}, the replicas"
            yield Finding(text, (*path, "minAvailable"), least, wanted, "replicas")
        if name in names:
            text = f" duplicated task name {name};"
            yield Finding(text, (*path, "name"), name, "a name of its own")
            return
        names.add(name)
        policies = task.get("policies") or []
        yield from _policies(policies, "spec.tasks.policies", (*path, "policies"))
        yield from _pod_name(f"{_name(job)}-{name}-{index}", (*path, "name"))
        yield from _template(job, task, index, templates)
        yield from check_partition(task, job, (*path, "partitionPolicy"))


def _name(job: Mapping[str, Any]) -> str:
    return str(job["metadata"].get("name", ""))


def _pod_name(name: str, path: Path) -> Iterator[Finding]:
    messages = qualified_name(name)
    if messages:
        text = f"create pod with name {name} validate failed [{' '.join(messages)}];"
        yield Finding(text, path, name, " ".join(messages))


def _template(
    job: dict[str, Any], task: dict[str, Any], index: int, templates: TemplateChecks
) -> Iterator[Finding]:
    """Check the pods of a task by Kubernetes' rules, and only then their processors."""
    namespace = job["metadata"].get("namespace", "")
    errors = templates.errors(task["template"], name=task.get("name", ""), namespace=namespace)
    start = f"spec.task[{index}]."
    for error in errors:
        finding = of_field(error)
        path = ("spec", "tasks", index, *_in_task(finding.path))
        yield Finding(f"{start}{finding.text}. ", path, finding.found, finding.wanted)
        start = ""
    if start:
        yield from _processors(task, index)


def _in_task(path: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the path in a task of a finding about a template."""
    if path[:1] == ("metadata",):  # the names of its pods
        return ("name",)
    if path[1:2] in (("labels",), ("annotations",)):
        return (path[0], "metadata", *path[1:])
    return path


def _processors(task: dict[str, Any], index: int) -> Iterator[Finding]:
    """Require whole processors where a task wants them on one NUMA node."""
    if task.get("topologyPolicy", "none") in ("", "none"):
        return
    pod = task["template"]["spec"]
    containers = [*(pod["containers"] or ()), *(pod.get("initContainers") or ())]
    for number, container in enumerate(containers):
        resources = container["resources"]
        asked = amounts(resources.get("requests") or resources.get("limits"))
        given = asked.get("cpu", Amount(0))
        if given.milli != given.value * 1000 or not given.value:
            text = f"the cpu request isn't an integer in spec.task[{index}] container[{number}]."
            path = ("spec", "tasks", index, "template", "spec", "containers", number, "resources")
            yield Finding(text, path, str(given), "whole processors")
            return


def check_partition(task: dict[str, Any], job: dict[str, Any], path: Path) -> list[Finding]:
    """Check the arithmetic of a partition policy."""
    policy = task.get("partitionPolicy")
    if policy is None:
        return []
    found = _partition_numbers(
        task, policy, f"in task: {task.get('name', '')}, job: {_name(job)}", path
    )
    return [*found, *check_topology(policy.get("networkTopology"), (*path, "networkTopology"))]


def _partition_numbers(
    task: dict[str, Any], policy: dict[str, Any], where: str, path: Path
) -> list[Finding]:
    total, size = policy["totalPartitions"], policy["partitionSize"]
    replicas, least = task.get("replicas", 0), task.get("minAvailable")
    fewest = policy.get("minPartitions", 0)
    if total <= 0:
        text = f"'TotalPartitions' must be greater than 0 {where}"
        return [Finding(text, (*path, "totalPartitions"), total, "at least 1")]
    if size <= 0:
        text = f"'PartitionSize' must be greater than 0 {where}"
        return [Finding(text, (*path, "partitionSize"), size, "at least 1")]
    if replicas != wrap32(total * size):
        text = f"'Replicas' are not equal to TotalPartitions*PartitionSize {where}"
        wanted = f"replicas {wrap32(total * size)}, partitions times their size"
        return [Finding(text, path, replicas, wanted, "replicas")]
    if least is not None and fewest > 0 and wrap32(fewest * size) != least:
        text = f"'MinAvailable' is not equal to MinPartitions*PartitionSize {where}"
        wanted = f"minAvailable {wrap32(fewest * size)}, the fewest partitions times their size"
        return [Finding(text, path, least, wanted)]
    return []


def _whole(job: dict[str, Any], tasks: list[dict[str, Any]]) -> Iterator[Finding]:
    """Check the name of the job, and its replicas up to a repeated task."""
    messages = qualified_name(_name(job))
    if messages:
        text = f"create job with name {_name(job)} validate failed [{' '.join(messages)}]"
        yield Finding(text, ("metadata", "name"), _name(job), " ".join(messages))
    total = 0
    for task in _up_to_repeated(tasks):
        total = wrap32(total + task.get("replicas", 0))
    least = job["spec"].get("minAvailable", 0)
    if total < least:
        text = " job 'minAvailable' should not be greater than total replicas in tasks;"
        wanted = f"at most {total}, the replicas of all tasks"
        yield Finding(text, ("spec", "minAvailable"), least, wanted, "replicas")


def check_replicas(spec: Mapping[str, Any], most: int) -> Iterator[Finding]:
    """Refuse more pods than a job may ask for."""
    total = count_replicas(spec)
    if 0 < most < total:
        text = f" job asks for {total} pods in 'replicas' of its tasks, at most {most} are allowed;"
        yield Finding(text, ("spec", "tasks"), total, f"at most {most} replicas in all")


def count_replicas(spec: Mapping[str, Any]) -> int:
    """Count the pods that the tasks of a job ask for."""
    return sum(max(task.get("replicas", 0), 0) for task in spec.get("tasks") or ())


def _up_to_repeated(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks that are checked: up to a repeated name."""
    names: set[str] = set()
    for number, task in enumerate(tasks):
        if task.get("name", "") in names:
            return tasks[: number + 1]
        names.add(task.get("name", ""))
    return tasks


def _policies(policies: list[Mapping[str, Any]], field: str, path: Path) -> list[Finding]:
    """Check a list of policies; the first bad one ends it."""
    found: list[Finding] = []
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        one = _policy(policy, field, events, codes)
        if one is not None:
            text, found_value, wanted = one
            found.append(Finding(text, (*path, index), found_value, wanted))
            break
    if "*" in events and len(events) > 1:
        text = "if there's * here, no other policy should be here"
        found.append(Finding(text, path, sorted(events), "* alone"))
    if not found:
        return []
    head = "1 error occurred:" if len(found) == 1 else f"{len(found)} errors occurred:"
    listed = "".join(f"\n\t* {one.text}" for one in found)
    whole = f"{head}{listed}\n\n{_VALID}"
    first = Finding(whole, found[0].path, found[0].found, found[0].wanted)
    return [first, *(Finding("", one.path, one.found, one.wanted) for one in found[1:])]


def _policy(
    policy: Mapping[str, Any], field: str, events: set[str], codes: set[int]
) -> tuple[str, Any, str] | None:
    listed = list(dict.fromkeys(policy.get("events") or ()))
    if policy.get("event"):
        listed = list(dict.fromkeys((*listed, policy["event"])))
    code = policy.get("exitCode")
    if listed and code is not None:
        text = "must not specify event and exitCode simultaneously"
        return text, dict(policy), "an event or an exitCode"
    if not listed and code is None:
        text = "either event and exitCode should be specified"
        return text, dict(policy), "an event or an exitCode"
    if not listed:
        return _code(code, codes)
    return _listed(listed, policy.get("action", ""), field, events)


def _code(code: Any, codes: set[int]) -> tuple[str, Any, str] | None:
    if code == 0:
        return "0 is not a valid error code", 0, "an exit code other than 0"
    if code in codes:
        return f"duplicate exitCode {code}", code, "each exitCode once"
    codes.add(code)
    return None


def _listed(
    listed: Iterable[str], action: str, field: str, events: set[str]
) -> tuple[str, Any, str] | None:
    for event in listed:
        if event not in _EVENTS:
            text = f"{field}: Invalid value: {quoted(event)}: invalid policy event"
            return text, event, f"one of {', '.join(_EVENTS)}"
        if action not in _ACTIONS:
            text = f"{field}: Invalid value: {quoted(action)}: invalid policy action"
            return text, action, f"one of {', '.join(_ACTIONS)}"
        if event in events:
            return f"duplicate event {event}  across different policy", event, "each event once"
        events.add(event)
    return None


def mpi_master(arguments: list[str]) -> str:
    """Return the name of the master task in the arguments of the mpi plugin, read as Go does."""
    master, rest = "master", iter(arguments)
    for argument in rest:
        if len(argument) < 2 or argument[0] != "-" or argument == "--":
            break
        name, equals, value = argument.lstrip("-").partition("=")
        dashes = len(argument) - len(argument.lstrip("-"))
        if dashes > 2 or not name or name not in ("master", "worker", "port"):
            break
        if not equals:
            following = next(rest, None)
            if following is None:
                break
            value = following
        if name == "master":
            master = value
        elif name == "port" and not _is_go_number(value):
            break
    return master


def _is_go_number(text: str) -> bool:
    try:
        int(text, 0)
    except ValueError:
        return text.lstrip("+-").isdigit()
    return text == text.strip()


def _plugins(plugins: Mapping[str, Any]) -> Iterator[Finding]:
    for name in sorted(plugins):
        if name not in JOB_PLUGINS:
            text = f" unable to find job plugin: {name};"
            wanted = f"one of {', '.join(sorted(JOB_PLUGINS))}"
            yield Finding(text, ("spec", "plugins", name), name, wanted)


def _volumes(volumes: list[Mapping[str, Any]]) -> Iterator[Finding]:
    places: set[str] = set()
    for index, volume in enumerate(volumes):
        found = _volume(volume, places, ("spec", "volumes", index))
        if found is not None:
            yield found
            return
        places.add(volume["mountPath"])


def _volume(volume: Mapping[str, Any], places: set[str], path: Path) -> Finding | None:
    where, name = volume["mountPath"], volume.get("volumeClaimName", "")
    claim = volume.get("volumeClaim")
    if not where:
        return Finding(" mountPath is required;", (*path, "mountPath"), where, "a path")
    if where in places:
        text = f" duplicated mountPath: {where};"
        return Finding(text, (*path, "mountPath"), where, "a path of its own")
    if claim is None and not name:
        text = " either VolumeClaim or VolumeClaimName must be specified;"
        return Finding(text, path, dict(volume), "volumeClaim or volumeClaimName")
    if name and claim is not None:
        return Finding(_CLAIMS, path, dict(volume), "volumeClaim or volumeClaimName, not both")
    messages = dns_subdomain(name) if name else []
    if messages:
        text = f"invalid VolumeClaimName {name} : [{' '.join(messages)}]"
        return Finding(text, (*path, "volumeClaimName"), name, " ".join(messages))
    return None


def _queue(name: str, existing: Existing) -> Iterator[Finding]:
    queue, path = existing.queue(name), ("spec", "queue")
    if queue is None:
        text = f" unable to find job queue: queue.scheduling.volcano.sh {quoted(name)} not found;"
        yield Finding(text, path, name, "a queue that exists")
        return
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        text = (
            f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        )
        yield Finding(text, path, name, f"an open queue (this one is {state or 'in no state'})")
    if name == "root":
        text = " can not submit job to root queue;"
        yield Finding(text, path, name, "a queue below root")
        return
    children = len(existing.below(name))
    if children:
        text = f" can only submit job to leaf queue, queue `{name}` has {children} child queues;"
        yield Finding(text, path, name, "a queue without child queues")


def _is_acyclic(tasks: list[dict[str, Any]]) -> bool:
    """Return whether tasks can be put in an order; a dependency named twice counts twice."""
    degree: dict[str, int] = {}
    after: dict[str, set[str]] = {}
    for task in tasks:
        name = task.get("name", "")
        degree[name] = 0
        for other in (task.get("dependsOn") or {}).get("name") or ():
            after.setdefault(other, set()).add(name)
            degree[name] += 1
    ready = [name for name, number in degree.items() if not number]
    done = 0
    while ready:
        done += 1
        for name in after.pop(ready.pop(), ()):
            degree[name] -= 1
            if not degree[name]:
                ready.append(name)
    return done == len(tasks)


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

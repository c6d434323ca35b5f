"""CronJobs, HyperNodes, JobFlows and PodGroups: what is checked when they are written."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final

from pumice.api.annotations import GROUP_QUEUE
from pumice.api.cron_schedule import load_zone, parse_schedule
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.patterns import PatternError, check_pattern
from pumice.errors import InputError
from pumice.webhooks.fields import FieldError, aggregate, quoted
from pumice.webhooks.go_types import decode
from pumice.webhooks.names import each, qualified_name
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Options,
    Request,
    denied,
    of_field,
    within_length,
)

_LONGEST: Final = 52
_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def validate_cronjob(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed CronJob."""
    del existing, options
    cron = decode(request.object, "batch.CronJob")
    if request.operation not in ("CREATE", "UPDATE"):
        return denied([Finding("expect operation to be 'CREATE' or 'UPDATE'")])
    spec = cron["spec"]
    when = [*_schedule(spec["schedule"]), *_zone(spec.get("timeZone"))]
    name = _name(cron["metadata"].get("name", ""))
    parts = ("".join(one.text for one in when).strip(), "".join(one.text for one in name))
    return denied([*when, *name], "; ".join(part for part in parts if part))


def _schedule(schedule: str) -> list[Finding]:
    path = ("spec", "schedule")
    if not schedule:
        text = " schedule is required, but got empty"
        return [Finding(text, path, schedule, "a cron schedule")]
    if "TZ" in schedule:
        text = (
            " schedule should not contain TZ or CRON_TZ, "
            "TZ should only be set in the timeZone field"
        )
        return [Finding(text, path, schedule, "a schedule without a time zone")]
    try:
        parse_schedule(schedule)
    except InputError:
        text = "schedule is not a valid cron expression"
        return [Finding(text, path, schedule, 'a cron schedule such as "*/5 * * * *" or "@hourly"')]
    return []


def _zone(zone: str | None) -> list[Finding]:
    path = ("spec", "timeZone")
    if zone is None:
        return []
    if not zone:
        text = " timeZone must be nil or non-empty string, got empty string"
        return [Finding(text, path, zone, "the name of a time zone")]
    found = [
        Finding(" unknown timeZone", path, zone, "the name of a time zone")
        for part in zone.split("/")
        if part in (".", "..") or part.startswith("-") or _PART.fullmatch(part) is None
    ]
    if zone.lower() == "local":
        text = " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
        found.append(Finding(text, path, zone, "the name of a time zone"))
    elif not _is_zone(zone):
        found.append(Finding(" invalid timeZone", path, zone, "the name of a time zone"))
    return found


def _is_zone(name: str) -> bool:
    """Return whether the zone database knows a name; the lookup treats // as /."""
    if ".." in name or name.startswith(("/", "\\")) or name.endswith("/"):
        return False
    try:
        load_zone(posixpath.normpath(name))
    except InputError:
        return False
    return True


def _name(name: str) -> list[Finding]:
    path = ("metadata", "name")
    if len(name.encode(errors="replace")) > _LONGEST:
        text = (
            f"cronJob name must be no more than {_LONGEST} characters "
            "to accommodate job name suffix (max 63 total)"
        )
        return [Finding(text, path, name, f"at most {_LONGEST} characters")]
    messages = qualified_name(name)
    if messages:
        text = f"invalid cronJob name {quoted(name)}: {'; '.join(messages)}"
        return [Finding(text, path, name, "; ".join(messages))]
    return []


_MEMBERS: Final = "[].spec.members"


def validate_hypernode(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed HyperNode."""
    del existing, options
    node = decode(request.object, "topology.HyperNode")
    if request.operation not in ("CREATE", "UPDATE"):
        return Answer()
    errors = list(_check(node["spec"].get("members") or []))
    if not errors:
        return Answer()
    return denied((of_field(error) for error in errors), aggregate(errors))


def _check(members: list[dict[str, Any]]) -> Iterator[FieldError]:
    if not members:
        text = "member must have at least one member"
        yield FieldError("Invalid value", ("spec", "members"), None, text, _MEMBERS)
    for index, member in enumerate(members):
        pattern = (member["selector"].get("regexMatch") or {}).get("pattern", "")
        try:
            check_pattern(pattern)
        except PatternError as error:
            text = f"member regexMatch pattern is invalid: {error}"
            path = ("spec", "members", index, "selector", "regexMatch", "pattern")
            shown = f"{_MEMBERS}.selector.regexMatch.pattern"
            yield FieldError("Invalid value", path, pattern, text, shown)


_NO_DAG: Final = "jobflow Flow is not DAG"
_PATH: Final = ("spec", "flows")


def validate_jobflow(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed flow of jobs."""
    del existing, options
    flow = decode(request.object, "flow.JobFlow")
    if request.operation not in ("CREATE", "UPDATE"):
        return denied([Finding("expect operation to be 'CREATE' or 'UPDATE'")])
    targets = {
        one["name"]: list((one.get("dependsOn") or {}).get("targets") or ())
        for one in flow["spec"].get("flows") or ()
    }
    for index, (name, names) in enumerate(targets.items()):
        unknown = next((one for one in names if one not in targets), None)
        if unknown is not None:
            text = f"{_NO_DAG}: vertex is not defined: {unknown}"
            path = (*_PATH, index, "dependsOn", "targets")
            return denied([Finding(text, path, unknown, f"flows of this object (in {name})")])
    if _has_cycle(targets):
        return denied([Finding(_NO_DAG, _PATH, wanted="flows that wait for earlier ones")])
    return Answer()


def _has_cycle(targets: dict[str, list[str]]) -> bool:
    """Return whether the dependencies have a cycle; a target may occur twice."""
    waiting = {name: len(names) for name, names in targets.items()}
    waiters: dict[str, list[str]] = {name: [] for name in targets}
    for name, names in targets.items():
        for target in names:
            waiters[target].append(name)
    ready = [name for name, number in waiting.items() if not number]
    done = 0
    while ready:
        done += 1
        for name in waiters[ready.pop()]:
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    return done < len(targets)


_TOPOLOGY: Final = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously."
)


def mutate_podgroup(request: Request, existing: Existing, options: Options) -> Answer:
    """Set the queue of a group without one to that of its namespace."""
    del options
    group = decode(request.object, "scheduling.PodGroup")
    if request.operation != "CREATE":
        text = f"invalid operation `{request.operation}`, expect operation to be `CREATE`"
        return denied([Finding(text)])
    if group["spec"].get("queue", "") != DEFAULT_QUEUE:
        return Answer()
    namespace = existing.namespace(group["metadata"].get("namespace", "")) or {}
    annotations = (namespace.get("metadata") or {}).get("annotations") or {}
    if GROUP_QUEUE not in annotations:
        return Answer()
    queue = annotations[GROUP_QUEUE]
    return Answer(patch=[{"op": "add", "path": "/spec/queue", "value": queue}])


def validate_podgroup(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new group, and that its queue is open."""
    del options
    group = decode(request.object, "scheduling.PodGroup")
    if request.operation != "CREATE":
        return denied([Finding(f"unsupported operation {request.operation}")])
    queue = list(_queue(group["spec"].get("queue", ""), existing))
    topology = list(_topology(group["spec"]))
    resources = within_length(_resources(group["spec"].get("minResources") or {}))
    parts = [one.text for one in queue]
    if topology:
        parts.append(" ".join(one.text for one in topology))
    parts += [one.text for one in resources]
    return denied([*queue, *topology, *resources], "; ".join(parts))


def _resources(amounts: dict[str, Any]) -> Iterator[Finding]:
    """Refuse names that no resource can have; Volcano takes any."""
    path = ("spec", "minResources")
    for name in sorted(amounts):
        yield from (of_field(one) for one in each(qualified_name(name), (*path, name), name))


def _queue(name: str, existing: Existing) -> Iterator[Finding]:
    if not name:
        return
    queue = existing.queue(name)
    if queue is None:
        text = f"unable to find queue: queue.scheduling.volcano.sh {quoted(name)} not found"
        yield Finding(text, ("spec", "queue"), name, "a queue that exists")
        return
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        text = (
            "can only submit PodGroup to queue with state `Open`, "
            f"queue `{name}` status is `{state}`."
        )
        wanted = f"an open queue (this one is {state or 'in no state'})"
        yield Finding(text, ("spec", "queue"), name, wanted)


def _topology(spec: dict[str, Any]) -> Iterator[Finding]:
    wanted = "highestTierAllowed or highestTierName"
    if _says_both(spec):
        yield Finding(_TOPOLOGY, ("spec", "networkTopology"), spec["networkTopology"], wanted)
    for index, policy in enumerate(spec.get("subGroupPolicy") or ()):
        if _says_both(policy):
            text = f"in subGroupPolicy '{policy.get('name', '')}': {_TOPOLOGY}"
            path = ("spec", "subGroupPolicy", index, "networkTopology")
            yield Finding(text, path, policy["networkTopology"], wanted)
            return


def _says_both(holder: dict[str, Any]) -> bool:
    given = holder.get("networkTopology") or {}
    return given.get("highestTierAllowed") is not None and bool(given.get("highestTierName"))

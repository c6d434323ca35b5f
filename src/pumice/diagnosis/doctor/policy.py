"""The configuration: the scheduler's file, queues, and jobs that no scheduler considers."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import (
    DEFAULT_QUEUE,
    POD_GROUP,
    QUEUE,
    ROOT_QUEUE,
    SCHEDULER_NAME,
    Manifest,
    queue_of,
)
from pumice.api.wording import counted, first_of
from pumice.cluster.base import Cluster
from pumice.diagnosis.cluster_state import group_of
from pumice.diagnosis.doctor.finding import Checked, ok, unknown, warning, wrong
from pumice.diagnosis.stored_configuration import stored_configuration
from pumice.errors import ClusterError, ConfError
from pumice.scheduler import Scheduler

_PENDING: Final = ("", "Pending", "Inqueue")


def configuration(cluster: Cluster) -> Iterator[Checked]:
    """Check the configuration as a scheduler would read it."""
    try:
        text, source = stored_configuration(cluster) or (DEFAULT_CONF, "")
    except ClusterError as error:
        yield unknown("configuration", error.problem)
        return
    if not source:
        yield ok("configuration", "no ConfigMap: the built-in configuration is used")
    try:
        scheduler = Scheduler(parse_conf(text, source=source))
    except ConfError as error:
        yield wrong("configuration", str(error), "pumice config check FILE lists all problems")
        return
    for problem in scheduler.warnings:
        yield warning("configuration", f"{source}: {problem}", "pumice config check FILE explains")
    if source and not scheduler.warnings:
        yield ok("configuration", f"{source} can be used")


def queues(cluster: Cluster) -> Iterator[Checked]:
    """Check that the queues of jobs exist and are open."""
    try:
        known = {each["metadata"]["name"]: each for each in cluster.list(QUEUE)[0]}
        groups = cluster.list(POD_GROUP)[0]
    except ClusterError as error:
        yield unknown("queues", error.problem)
        return
    waiting = Counter(queue_of(each) for each in groups if _phase(each) in _PENDING)
    missing = sorted(waiting.keys() - known.keys() - {ROOT_QUEUE, DEFAULT_QUEUE})
    closed = sorted(name for name in waiting.keys() & known.keys() if not _is_open(known[name]))
    if missing:
        text = f"jobs wait for queues that do not exist: {first_of(missing, 3)}"
        yield wrong("queues", text, f"pumice queue create --name {missing[0]}")
    if closed:
        text = f"jobs wait for queues that are closed: {first_of(closed, 3)}"
        yield warning("queues", text, f"pumice queue operate --name {closed[0]} --action open")
    never = [name for name in (ROOT_QUEUE, DEFAULT_QUEUE) if name not in known]
    if never:
        text = f"the scheduler has not created {' and '.join(never)} yet"
        yield wrong("queues", text, "read the scheduler's log: a webhook may refuse them")
    if not missing and not closed and not never:
        yield ok("queues", f"{counted(len(known), 'queue')}, all that jobs wait for are open")


def scheduler_names(cluster: Cluster) -> Iterator[Checked]:
    """Check that gangs do not wait for a scheduler that does not run."""
    try:
        pods = cluster.list("Pod")[0]
    except ClusterError as error:
        yield unknown("scheduler names", error.problem)
        return
    waiting = [pod for pod in pods if _waits(pod) and group_of(pod)]
    others = sorted({str(pod["spec"].get("schedulerName")) for pod in waiting} - {SCHEDULER_NAME})
    if others:
        yield warning(
            "scheduler names",
            f"pods of gangs wait for other schedulers: {first_of(others, 3)}",
            f"set schedulerName: {SCHEDULER_NAME}, or run one with --scheduler-name {others[0]}",
        )
    else:
        yield ok("scheduler names", f"every gang that waits names {SCHEDULER_NAME}")


def nodes(cluster: Cluster) -> Iterator[Checked]:
    """Check that some nodes take pods."""
    try:
        found = cluster.list("Node")[0]
    except ClusterError as error:
        yield unknown("nodes", error.problem)
        return
    ready = [each for each in found if _is_ready(each)]
    closed = [each for each in ready if each.get("spec", {}).get("unschedulable")]
    text = f"{len(ready)} of {counted(len(found), 'node')} ready, {len(closed)} of them cordoned"
    if len(ready) == len(closed):
        yield wrong("nodes", text, "kubectl get nodes; kubectl uncordon NODE")
    else:
        yield ok("nodes", text)


def _phase(group: Manifest) -> str:
    return str((group.get("status") or {}).get("phase") or "")


def _is_open(queue: Manifest) -> bool:
    return (queue.get("status") or {}).get("state") in (None, "", "Open")


def _waits(pod: Manifest) -> bool:
    return not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") == "Pending"


def _is_ready(node: Manifest) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

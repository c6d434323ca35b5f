"""Names, labels and annotations of what belongs to a job; as in Volcano's API."""

import hashlib
from typing import Final

from pumice.api.kinds import Manifest

TASK_INDEX: Final = "volcano.sh/task-index"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
RETRY_COUNT: Final = "volcano.sh/job-retry-count"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
FORWARDING: Final = "volcano.sh/job-forwarding"
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
"""Marks a pod that the controller itself is about to remove, so that it is no eviction."""


DEFAULT_TASK: Final = "default"
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = 11
"""More than an index can have."""
MOST_HOSTS: Final = 50_000
"""Maximum hosts of a task that plugins list; more names fit into no ConfigMap and no pod."""


def pod_name(job: str, task: str, index: int) -> str:
    """Name the pod of a task."""
    return f"{job}-{task}-{index}"


def pod_index(job: str, task: str, name: str) -> int | None:
    """Read the index off the name of a pod of a task; None if it is not such a name."""
    start = pod_name(job, task, 0)[:-1]
    digits = name.removeprefix(start)
    plain = digits.isascii() and digits.isdigit() and len(digits) < _DIGITS
    if digits == name or not plain or digits != str(int(digits)):
        return None
    return int(digits)


def podgroup_name(job: Manifest) -> str:
    """Name the PodGroup of a job; one that no cluster has seen has no uid to add."""
    metadata = job["metadata"]
    return f"{metadata['name']}-{metadata['uid']}" if metadata.get("uid") else metadata["name"]


def stable_suffix(*parts: object) -> str:
    """Make 12 characters that look random and are the same for the same parts.

    A reconcile that is repeated must find what it made before, so nothing is random.
    """
    number = int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest(), "big")
    letters = []
    for _ in range(12):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)


def host_name(job: Manifest, task: Manifest, index: int) -> tuple[str, str]:
    """Return the host name and the subdomain that a pod of a task answers to."""
    spec = (task.get("template") or {}).get("spec") or {}
    name = str(job["metadata"]["name"])
    host = str(spec.get("hostname") or pod_name(name, str(task.get("name") or ""), index))
    return host, str(spec.get("subdomain") or name)


def hosts(job: Manifest, task: Manifest) -> list[tuple[str, str]]:
    """List the hosts of a task; a fixed host name in the template makes it a single one."""
    fixed = ((task.get("template") or {}).get("spec") or {}).get("hostname")
    number = min(int(task.get("replicas") or 0), 1 if fixed else MOST_HOSTS)
    return [host_name(job, task, index) for index in range(number)]

"""Pods that an API server refused to create: only the events of their owner show why."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.cluster.embedded.store import Gate
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.unseen_jobs import owner_of
from pumice.errors import QuotaExceededError

_FAILED: Final = "FailedCreate"
_REFUSED: Final = re.compile(
    r"creating pods?:|failed to create pod|pods? .*is forbidden", re.IGNORECASE
)
_ADMITTED: Final = ("Inqueue", "Running", "Unknown")
_QUOTA: Final = re.compile(r"(?:exceeded|failed) quota: ([^,\s]+)")


def creation_errors(events: Iterable[Manifest]) -> dict[str, str]:
    """Return the last message about pods that could not be created, by kind and key of the owner.

    Events of other kinds are left out.
    """
    found: dict[str, tuple[str, str]] = {}
    for event in events:
        about = event.get("involvedObject") or event.get("regarding") or {}
        text = " ".join(str(event.get("message") or event.get("note") or "").split())
        is_refusal = event.get("reason") == _FAILED or _REFUSED.search(text)
        if not text or not about.get("name") or not is_refusal:
            continue
        space = about.get("namespace") or event["metadata"].get("namespace") or "default"
        owner, at = f"{about.get('kind')} {space}/{about['name']}", _last(event)
        if owner not in found or at >= found[owner][0]:
            found[owner] = at, text
    return {owner: text for owner, (_, text) in found.items()}


def _last(event: Mapping[str, Any]) -> str:
    series, meta = event.get("series") or {}, event["metadata"]
    times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"))
    return str(next(filter(None, times), None) or meta.get("creationTimestamp") or "")


def lacking_pods(objects: Iterable[Manifest]) -> set[str]:
    """Name the namespaces with pod groups that are admitted and have fewer pods than they need."""
    groups, pods = list[Manifest](), Counter[str]()
    for one in objects:
        if one["kind"] == "PodGroup":
            groups.append(one)
        elif one["kind"] == "Pod":
            pods[group_of(one)] += 1
    return {
        str(one["metadata"].get("namespace"))
        for one in groups
        if (one.get("status") or {}).get("phase") in _ADMITTED
        and pods[key_of(one)] < int((one.get("spec") or {}).get("minMember") or 1)
    }


def creation_error(world: ClusterState, group: str) -> str:
    """Return why an API server refused pods of a job (by its pod group); empty if it did not."""
    if not world.creation_errors:
        return ""
    space = group.partition("/")[0]
    owners = [f"PodGroup {group}", f"Job {world.title(group)}"]
    manifest = world.groups.get(group) or {"metadata": {}}
    references = manifest["metadata"].get("ownerReferences") or ()
    owners += [f"{one.get('kind')} {space}/{one.get('name')}" for one in references]
    return next((text for owner in owners if (text := world.creation_errors.get(owner))), "")


class RefusedPods:
    """A gate in front of an embedded cluster: it refuses what the API server refused."""

    def __init__(self, errors: Mapping[str, str], quotas: Gate | None) -> None:
        self._errors = errors
        self._quotas = quotas

    def admit(self, pod: Manifest) -> Callable[[], None]:
        """Check a new pod; return what counts it.

        Raises:
            QuotaExceededError: it is refused; controllers do not try again.
        """
        error = self._errors.get(f"Job {owner_of(pod)}")
        if error is not None:
            meta = pod["metadata"]
            raise QuotaExceededError("Pod", meta["namespace"], meta["name"], error)
        return (lambda: None) if self._quotas is None else self._quotas.admit(pod)


def refusing_quota(text: str) -> str:
    """Return the resource quota that a message names; empty if none refused."""
    found = _QUOTA.search(text)
    return found[1] if found else ""

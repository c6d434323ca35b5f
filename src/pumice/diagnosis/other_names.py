"""Names that belong to no job: what they are, and which jobs to ask for in their place."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final

from pumice.api.kinds import SCHEDULER_NAME, Manifest
from pumice.api.wording import first_of
from pumice.cluster.base import ReadableCluster
from pumice.controllers.jobflow import BY_TEMPLATE
from pumice.errors import ClusterError

_SHOWN: Final = 3
"""Number of names suggested for an unknown one."""
_LONGEST: Final = 500
"""Characters of an unknown name that are compared with known ones."""
_KINDS_OF_JOBS: Final = frozenset(
    {"job", "jobs", "vcjob", "podgroup", "podgroups", "pg", "pod", "pods", "po"}
)
"""How people write the kinds by which a job can be named."""
_HASH: Final = "pod-template-hash"
"""The label by which a Deployment tells the pods of its ReplicaSets apart."""
_TIMED: Final = re.compile(r"(?P<cron>.+)-\d{8,}")
"""Jobs of a Kubernetes CronJob: its name and the minute."""
_MAKERS: Final = (
    "Deployment.apps",
    "ReplicaSet.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "Job.batch",
    "CronJob.batch",
    "CronJob.batch.volcano.sh",
    "JobFlow.flow.volcano.sh",
    "JobTemplate.flow.volcano.sh",
)
"""Kinds from which jobs or pods are made."""
_MAKING: Final = frozenset(kind.partition(".")[0] for kind in _MAKERS)

Member = tuple[Manifest, str]
"""A job, a pod group or a pod, and the name of its job; empty if it has none."""


def owner_sentence(name: str, members: Iterable[Member]) -> str:
    """Describe an object that owns jobs or pods, and name them; empty if none of that name does."""
    owned: dict[str, dict[str, Manifest]] = {}
    for member, job in members:
        space = member["metadata"].get("namespace") or "default"
        for kind, owner in _owners(member):
            if name in (owner, f"{space}/{owner}"):
                owned.setdefault(f"{kind} {space}/{owner}", {})[job] = member
    return "; ".join(_sentence(owner, jobs) for owner, jobs in owned.items())


def unread_sentence(name: str, unread: Mapping[str, Iterable[str]]) -> str:
    """Describe an object that was not read, of all kinds by name; empty if none has the name.

    What jobs or pods are made from comes first.
    """
    spellings = {name, name.removeprefix("default/")}
    found = [
        (kind not in _MAKING, kind, key)
        for key, kinds in unread.items()
        if not spellings.isdisjoint((key, key.partition("/")[2]))
        for kind in kinds
    ]
    return _without_jobs(*min(found)[1:]) if found else ""


def _without_jobs(kind: str, key: str) -> str:
    space = "default/" if kind in _MAKING and "/" not in key else ""
    return f"{kind} {space}{key} has no job and no pod here; name a job, a pod group or a pod"


def maker_named(cluster: ReadableCluster, name: str) -> str:
    """Describe an object of a cluster from which jobs or pods are made; empty if there is none."""
    space, slash, short = name.rpartition("/")
    for kind in _MAKERS if short else ():
        with suppress(ClusterError):  # not there, not served or not shown
            cluster.get(kind, space if slash else "default", short)
            return _without_jobs(kind.partition(".")[0], f"{space or 'default'}/{short}")
    return ""


def _sentence(owner: str, jobs: Mapping[str, Manifest]) -> str:
    names = sorted(filter(None, jobs))
    if len(names) == 1:
        return f"the job of {owner} is {names[0]}: explain that"
    if names:
        return f"the jobs of {owner} are {first_of(names, _SHOWN)}: explain one of them"
    spec = jobs[""].get("spec") or {}
    scheduler = spec.get("schedulerName") or "default-scheduler"
    if scheduler != SCHEDULER_NAME:
        return f"the pods of {owner} are left to the scheduler {scheduler}"
    return f"the pods of {owner} have no pod group"


def _owners(member: Manifest) -> Iterator[tuple[str, str]]:
    """Yield kind and name of what owns an object, and of what must own that."""
    references: Any = member["metadata"].get("ownerReferences") or ()
    for each in references:
        kind, name = str(each.get("kind")), str(each.get("name"))
        yield kind, name
        ending = f"-{_label(member, _HASH)}"
        if kind == "ReplicaSet" and len(ending) > 1 and name.endswith(ending):
            yield "Deployment", name.removesuffix(ending)
        elif each.get("apiVersion") == "batch/v1" and (timed := _TIMED.fullmatch(name)):
            yield "CronJob", timed["cron"]
    if template := _label(member, BY_TEMPLATE):
        yield "JobTemplate", template.partition(".")[2]


def _label(member: Manifest, name: str) -> str:
    return str((member["metadata"].get("labels") or {}).get(name) or "")


def suggested(name: str, known: Iterable[str], ways: Mapping[str, set[str]]) -> str:
    """Suggest names for an unknown one: ``known`` ones, or what the spellings of ``ways`` mean."""
    choices = [*ways] or [*known]
    near = get_close_matches(name[:_LONGEST], choices, n=_SHOWN, cutoff=0.5)
    meant = dict.fromkeys(each for text in near for each in sorted(ways.get(text, {text})))
    if meant:
        *some, last = [repr(each) for each in list(meant)[:_SHOWN]]
        return f"did you mean {', '.join(some)}{' or ' * bool(some)}{last}?"
    listed = sorted(known)
    if len(listed) == 1:
        return f"the only one is {listed[0]}"
    return f"there are {first_of(listed, _SHOWN)}" if listed else "there is none at all"


def without_kind(name: str) -> str:
    """Return a name without the kind before it, as in "podgroup/NAMESPACE/NAME"."""
    kind, slash, rest = name.partition("/")
    return rest if slash and kind.lower() in _KINDS_OF_JOBS else name

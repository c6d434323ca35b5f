"""A cluster at one moment, as plain manifests with a configuration: the input of every answer.

A cluster state is a value: changing it makes another one, so an answer can try changes on copies.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from pumice.api.annotations import GROUP_NAME
from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.kinds import LIMIT_RANGE, RESOURCE_QUOTA, SCHEDULER_NAME, Manifest
from pumice.api.meta import KubeObject
from pumice.api.objects import from_manifest
from pumice.api.pod_resources import Amounts
from pumice.api.wording import first_of
from pumice.cluster.base import ReadableCluster
from pumice.cluster.embedded.quotas import usage_of
from pumice.controllers.expected import is_expected, missing_class
from pumice.controllers.jobflow import BY_TEMPLATE
from pumice.controllers.quota_headroom import Elsewhere, QuotaHeadroom, Refusals, counted_elsewhere
from pumice.controllers.view import ManifestView
from pumice.errors import ClusterError, InputError
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import StandingWarnings

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
_parsed = lru_cache(maxsize=16)(parse_conf)  # worlds of one question mostly share theirs
_KEY = re.compile(r"[^\s/,;:()']+/[^\s/,;:()']+")
"""Possible keys of pod groups in a text."""
_MADE_UP = "podgroup-"
"""Prefix of pod groups that the controller makes for pods without one."""
_INSTEAD = {
    "Queue": "'pumice queue order' lists the jobs that wait in queues",
    "Node": "'pumice explain' without a name lists the jobs that wait",
}
"""What to ask instead of explaining an object of a kind."""


_T = TypeVar("_T")


class Memo(Generic[_T]):
    """A function of manifests that remembers its results, by the identity of the manifest."""

    def __init__(self, make: Callable[[Manifest], _T]) -> None:
        self._make = make
        self._known: dict[int, tuple[Manifest, _T]] = {}

    def __reduce__(self) -> tuple[type["Memo[_T]"], tuple[Callable[[Manifest], _T]]]:
        """Leave the results behind on the way to another process: there, identities are others."""
        return Memo, (self._make,)

    def __call__(self, manifest: Manifest) -> _T:
        """Return what is made of a manifest."""
        known = self._known.get(id(manifest))
        if known is None:
            # the manifest is kept with it, so that its identity is not reused
            known = self._known[id(manifest)] = (manifest, self._make(manifest))
        return known[1]


# Names that belong to no job


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


# The state of a cluster


class UnknownJobError(InputError):
    """A name that no job of the cluster has; ``is_known`` if something else has it."""

    def __init__(self, *, is_known: bool = False, **parts: Any) -> None:
        super().__init__(**parts)
        self.is_known = is_known


def key_of(manifest: Mapping[str, Any]) -> str:
    """Name an object: "namespace/name", or the name alone where it has no namespace."""
    meta = manifest["metadata"]
    space = meta.get("namespace")
    return f"{space}/{meta['name']}" if space else str(meta["name"])


def group_of(pod: Mapping[str, Any]) -> str:
    """Name the pod group of a pod: "namespace/name", empty if it has none."""
    name = (pod["metadata"].get("annotations") or {}).get(GROUP_NAME)
    return f"{pod['metadata'].get('namespace')}/{name}" if name else ""


def title_of(group: Mapping[str, Any]) -> str:
    """Name a pod group by the Volcano job, pod or set of pods that it was made for."""
    owners = group["metadata"].get("ownerReferences") or ()
    return titled(key_of(group), [(str(one.get("kind")), str(one.get("name"))) for one in owners])


def titled(key: str, owners: Iterable[tuple[str, str]]) -> str:
    """Name a pod group by the kinds and names of its owners, else by its own."""
    namespace, _, name = key.partition("/")
    for kind, owner in owners:
        if kind == "Job" or name.startswith(_MADE_UP):
            return f"{namespace}/{owner}"
    return key


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """Objects, configuration and time; objects are never changed in place."""

    objects: tuple[Manifest, ...]
    now: float
    """Epoch seconds."""
    jobs: Mapping[str, Manifest] = field(default_factory=dict)
    """Volcano jobs by key, as a cluster stores them."""
    conf: str = DEFAULT_CONF
    """Text of the scheduler configuration."""
    conf_source: str = "the built-in configuration"
    node_usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    seed: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Kinds that scheduling does not read, with how many there were."""
    passed_over: Mapping[str, Sequence[str]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Their names, with the kind."""
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Kinds that a cluster did not show, with its reason."""
    other_notes: tuple[str, ...] = ()
    """What else could not be read of a cluster."""
    creation_errors: Mapping[str, str] = field(default_factory=dict)
    """Why an API server refused pods of an owner (kind and key), as its last event states it."""
    asks_extender: bool = False
    """Whether a configured extender may be asked questions without side effects."""
    plugins: Mapping[str, type[Plugin]] = field(default_factory=dict)
    """Plugins that the configuration may name beside the built-in and installed ones."""
    failures: dict[str, None] = field(default_factory=dict, repr=False, compare=False)
    """Plugins that failed while an answer was computed, a line each; shared as ``_typed`` is."""
    warnings: StandingWarnings = field(
        default_factory=partial(StandingWarnings, forgets=False), repr=False, compare=False
    )
    """What plugins have warned of; shared as ``_typed`` is."""
    extender_answers: dict[bytes, Mapping[str, Any]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Answers of an extender, so that each question is asked once; shared as ``_typed`` is."""
    _typed: Memo[KubeObject] = field(
        default_factory=partial(Memo, from_manifest), repr=False, compare=False
    )
    """Makes typed objects of manifests; shared with worlds made from this one."""
    counted_elsewhere: Elsewhere = field(default_factory=dict, compare=False)
    """What resource quotas counted besides the pods of the first world."""
    quota_usage: Memo[Amounts] = field(
        default_factory=partial(Memo, usage_of), repr=False, compare=False
    )
    """Returns what pods use of quotas; shared as ``_typed`` is."""
    writes: int = field(default=0, compare=False)
    """How many writes to embedded clusters led from the first world to this one."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a cluster did not show, a sentence each."""
        hidden = (f"{kind} left out: {problem}" for kind, problem in self.hidden.items())
        return (*hidden, *self.other_notes)

    def typed(self, objects: Iterable[Manifest] | None = None) -> list[KubeObject]:
        """Return objects, by default all, as the deciding core reads them; each is read once."""
        return list(map(self._typed, self.objects if objects is None else objects))

    def typed_one(self, manifest: Manifest) -> KubeObject:
        """Return one object as the deciding core reads it."""
        return self._typed(manifest)

    @cached_property
    def scheduler_conf(self) -> SchedulerConf:
        """Read the configuration.

        Raises:
            ConfError: it cannot be used.
        """
        return _parsed(self.conf, source=self.conf_source)

    @cached_property
    def _lists(self) -> dict[str, list[Manifest]]:
        """Objects by kind, in their order."""
        found: dict[str, list[Manifest]] = {}
        for kind, several in groupby(self.objects, itemgetter("kind")):
            found.setdefault(kind, []).extend(several)
        return found

    @cached_property
    def _by_kind(self) -> dict[str, dict[str, Manifest]]:
        """The kinds that were asked for."""
        return {}

    def of_kind(self, kind: str) -> Mapping[str, Manifest]:
        """Return all objects of a kind by key; a Job is one of Volcano."""
        if kind == "Job":
            return self.jobs
        found = self._by_kind.get(kind)
        if found is None:
            found = {key_of(one): one for one in self._lists.get(kind, ())}
            self._by_kind[kind] = found
        return found

    def get(self, kind: str, key: str) -> Manifest | None:
        """Return an object, None if there is none."""
        return self.of_kind(kind).get(key)

    def job_of(self, group: str) -> Manifest | None:
        """Return the Volcano job that a pod group was made for, None if that is not known."""
        return self.jobs.get(self.title(group))

    @cached_property
    def view(self) -> ManifestView:
        """All objects as controllers see them."""
        return ManifestView(self.objects)

    @cached_property
    def groups(self) -> Mapping[str, Manifest]:
        """Pod groups by key."""
        return self.of_kind("PodGroup")

    @cached_property
    def pods(self) -> list[Manifest]:
        """Pods in their order."""
        return self._lists.get("Pod", [])

    @cached_property
    def pods_by_group(self) -> dict[str, list[Manifest]]:
        """Pods by the key of their pod group."""
        found: dict[str, list[Manifest]] = {}
        for one in self.pods:
            found.setdefault(group_of(one), []).append(one)
        return found

    # Resource quotas

    @cached_property
    def refusals(self) -> Mapping[str, Refusals]:
        """Pods still to be made that quotas would refuse, by the key of their pod group."""
        rooms = self._quota_rooms()
        return {} if rooms is None else rooms.refusals(self.pods_by_group, self.groups)

    def has_quotas(self, namespace: str) -> bool:
        """Return whether resource quotas of a namespace are known."""
        return any(key.startswith(f"{namespace}/") for key in self.of_kind(RESOURCE_QUOTA))

    def why_refused(self, pod: Manifest) -> str:
        """Return how quotas would refuse a new pod; empty if they would not."""
        rooms = self._quota_rooms()
        return "" if rooms is None else rooms.why_refused(pod)

    def _quota_rooms(self) -> QuotaHeadroom | None:
        """Return the quotas with the existing pods counted, None if there are no quotas."""
        quotas = self._lists.get(RESOURCE_QUOTA)
        if not quotas:
            return None
        elsewhere, demands = self.counted_elsewhere, self.knows_defaults
        return QuotaHeadroom(quotas, self.pods, self.quota_usage, elsewhere, demands=demands)

    @property
    def knows_defaults(self) -> bool:
        """Whether the amounts are known that pods get where they state none."""
        return LIMIT_RANGE not in self.hidden

    @property
    def admitted_objects(self) -> Sequence[Manifest]:
        """All objects but the pods that an API server refused, or would refuse."""
        pods = (each.pod for refused in self.refusals.values() for each in refused.pods)
        refused = {*map(id, pods), *map(id, self._not_created())}
        there = self.creatable_objects
        return [one for one in there if id(one) not in refused] if refused else there

    @cached_property
    def creatable_objects(self) -> Sequence[Manifest]:
        """All objects but the pods whose priority class does not exist."""
        known = self.of_kind("PriorityClass")
        unclassed = {id(pod) for pod in self.pods if missing_class(pod, known)}
        if not unclassed:
            return self.objects
        return [one for one in self.objects if id(one) not in unclassed]

    def _not_created(self) -> Iterator[Manifest]:
        """Yield the pods still to be made of Volcano jobs whose pods an API server refused."""
        for group, pods in self.pods_by_group.items() if self.creation_errors else ():
            if f"Job {self.title(group)}" in self.creation_errors:
                yield from filter(is_expected, pods)

    def with_counts(self) -> "ClusterState":
        """Return the same world, which knows what its quotas count besides its pods."""
        quotas = self._lists.get(RESOURCE_QUOTA)
        if not quotas:
            return self
        beyond = counted_elsewhere(quotas, self.pods, self.quota_usage)
        return replace(self, counted_elsewhere=beyond)

    def title(self, key: str) -> str:
        """Return the display name of a pod group: that of its job, pod or set of pods."""
        group = self.groups.get(key)
        return key if group is None else title_of(group)

    def group_titled(self, title: str) -> str:
        """Return the key of the pod group that has a title; the title itself if none has."""
        if title in self.groups:
            return title
        return next((key for key in self.groups if self.title(key) == title), title)

    def plain(self, text: str) -> str:
        """Write a text about pod groups with the names of their jobs."""
        return _KEY.sub(lambda match: self.title(match[0]), text)

    # Other worlds

    def edited(self, edit: Callable[[Manifest], Manifest | None]) -> "ClusterState":
        """Make a world whose objects went through a function; None leaves one out."""
        kept = (edit(one) for one in self.objects)
        return replace(self, objects=tuple(one for one in kept if one is not None))

    def with_objects(self, more: Iterable[Manifest]) -> "ClusterState":
        """Make a world with further objects; one of the same kind and name is replaced."""
        new = {(one["kind"], key_of(one)): one for one in more}
        names = {one["metadata"]["name"] for one in new.values()}
        kept = [
            new.pop((one["kind"], key_of(one)), one) if one["metadata"]["name"] in names else one
            for one in self.objects
        ]
        return replace(self, objects=(*kept, *new.values()))

    # Names

    def find_job(self, name: str) -> str:
        """Return the key of the pod group that a name refers to.

        That is a pod group or a Volcano job with or without namespace, or one of its pods; their
        kind may come before it, as in ``podgroup/NAMESPACE/NAME``.

        Raises:
            InputError: there is none, or more than one.
        """
        meanings = self._names_of_jobs()  # exact names win
        if name not in meanings:
            meanings = self._names_of_pods() | meanings
        found = meanings.get(name) or meanings.get(without_kind(name)) or set()
        if len(found) == 1:
            return next(iter(found))
        if found:
            raise InputError(
                wanted="one job",
                found=name,
                hint=f"there are {len(found)}: {', '.join(sorted(found))}",
            )
        titles = {text: set(map(self.title, keys)) for text, keys in meanings.items()}
        known = set(map(self.title, self.groups))
        what = self._why_no_job(name) or self._other_object(name)
        hint = what or suggested(name, known, titles)
        raise UnknownJobError(wanted="a known job", found=name, hint=hint, is_known=bool(what))

    def find(self, kind: str, name: str) -> Manifest:
        """Return an object without namespace.

        Raises:
            InputError: there is none.
        """
        known = self.of_kind(kind)
        if name in known:
            return known[name]
        raise InputError(
            wanted=f"a {kind.lower()} of this cluster", found=name, hint=suggested(name, known, {})
        )

    def suggestion(self, kind: str, name: str) -> str:
        """Suggest names for an unknown one of a kind."""
        return suggested(name, self.of_kind(kind), {})

    def _names_of_jobs(self) -> dict[str, set[str]]:
        """Map the spellings of jobs to the keys they may mean."""
        exact: dict[str, set[str]] = {}
        for key, group in self.groups.items():
            space, _, name = key.partition("/")
            exact.setdefault(key, set()).add(key)
            exact.setdefault(name, set()).add(key)
            for owner in group["metadata"].get("ownerReferences") or ():
                if owner.get("kind") == "Job" or title_of(group) != key:
                    exact.setdefault(f"{space}/{owner.get('name')}", set()).add(key)
                    exact.setdefault(str(owner.get("name")), set()).add(key)
        for key in self.jobs.keys() - {self.title(group) for group in self.groups}:
            exact.setdefault(key, set()).add(key)
            exact.setdefault(key.partition("/")[2], set()).add(key)
        return exact

    def _names_of_pods(self) -> dict[str, set[str]]:
        """Map the spellings of pods to the keys of their jobs."""
        loose: dict[str, set[str]] = {}
        for key, pods in self.pods_by_group.items():
            if key in self.groups:
                for pod in pods:
                    loose.setdefault(key_of(pod), set()).add(key)
                    loose.setdefault(pod["metadata"]["name"], set()).add(key)
        return loose

    def _other_object(self, name: str) -> str:
        """Return what has a name that no job and no pod has; empty if nothing is known to."""
        if sentence := owner_sentence(name, self._members()):
            return sentence
        for kind, instead in _INSTEAD.items():
            if name in self.of_kind(kind):
                return f"{name} is a {kind.lower()}: {instead}"
        return unread_sentence(name, self.passed_over)

    def _members(self) -> Iterator[Member]:
        """Yield jobs, pod groups and pods with the names of their jobs."""
        yield from ((job, key) for key, job in self.jobs.items())
        yield from ((group, self.title(key)) for key, group in self.groups.items())
        for key, pods in self.pods_by_group.items():
            job = self.title(key) if key in self.groups else ""
            yield from ((pod, job) for pod in pods)

    def _why_no_job(self, name: str) -> str:
        """Return why a pod of that name belongs to no job; empty if there is no such pod."""
        for key, pod in self.of_kind("Pod").items():
            if name not in (key, pod["metadata"]["name"]):
                continue
            scheduler = (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
            if scheduler != SCHEDULER_NAME:
                return f"pod {key} is left to the scheduler {scheduler}"
            group = group_of(pod)
            if group:
                return f"pod {key} names pod group {group}, which does not exist"
            return f"pod {key} has no pod group; a controller makes one, or the input lacks it"
        return ""

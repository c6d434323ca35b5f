"""Keeps a snapshot in step with a cluster: list, watch, convert, apply.

Used by the scheduler's loop.  A bad object is reported and skipped; it never stops the others.  A
skipped pod still counts on its node as far as it can be read; of any other object the last good
version stays until it can be read again or is deleted.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

import msgspec

from pumice.api.decisions import ClaimChoice, PodGroupState
from pumice.api.devices import ClaimReservation
from pumice.api.groups import PodGroup, PodGroupStatus
from pumice.api.kinds import CLAIM, ENDED_PHASES, POD_GROUP, RESOURCE_CLAIM, VOLUME, Manifest
from pumice.api.meta import KubeObject, key_of, keyed
from pumice.api.nodes import Node
from pumice.api.objects import FOLLOWED, TYPES, from_manifest
from pumice.api.pods import Pod
from pumice.cache.agent_pods import AgentPods
from pumice.cache.assume import Assumptions
from pumice.cache.ingest import Ingest
from pumice.cache.news import News
from pumice.cache.pod_cells import is_partial, partial_pod
from pumice.cluster.base import Cluster, Event
from pumice.core.snapshot import Snapshot
from pumice.errors import GoneError, NotFoundError

_REMEMBERED: Final = 1000
_LITTER: Final = 20_000
"""How many entries of deleted pods may be kept, or three for each pod if that is more."""
_STRANGE_RESOURCES: Final = 256
"""How many resources that no object offers may be requested; each is a row in every table."""
_AT_HAND: Final = 256
"""How many objects are read before they are shown: so many stay in the processor's cache."""
_PATIENCE_S: Final = 600.0
"""After how long it is checked whether such resources are still requested."""


def _read(kind: str, manifest: Manifest) -> KubeObject:
    """Read a manifest; only one that does not fit at once is looked at closely."""
    try:
        return msgspec.convert(manifest, TYPES[kind])
    except msgspec.ValidationError:
        return from_manifest(manifest)


def _read_all(kind: str, manifests: Sequence[Manifest]) -> list[KubeObject]:
    """Read many manifests of a kind; raises if one of them is bad."""
    try:
        found: list[KubeObject] = msgspec.convert(manifests, _list_of(kind))
    except msgspec.ValidationError:
        return [_read(kind, manifest) for manifest in manifests]
    return found


@cache
def _list_of(kind: str) -> Any:
    return list[TYPES[kind]]  # type: ignore[valid-type]


class BadObject(msgspec.Struct, frozen=True):
    """An object that was skipped."""

    kind: str
    key: str
    error: Exception


class Informer:
    """Watches a cluster into a snapshot; ``sync`` before each cycle."""

    def __init__(
        self,
        cluster: Cluster,
        ingest: Ingest,
        kinds: Iterable[str] = FOLLOWED,
        *,
        wants_node: Callable[[Node], bool] = lambda _: True,
        agents: Iterable[str] = (),
    ) -> None:
        """Make one; nodes that are not wanted count as absent.

        ``agents`` are the schedulers whose pods need no group.
        """
        self._cluster = cluster
        self._ingest = ingest
        ingest.snapshot.resources.most_asked = _STRANGE_RESOURCES
        self._since = dict.fromkeys(kinds, "")
        self._known: dict[str, dict[str, KubeObject]] = {kind: {} for kind in self._since}
        self._agents = AgentPods(agents)
        self._assumed = Assumptions()
        self._wants_node = wants_node
        self.problems: deque[BadObject] = deque(maxlen=_REMEMBERED)
        """Objects skipped lately, oldest first."""
        self.skipped: Counter[str] = Counter()
        """How many were skipped so far, by kind."""
        self._bad: dict[str, dict[str, str]] = {kind: {} for kind in self._since}
        """Versions of skipped objects, so that each is reported once."""
        self._loaded = self._torn = False
        self._made_at = cluster.now()
        self._news = News()

    def sync(self) -> int:
        """Apply what changed since the last time; return the number of changes."""
        if not self._loaded:
            return self._load()
        changes = 0
        for kind, since in self._since.items():
            try:
                changes += self._watch(kind, since)
            except GoneError:
                changes += self._relist(kind)
            except NotFoundError:  # a cluster without this kind
                continue
        if self._is_littered():
            self._start_anew()
        self.settle()
        return changes

    def settle(self) -> None:
        """Bring links up to date after assumptions were made or undone."""
        while self._torn:
            self._start_anew()
        self._ingest.settle()

    def _is_littered(self) -> bool:
        age_s = self._cluster.now() - self._made_at
        if self.snapshot.resources.refused and age_s > _PATIENCE_S:
            return True
        return self._ingest.litter > max(_LITTER, 3 * len(self.snapshot.tasks.row_of))

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is kept in step."""
        return self._ingest.snapshot

    def take_news(self) -> News:
        """Return the changes that may let something start, since the last call."""
        news, self._news = self._news, News()
        return news

    def known(self, kind: str, key: str) -> KubeObject | None:
        """Return an object as last received from the cluster."""
        return self._known[kind].get(key)

    def counts(self) -> dict[str, int]:
        """Count the objects known by kind."""
        return {kind: len(things) for kind, things in self._known.items()}

    # Assumptions until the cluster confirms

    def assume(self, pod: str, node: str, annotations: Mapping[str, str] | None = None) -> None:
        """Count a pod ("namespace/name") on a node until the cluster confirms it or ``undo``.

        It has the annotations that are written with its bind.
        """
        known = self._known["Pod"].get(pod)
        if isinstance(known, Pod):
            self._assumed.bound(pod, known, node, annotations or {})
            self._show("Pod", pod, known)

    def assume_evicted(self, pod: str) -> None:
        """Count a pod as leaving until the cluster confirms it or ``undo``."""
        known = self._known["Pod"].get(pod)
        if isinstance(known, Pod):
            self._assumed.evicted(pod, known)
            self._show("Pod", pod, known)

    def hold(self, pod: str) -> None:
        """Keep a pod from being placed until it has a node or ``undo``."""
        known = self._known["Pod"].get(pod)
        if isinstance(known, Pod):
            self._assumed.held(pod, known)
            self._show("Pod", pod, known)

    def undo(self, pod: str, what: str = "") -> None:
        """Count a pod as the cluster has it; ``what`` names "bound", "evicted" or "held" alone."""
        known = self._known["Pod"].get(pod)
        if self._assumed.forget(pod, what) and isinstance(known, Pod):
            self._show("Pod", pod, known)

    def assume_claims(self, pod: str, claims: tuple[ClaimReservation, ...]) -> None:
        """Count resource claims as a pod's until the cluster confirms it or ``undo_claims``."""
        known = self._known["Pod"].get(pod)
        if claims and isinstance(known, Pod):
            self._assumed.reserved(known, claims)
            self._show_claims([each.claim for each in claims])

    def undo_claims(self, pod_uid: str) -> None:
        """Count the resource claims of a pod as the cluster has them."""
        self._show_claims(self._assumed.forget_claims(pod_uid))

    def _show_claims(self, keys: Iterable[str]) -> None:
        for key in keys:
            known = self._known.get(RESOURCE_CLAIM, {}).get(key)
            if known is not None:
                self._show(RESOURCE_CLAIM, key, known)

    def waits_for(self, pod: str, uid: str, what: str) -> bool:
        """Return whether the cluster has yet to confirm that a pod is "bound" or "evicted"."""
        return self._assumed.waits_for(pod, uid, what)

    def take_ended(self) -> set[str]:
        """Return the pods about which something is no longer assumed since the last call."""
        return self._assumed.take_ended()

    def assume_group(
        self, group: str, status: PodGroupStatus, annotations: dict[str, str] | None = None
    ) -> None:
        """Assume a group to have a status until the cluster confirms it or ``undo_group``."""
        known = self._known[POD_GROUP].get(group)
        if isinstance(known, PodGroup):
            self._assumed.stated(group, known, status, annotations or {})
            self._show(POD_GROUP, group, known)

    def state_groups(self, states: Mapping[str, PodGroupState]) -> None:
        """Set the states of the groups of agents' pods, which the cluster does not have."""
        for group in self._agents.changed(states):
            self._put(group)

    def undo_group(self, group: str) -> None:
        """Use a group as the cluster has it."""
        known = self._known[POD_GROUP].get(group)
        if self._assumed.forget_group(group) and known is not None:
            self._show(POD_GROUP, group, known)

    def assume_choice(self, choice: ClaimChoice, uid: str) -> None:
        """Assume a claim, by its uid, to get its volume as chosen, until ``undo_choice``."""
        self._assumed.chosen(choice, uid)
        self._show_choice(choice)

    def undo_choice(self, choice: ClaimChoice) -> None:
        """Use a claim and its volume as the cluster has them."""
        self._assumed.forget_choice(choice)
        self._show_choice(choice)

    def _show_choice(self, choice: ClaimChoice) -> None:
        for kind, key in ((CLAIM, choice.claim), (VOLUME, choice.volume)):
            known = self._known[kind].get(key)
            if known is not None:
                self._show(kind, key, known)

    # Changes from the cluster

    def _load(self) -> int:
        """Load everything: a few objects are read and shown at a time, while they are at hand."""
        lists: dict[str, list[Manifest]] = {}
        for kind in self._since:
            with suppress(NotFoundError):  # a cluster without this kind
                lists[kind], self._since[kind] = self._cluster.list(kind)
        with self._ingest.counting_once():
            for kind, items in lists.items():
                for start in range(0, len(items), _AT_HAND):
                    things = keyed(self._read_all(kind, items[start : start + _AT_HAND]))
                    self._known[kind] |= things
                    self._show_many(kind, things)
        self.settle()
        self._loaded = self._news.others = True
        return sum(self.counts().values())

    def _start_anew(self) -> None:
        """Load all that is known into an empty snapshot, so that memory follows the cluster."""
        self._ingest = self._ingest.anew()
        self._torn = False
        self._made_at = self._cluster.now()
        with self._ingest.counting_once():
            for kind, things in self._known.items():
                self._show_many(kind, things)
            for group in self._agents.groups():
                self._put(group)

    def _show_many(self, kind: str, things: Mapping[str, KubeObject]) -> None:
        keys, values, place = [*things], [*things.values()], 0
        while place < len(keys):
            self._show(kind, keys[place], values[place])
            is_plain = kind == "Pod" and not (self._torn or self._assumed.has_pods)
            place = self._ingest.add_alike(values, place + 1) if is_plain else place + 1

    def _watch(self, kind: str, since: str) -> int:
        """Apply changes to objects of a kind; only the last one of each object."""
        latest: dict[str, Event] = {}
        for event in self._cluster.watch(kind, since=since):
            self._since[kind] = event.object["metadata"]["resourceVersion"]
            if event.type != "BOOKMARK":
                key = _key(event.object)
                if event.type == "DELETED":  # a successor of the same name starts afresh
                    latest.pop(key, None)
                    self._drop(kind, key)
                latest[key] = event
        for key, event in latest.items():
            if event.type != "DELETED":
                self._take(kind, key, event.object)
        return len(latest)

    def _take(self, kind: str, key: str, manifest: Manifest) -> None:
        thing = self._read(kind, manifest)
        if thing is None:
            return
        known = self._known[kind].get(key)
        self._known[kind][key] = thing
        is_own = kind == "Pod" and self._assumed.waits_for(key, thing.metadata.uid, "bound")
        self._news.add(key, known, thing, is_own=is_own)
        if (
            isinstance(thing, Pod)
            and thing.spec.resource_claims
            and thing.status.phase in ENDED_PHASES
        ):
            self.undo_claims(thing.metadata.uid)  # the notice that they are free may arrive first
        if not self._show(kind, key, thing) and known is not None:
            self._known[kind][key] = known

    def _show(self, kind: str, key: str, thing: KubeObject) -> bool:
        """Show an object to the scheduler; return whether it did not refuse all of it.

        An object that cannot be applied affects only itself.  If it has damaged the tables (none
        is known to), everything known is loaded again, without it.
        """
        if self._torn:
            return True
        thought = self._assumed.show(key, thing)
        if isinstance(thing, Pod) and (group := self._agents.new_group(thing)) is not None:
            self._put(group)
        if (error := self._put(thought)) is None:
            return True
        self._skip(kind, key, thing.metadata.resource_version, error)
        rest = (
            partial_pod(thought) if isinstance(thought, Pod) and not is_partial(thought) else None
        )
        if self._ingest.torn:
            self._torn = True
            self._known[kind].pop(key)
            if rest is not None:
                self._known[kind][key] = rest
            return True
        return rest is not None and self._put(rest) is None

    def _put(self, thing: KubeObject) -> Exception | None:
        """Apply an object, or return its error."""
        try:
            if isinstance(thing, Pod) and is_partial(thing) and not thing.spec.node_name:
                self._ingest.delete(thing)
            else:
                self._ingest.upsert(thing)
        except Exception as error:  # noqa: BLE001  # whatever an object holds, others go on
            return error
        return None

    def _drop(self, kind: str, key: str) -> None:
        self._bad[kind].pop(key, None)
        known = self._known[kind].pop(key, None)
        if known is not None:
            self._news.add(key, known, None)
            if not self._torn:
                self._ingest.delete(known)
            if kind == "Pod":
                if (group := self._agents.forget(known)) is not None and not self._torn:
                    self._ingest.delete(group)
                self._assumed.forget(key)
                self.undo_claims(known.metadata.uid)
            elif kind == POD_GROUP:
                self._assumed.forget_group(key)

    def _relist(self, kind: str) -> int:
        items, self._since[kind] = self._cluster.list(kind)
        present = {_key(manifest) for manifest in items}
        missing = [key for key in {**self._known[kind], **self._bad[kind]} if key not in present]
        for key in missing:
            self._drop(kind, key)
        changed = [manifest for manifest in items if not self._is_known(kind, manifest)]
        for manifest in changed:
            self._take(kind, _key(manifest), manifest)
        return len(missing) + len(changed)

    def _is_known(self, kind: str, manifest: Manifest) -> bool:
        known = self._known[kind].get(_key(manifest))
        version = manifest["metadata"].get("resourceVersion")
        return known is not None and known.metadata.resource_version == version

    def _read_all(self, kind: str, manifests: Sequence[Manifest]) -> Iterable[KubeObject]:
        """Return the objects of a list; all are looked at one by one if one of them is bad."""
        if kind != "Node":  # of which some may be unwanted
            with suppress(Exception):
                return self._agents.read(_read_all(kind, manifests))
        read = (self._read(kind, manifest) for manifest in manifests)
        return [thing for thing in read if thing is not None]

    def _read(self, kind: str, manifest: Manifest) -> KubeObject | None:
        """Return an object, of a bad pod the readable part; None for a bad or unwanted one."""
        try:
            (thing,) = self._agents.read([_read(kind, manifest)])
        except Exception as error:  # noqa: BLE001  # whatever an object holds, others go on
            version = manifest["metadata"].get("resourceVersion", "")
            self._skip(kind, _key(manifest), version, error)
            return partial_pod(manifest) if kind == "Pod" else None
        if isinstance(thing, Node) and not self._wants_node(thing):
            self._drop(kind, key_of(thing))
            return None
        return thing

    def _skip(self, kind: str, key: str, version: str, error: Exception) -> None:
        """Remember a bad object, once for each version of it."""
        if self._bad[kind].get(key) != version:
            self._bad[kind][key] = version
            # a trace would hold on to the object and all that was around it
            self.problems.append(BadObject(kind, key, error.with_traceback(None)))
            self.skipped[kind] += 1


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])

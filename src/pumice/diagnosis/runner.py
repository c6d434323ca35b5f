"""One way to run a cluster on: the next cycles on a copy, decided by the code that decides.

`Replay` decides the next cycle without effect.  `Timeline` lets time pass: scheduler, controllers
and kubelet are those of `pumice up`, on a virtual clock, so what happens here is what would happen
there, to the second.
"""

import copy
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

from pumice.actions import ACTIONS
from pumice.api.annotations import GROUP_NAME, RUN_SECONDS, WALLTIME_SECONDS
from pumice.api.decisions import Decisions
from pumice.api.json_text import encode_parts
from pumice.api.kinds import (
    CONFIG_MAP,
    DEFAULT_QUEUE,
    ENDED_PHASES,
    POD_GROUP,
    QUEUE,
    RESOURCE_QUOTA,
    Manifest,
)
from pumice.api.objects import from_manifest
from pumice.api.run_times import run_time, seconds_of
from pumice.api.times import epoch, late_s, overdue_s
from pumice.binder import Binder
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cluster.base import Event
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.cluster.embedded.resource_claims import ResourceClaimUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.services import SERVICES, connect_extender
from pumice.controllers import all_controllers
from pumice.controllers.base import controller_of
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of, title_of
from pumice.diagnosis.control_plane import AT_ONCE, ControlPlane, NewClaims, no_keys, owner_of
from pumice.diagnosis.fixtures import Fixtures
from pumice.errors import InputError
from pumice.examine.job_outcome import JobOutcome, Watcher
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.session_state import ProcessMemory
from pumice.plugins.extender import SERVICE, AskedExtender, ExtenderClient, UnaskedExtender
from pumice.scheduler import Observer, Scheduler

UNKNOWN_VOTE: Final = (
    "the extender was not asked, so its vote is unknown (--ask-extender asks it about nodes)"
)
SOME_VOTES: Final = (
    "the extender was asked about nodes only; its vote on jobs and queues is unknown"
)
CYCLE_S: Final = 1.0
"""Seconds from one cycle to the next while something changes."""
MOST_UNTOLD_S: Final = 3600.0
"""How long plugins that do not state when time matters are asked each second."""
MOST_CYCLES: Final = 60
"""Cycles after which a cluster that does not come to rest is left."""
_TIMES: Final = (RUN_SECONDS, WALLTIME_SECONDS)
_EVICTING: Final = frozenset(name for name, each in ACTIONS.items() if each.evicts)


# The scheduler behind a question has no effect outside


class _Once:
    """A client that sends each distinct question once."""

    def __init__(self, client: ExtenderClient, known: dict[bytes, Mapping[str, Any]]) -> None:
        self._client = client
        self._known = known

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Mapping[str, Any]:
        question = verb.encode() + b" " + encode_parts(payload)
        if question not in self._known:
            self._known[question] = self._client.post(verb, payload, answer=answer)
        return self._known[question]


def question_scheduler(world: ClusterState) -> Scheduler:
    """Make the scheduler of a world."""
    extender = AskedExtender if world.asks_extender else UnaskedExtender

    def connect(url_prefix: str, timeout_s: float) -> object:
        client: Any = connect_extender(url_prefix, timeout_s)
        return _Once(client, world.extender_answers)

    return Scheduler(
        world.scheduler_conf,
        seed=world.seed,
        plugins={SERVICE: extender, **world.plugins},
        services={**SERVICES, SERVICE: connect},
    )


def question_memory(world: ClusterState) -> ProcessMemory:
    """Make the state between the cycles of a question; warnings are shared by all questions."""
    return ProcessMemory(warnings=world.warnings)


_ON_JOBS: Final = ("queueOverusedVerb", "jobEnqueueableVerb", "jobReadyVerb")
"""Votes of an extender that keep jobs waiting, and for which no question asks it."""


def is_open(world: ClusterState) -> bool:
    """Return whether an extender may decide otherwise: it has votes, and was not asked for them."""
    plugins = [entry for tier in world.scheduler_conf.tiers for entry in tier.plugins]
    unasked = _ON_JOBS if world.asks_extender else ("Verb",)
    votes = [
        key
        for entry in plugins
        if entry.name == SERVICE
        for key, value in entry.arguments.items()
        if key.endswith(unasked) and value
    ]
    return bool(votes) and SERVICE not in world.plugins


def unknown_votes(world: ClusterState) -> list[str]:
    """List the votes that the answer leaves out."""
    names = {entry.name for tier in world.scheduler_conf.tiers for entry in tier.plugins}
    if SERVICE not in names or SERVICE in world.plugins:
        return []
    return [SOME_VOTES if world.asks_extender else UNKNOWN_VOTE]


# The next cycle, without effect


class Replay:
    """One copy of a world; turning it into another one costs only what differs."""

    def __init__(self, world: ClusterState) -> None:
        self.world = world
        self._scheduler, self._process = question_scheduler(world), question_memory(world)
        self._ingest = Ingest(Snapshot())
        objects = world.admitted_objects
        self.objects: dict[tuple[str, str], Manifest] = {
            (one["kind"], key_of(one)): one for one in objects
        }
        self._snapshot = self._ingest.load(world.typed(objects))

    def become(self, world: ClusterState) -> None:
        """Turn into another world."""
        new = {(one["kind"], key_of(one)): one for one in world.admitted_objects}
        for name, old in self.objects.items():
            if name not in new:
                self._ingest.delete(from_manifest(old))
        for name, one in new.items():
            if self.objects.get(name) is not one:
                self._ingest.upsert(world.typed_one(one))
        self.objects, self.world = new, world
        self._scheduler, self._process = question_scheduler(world), question_memory(world)
        self._snapshot = self._ingest.settle()

    def decide(
        self, observer: Observer | None = None, *, idle: Container[str] = (), brief: bool = False
    ) -> Decisions:
        """Decide one cycle, without ``idle`` actions, and leave the world as it is.

        A ``brief`` answer leaves out states that stay as they are: an observer sees enough.
        """
        world = self.world
        usage = usage_at(world, world.now)
        decisions = self._scheduler.decide(
            self._snapshot,
            world.now,
            usage,
            only_changes=brief,
            statuses=not brief,
            observer=observer,
            process=self._process,
            idle=idle,
        )
        world.failures.update(dict.fromkeys(decisions.failures))
        return decisions


def usage_at(world: ClusterState, now: float) -> dict[str, dict[str, float]]:
    """Return the measured use of nodes, as if measured now."""
    return {name: {**one, "metricsTime": now} for name, one in world.node_usage.items()}


# What happened to pods while time passed


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A pod that was bound, evicted, ended or is gone."""

    at: float
    pod: str
    job: str
    """The name of its job: the Volcano job if there is one, else the pod group."""
    node: str = ""
    whom: str = ""
    """The pod or pod group that it was evicted for; empty: for none."""
    whose: str = ""
    """The name of the job that it was evicted for."""
    action: str = ""


@dataclass
class Story:
    """The events so far, in order."""

    binds: list[Moved] = field(default_factory=list)
    evictions: list[Moved] = field(default_factory=list)
    ends: list[Moved] = field(default_factory=list)
    gone: list[Moved] = field(default_factory=list)
    instants: list[tuple[float, str]] = field(default_factory=list)
    """Times at which time alone changed an answer, and the plugin."""


# A cluster in which time passes


_Watcher = TypeVar("_Watcher", bound=Watcher)


def _control_plane(world: ClusterState, objects: Fixtures) -> ControlPlane:
    """Make the cluster of a world with its controllers and quotas."""
    made = ControlPlane(world, objects, all_controllers(keys=no_keys, groups_bound=False))
    if world.of_kind(RESOURCE_QUOTA):
        made.limit_pods(PodQuotas(made.cluster, demands=world.knows_defaults))
    return made


class Timeline:
    """One copy of a world in which time passes."""

    def __init__(
        self,
        world: ClusterState,
        *,
        default_s: float | None = None,
        endless: Collection[str] = (),
        frees_stuck: bool = False,
        as_stated: bool = False,
        requeues: bool = False,
    ) -> None:
        """Make one; ``default_s`` is the run time of pods that state none, None: for ever.

        The pods of jobs in ``endless`` do not end, whatever they state.  Pods that should have gone
        by now stay, unless it ``frees_stuck`` ones.  ``as_stated``: the first cycle sees what
        quotas and budgets state, as the next one of the cluster does; else they are counted first.
        Evicted pods that no controller makes again are gone, unless it ``requeues`` them.

        Raises:
            InputError: a time that a pod runs cannot be read.
        """
        objects = Fixtures([*world.creatable_objects, *world.jobs.values()], started=True)
        check_run_times(objects.timed)
        self.start, self._world = world.now, world
        self._default_s, self._endless = default_s, endless
        if endless:
            objects.edit(self._unending)
        self.plane = _control_plane(world, objects)
        self.cluster = self.plane.cluster
        self._groups = self.cluster.tables.table(POD_GROUP)
        self._may_end = default_s is not None or any(map(_tells_others, objects.timed))
        self.stuck: dict[str, float] = {}
        """Pods that should have gone by now and stay, each with the seconds since then."""
        self._stuck_uids: set[str] = set()
        self.overdue_s: dict[str, float] = {}
        """Pods that end at once, as they ran longer than expected, each with the seconds."""
        self._kubelet = Kubelet(self.cluster, durations=self._lasts, keeps=self._is_stuck)
        self._claims, self._new_claims = ResourceClaimUpkeep(self.cluster), NewClaims(self.cluster)
        self._scheduler, self._process = question_scheduler(world), question_memory(world)
        self._informer = self._follow()
        self._learned = self._scheduler.learned_seconds(self._informer.snapshot)
        self._may_end |= self._learned is not None
        self._binder, self._ended = self._writer(), set[str]()
        self._leaving: set[str] = set()
        """Pods on nodes that are being deleted and go."""
        for place in objects.leaving:
            self._note_first(self.cluster.get("Pod", *place), frees_stuck=frees_stuck)
        self._as_stated, self._requeues = as_stated, requeues
        self._changed, self._is_begun = True, False
        self._counted_endless = -1, 0
        """The version of the cluster, and how many of its pods have no known end."""
        self.story = Story()
        self.next_at: float | None = world.now
        """When the next cycle is due; None once nothing is left to happen."""
        self.cluster.listeners.append(self._on_event)

    def _writer(self) -> Binder:
        """Make what carries decisions out; nobody reads conditions and events here."""
        known, waits = self._informer.known, self._waits
        return Binder(
            self.cluster, known=known, waits=waits, write_conditions=False, write_events=False
        )

    def _follow(self) -> Informer:
        """Make what shows the cluster to the scheduler."""
        nodes: Any = _NodesInOrder(self.cluster, self._world.of_kind("Node"))
        snapshot, stated = Snapshot(), self._world.of_kind(CONFIG_MAP)
        snapshot.kind(CONFIG_MAP).update(  # none of them is watched
            (key, self._world.typed_one(one)) for key, one in stated.items()
        )
        return Informer(nodes, Ingest(snapshot))

    @property
    def now(self) -> float:
        """The time, in seconds since 1970."""
        return self.plane.clock.now()

    def again(self, endless: Collection[str] = (), *, frees_stuck: bool = False) -> "Timeline":
        """Return the same world from its beginning, in which some jobs do not end."""
        return Timeline(
            self._world,
            default_s=self._default_s,
            endless=endless,
            frees_stuck=frees_stuck,
            as_stated=self._as_stated,
            requeues=self._requeues,
        )

    def _unending(self, one: Manifest) -> Manifest:
        """Return an object of a job that is not to end without its run time."""
        if self._title(one) not in self._endless:
            return one
        bare = _without_run_time(one)
        if one["kind"] != "Job":
            return bare
        tasks = [
            {**task, "template": _without_run_time(task.get("template") or {})}
            for task in one["spec"].get("tasks") or ()
        ]
        return {**bare, "spec": {**one["spec"], "tasks": tasks}}

    def _title(self, one: Manifest) -> str:
        if one["kind"] == "Job":
            return key_of(one)
        if one["kind"] == "PodGroup":
            return title_of(one)
        return owner_of(one) or self._world.title(group_of(one)) if one["kind"] == "Pod" else ""

    # Time

    def step(self, observer: Observer | None = None) -> Decisions:
        """Move on to the next cycle, decide it and carry it out."""
        if self.next_at is not None and self.next_at > self.now:
            self.plane.clock.advance_to(self.next_at)
        before = self.cluster.version
        self._settle(counts=self._is_begun or not self._as_stated)
        self._is_begun = True
        watching = _Asking(observer or Observer())
        decisions = self._cycle(watching)
        self._settle()
        self._plan(watching, changed=self.cluster.version != before)
        return decisions

    def look(self, observer: Observer | None = None) -> Decisions:
        """Decide a cycle at this moment and leave everything as it is."""
        self._informer.sync()
        return self._scheduler.decide(
            self._informer.snapshot,
            self.now,
            usage_at(self._world, self.now),
            observer=observer,
            process=copy.deepcopy(self._process),
        )

    def _settle(self, *, counts: bool = True) -> None:
        """Run controllers and kubelet until only the scheduler can change something."""
        while True:
            before = self.cluster.version
            self._kubelet.sync()
            if counts:
                self.plane.upkeep.sync()
            self._claims.sync()
            self._new_claims.sync()
            self.cluster.collect_garbage()
            self.plane.controllers.run_until_quiet()
            self.plane.replacements.make()
            if self.cluster.version == before:
                return

    def _cycle(self, observer: Observer) -> Decisions:
        self._informer.sync()
        snapshot = self._informer.snapshot
        decisions = self._scheduler.decide(
            snapshot,
            self.now,
            usage_at(self._world, self.now),
            only_changes=True,
            observer=observer,
            process=self._process,
        )
        self._world.failures.update(dict.fromkeys(decisions.failures))
        self._note(decisions)
        self._binder.apply(decisions)
        return decisions

    def _plan(self, asked: "_Asking", *, changed: bool) -> None:
        """Set the time of the next cycle; plugins are notified of the time until then."""
        now, timer = self.now, self.plane.clock.next_at()
        self._changed = changed
        if changed:
            self.next_at = now + CYCLE_S
            return
        instant = self._instant(asked.instants)
        times = [each for each in (timer, instant) if each is not None]
        self.next_at = min(times, default=None)
        if self.next_at is None:
            return
        if instant is not None and instant <= self.next_at:
            names = [name for name, at in asked.instants if at <= self.next_at]
            self.story.instants += [(self.next_at, name) for name in names]
        for plugin in asked.plugins:
            plugin.passed_over(self._process.plugins, self.next_at)

    def _instant(self, instants: Sequence[tuple[str, float]]) -> float | None:
        """Return when time alone may change an answer, rounded to the time of a cycle."""
        if not instants:
            return None
        at = min(at for _, at in instants)
        if at <= self.now + CYCLE_S and self.now - self.start > MOST_UNTOLD_S:
            return None
        whole = self.now + CYCLE_S * -(-(at - self.now) // CYCLE_S)
        return max(whole, self.now + CYCLE_S)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing changed in the last cycle and no pod is terminating."""
        return not self._changed and not self._leaving

    # Pods

    def ident(self, pod: Manifest) -> str:
        """Name a pod by what stays when it is created again."""
        owner = controller_of(pod)
        if owner is not None and owner.get("kind") in AT_ONCE:
            return f"{pod['metadata'].get('namespace')}/{owner.get('name')}"
        return key_of(pod)

    def pods(self) -> list[Manifest]:
        """Return all pods as they are now."""
        return self.cluster.list("Pod")[0]

    @property
    def beginning(self) -> ClusterState:
        """The world as it was before any time passed."""
        return self._world

    def job_of(self, pod: Manifest) -> str:
        """Name the job of a pod: the Volcano job if there is one, else what its group is for."""
        return owner_of(pod) or self._group_title(group_of(pod))

    def _group_title(self, key: str) -> str:
        space, _, name = key.partition("/")
        group = self.cluster.peek(POD_GROUP, space, name)
        return key if group is None else title_of(group)

    def endless(self) -> int:
        """Count the pods that run and have no known end."""
        version, _ = self._counted_endless
        if version != self.cluster.version:
            found = sum(self._is_endless(pod) for pod in self.pods())
            self._counted_endless = self.cluster.version, found
        return self._counted_endless[1]

    def _is_endless(self, pod: Manifest) -> bool:
        if (pod.get("status") or {}).get("phase") != "Running" or not pod["spec"].get("nodeName"):
            return False
        marks = pod["metadata"].get("annotations") or {}
        return RUN_SECONDS not in marks and self._lasts(pod) is None

    def _lasts(self, pod: Manifest) -> float | None:
        """Return the expected run time of a pod that states no estimate itself."""
        if not self._may_end:
            return None
        meta = pod["metadata"]
        marks = meta.get("annotations") or {}
        name = marks.get(GROUP_NAME)
        if name and self._endless and self.job_of(pod) in self._endless:
            return None
        group = self._groups.find(meta["namespace"], name) if name else None
        deadline = pod["spec"].get("activeDeadlineSeconds")
        stated = run_time([marks, *self._marks_around(group)], deadline).expected
        if stated is None and group is not None and self._learned is not None:
            stated = self._learned_of(key_of(group))
        return self._default_s if stated is None and name else stated

    def _learned_of(self, group: str) -> float | None:
        """Return how long jobs like this one ran."""
        self._informer.sync()  # the kubelet may be asked before a cycle has seen the job
        row = self._informer.snapshot.jobs.row_of.get(group)
        return None if row is None or self._learned is None else self._learned(row)

    def _overdue_s(self, pod: Manifest) -> float:
        """Return by how much a pod ran longer than expected when the world was seen."""
        since = pod["status"].get("startTime")
        if not since:
            return 0.0
        stated = seconds_of((pod["metadata"].get("annotations") or {}).get(RUN_SECONDS))
        lasts = self._lasts(pod) if stated is None else stated
        return 0.0 if lasts is None else late_s(epoch(since) + lasts, self.start)

    def _marks_around(self, group: Manifest | None) -> Iterator[Mapping[str, Any] | None]:
        """Yield the annotations of a pod group and of its queue."""
        if group is None:
            return
        yield group["metadata"].get("annotations")
        name = (group.get("spec") or {}).get("queue") or DEFAULT_QUEUE
        queue = self.cluster.tables.table(QUEUE).find("", name)
        yield None if queue is None else queue["metadata"].get("annotations")

    def _waits(self, pod: str) -> bool:
        tasks = self._informer.snapshot.tasks
        row = tasks.row_of.get(pod)
        return row is not None and int(tasks.status[row]) == Status.PENDING

    def _note(self, decisions: Decisions) -> None:
        for pod, node in decisions.binds.items():
            self.story.binds.append(self._moved(pod, node=node))
        for pod in decisions.evictions:
            whom, action = decisions.beneficiaries.get(pod, ""), decisions.evicted_by.get(pod, "")
            self.story.evictions.append(self._moved(pod, whom=whom, action=action))
        if self._requeues:
            self.plane.replacements.requeued.update(decisions.evictions)

    def _moved(self, pod: str, *, node: str = "", whom: str = "", action: str = "") -> Moved:
        space, _, name = pod.partition("/")
        found = self.cluster.peek("Pod", space, name)
        job = "" if found is None else self.job_of(found)
        whose = self._named(whom) if whom else ""
        return Moved(
            at=self.now, pod=pod, job=job, node=node, whom=whom, whose=whose, action=action
        )

    def _named(self, whom: str) -> str:
        """Name the job of a pod or pod group."""
        space, _, name = whom.partition("/")
        pod = self.cluster.peek("Pod", space, name)
        if pod is not None:
            return self.job_of(pod)
        return self._group_title(whom)

    def group(self, job: str) -> str:
        """Return the key of the pod group that a pod group of the world is here."""
        title = self._world.title(job)
        for one in self.cluster.list(POD_GROUP)[0]:
            if title_of(one) == title:
                return key_of(one)
        return job

    def _on_event(self, kind: str, event: Event) -> None:
        self._may_end |= kind in (POD_GROUP, "Pod") and _tells_others(event.object)
        if kind != "Pod":
            return
        pod, uid = event.object, event.object["metadata"]["uid"]
        self._leaving.discard(key_of(pod))
        if event.type != "DELETED":
            self._note_leaving(pod)
        over = (pod.get("status") or {}).get("phase") in ENDED_PHASES
        if over and uid not in self._ended:
            self._ended.add(uid)
            self.story.ends.append(self._of(pod))
            if self.now == self.start:
                self.overdue_s[key_of(pod)] = self._overdue_s(pod)
        elif event.type == "DELETED" and not over and pod["spec"].get("nodeName"):
            self.story.gone.append(self._of(pod))

    def _note_first(self, pod: Manifest, *, frees_stuck: bool) -> None:
        """Note a pod that is being deleted in the beginning."""
        meta = pod["metadata"]
        if (pod.get("status") or {}).get("phase") in ENDED_PHASES:
            self._ended.add(meta["uid"])
        late = overdue_s(meta.get("deletionTimestamp"), self.start)
        if late and pod["spec"].get("nodeName") and not frees_stuck:
            self.stuck[key_of(pod)] = late
            self._stuck_uids.add(meta["uid"])
        self._note_leaving(pod)

    def _note_leaving(self, pod: Manifest) -> None:
        leaves = pod["metadata"].get("deletionTimestamp") and pod["spec"].get("nodeName")
        if leaves and not self._is_stuck(pod):
            self._leaving.add(key_of(pod))

    def _is_stuck(self, pod: Manifest) -> bool:
        return pod["metadata"]["uid"] in self._stuck_uids

    def _of(self, pod: Manifest) -> Moved:
        node = str(pod["spec"].get("nodeName") or "")
        return Moved(at=self.now, pod=key_of(pod), job=self.job_of(pod), node=node)


class _NodesInOrder:
    """A cluster that lists nodes as a world has them: among equal nodes a place is drawn."""

    def __init__(self, cluster: EmbeddedCluster, names: Iterable[str]) -> None:
        self._cluster = cluster
        self._place = {name: place for place, name in enumerate(names)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def list(self, kind: str, *arguments: Any) -> tuple[list[Manifest], str]:
        """List objects, nodes in the order of the world and new ones at the end."""
        found, version = self._cluster.list(kind, *arguments)
        if kind == "Node":
            last = len(self._place)
            found = sorted(found, key=lambda one: self._place.get(one["metadata"]["name"], last))
        return found, version


class _Asking(Observer):
    """Asks plugins at the end of a cycle when time alone would change their answers."""

    def __init__(self, inner: Observer) -> None:
        self._inner = inner
        self.instants: list[tuple[str, float]] = []
        self.plugins: list[Plugin] = []

    def opened(self, ssn: Session) -> None:
        self._inner.opened(ssn)

    def action_done(self, action: str) -> None:
        self._inner.action_done(action)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        self._inner.decided(ssn, decisions)
        self.plugins = [each for each in ssn.hooks.plugins if each.simulator is not None]
        if decisions.binds or decisions.evictions:
            return  # something changes, so there is a cycle in a second
        changes = [(each.name, each.changes_at(ssn)) for each in self.plugins]
        self.instants = [(name, at) for name, at in changes if at is not None]


def _without_run_time(one: Manifest) -> Manifest:
    meta = one.get("metadata") or {}
    marks = {name: x for name, x in (meta.get("annotations") or {}).items() if name not in _TIMES}
    return {**one, "metadata": {**meta, "annotations": marks}}


def check_run_times(stated: Sequence[Manifest]) -> None:
    """Check the run times that pods and pod groups state.

    Raises:
        InputError: one is not a number of seconds.
    """
    for kind in ("Pod", "PodGroup", "Queue"):
        for one in (one for one in stated if one["kind"] == kind):
            marks = one["metadata"].get("annotations") or {}
            for name in _TIMES:
                text = marks.get(name)
                if text is not None and seconds_of(text) is None:
                    field_name = f"{key_of(one)}: annotation {name}"
                    raise InputError(wanted="a number of seconds", found=text, field=field_name)


def _tells_others(one: Manifest) -> bool:
    """Return whether an object states a run time that is not merely the estimate of a pod."""
    marks = one["metadata"].get("annotations") or {}
    if one["kind"] != "Pod":
        return any(name in marks for name in _TIMES)
    has_deadline = (one.get("spec") or {}).get("activeDeadlineSeconds") is not None
    return WALLTIME_SECONDS in marks or has_deadline


# Cycles until a job starts


def look_once(
    replay: Replay, job: str, *, beside: int | None = None, evicting: bool = True
) -> Watcher:
    """Run the next cycle of a replay; ``beside``: as if only so many other jobs waited."""
    watcher = Watcher(job, 1, beside=beside)
    replay.decide(watcher, idle=() if evicting else _EVICTING, brief=True)
    return watcher


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """What happened in a world while it was played."""

    outcome: JobOutcome
    """The cycle that started the job in question, else the last one."""
    in_s: float
    """Seconds until that cycle."""
    story: Story

    @property
    def started(self) -> bool:
        """Whether the job in question started."""
        return self.outcome.started

    @cached_property
    def bound(self) -> Mapping[str, frozenset[str]]:
        """Job to its pods that got a node."""
        return _by_job(self.story.binds)

    @cached_property
    def evicted(self) -> Mapping[str, frozenset[str]]:
        """Job to its pods that were evicted."""
        return _by_job(self.story.evictions)


def played(world: ClusterState, job: str, *, until_started: bool = False) -> TrialResult:
    """Play until the cluster is at rest, as what-if does, or only until the job starts.

    Time does not pass until other jobs end: only leaving pods are waited for.
    """
    outcome, in_s, story = Watcher(job, 1).outcome, 0.0, Story()
    for timeline, watcher in cycles(world, job, MOST_CYCLES, Watcher):
        story = timeline.story
        if not outcome.started:
            outcome, in_s = watcher.outcome, timeline.now - timeline.start
        if timeline.is_at_rest or (until_started and outcome.started):
            break
    return TrialResult(outcome=outcome, in_s=in_s, story=story)


def cycles(
    world: ClusterState, job: str, most: int, watch: Callable[[str, int], _Watcher]
) -> Iterator[tuple[Timeline, _Watcher]]:
    """Play cycle after cycle, each with an observer of the job, while anything is to come."""
    timeline = Timeline(world)
    for cycle in range(1, most + 1):
        watcher = watch(timeline.group(job), cycle)
        timeline.step(watcher)
        yield timeline, watcher
        if timeline.next_at is None:
            return


def look(
    world: ClusterState, job: str, most: int, watch: Callable[[str, int], _Watcher]
) -> _Watcher:
    """Play cycles; return the observer of the one that started the job, else of the last."""
    for _, watcher in cycles(world, job, most, watch):
        if watcher.outcome.started:
            break
    return watcher


def _by_job(moves: Iterable[Moved]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for move in moves:
        found.setdefault(move.job, set()).add(move.pod)
    return {job: frozenset(pods) for job, pods in found.items()}

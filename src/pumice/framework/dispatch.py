"""The hooks of a session: bound to its plugins tier by tier, guarded, and combined.

Each is guarded, so that a plugin that raises affects only the object in question.  ``Policy`` is
what actions ask: the combined answers, by row.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

import numpy as np

from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Shape
from pumice.core.views import Job, Queue, Task
from pumice.errors import BadHookResultError
from pumice.framework.columns import Jobs, Queues
from pumice.framework.hook_answers import Answer, Check, Failures, Subject
from pumice.framework.hooks import TIER_INTERSECT, Ask, in_unison
from pumice.framework.plugin import HOOKS, Plugin, implements
from pumice.framework.refusals import Failed, Verdict, Vote
from pumice.framework.topology.domains import Domain, SubGroup, Topology

P = ParamSpec("P")
A = TypeVar("A")


@dataclass(frozen=True)
class Enabled:
    """A plugin of the session with the switches of its configuration entry."""

    plugin: Plugin
    switches: dict[str, bool]
    is_strict: bool = False
    """Whether its tier names those victims only that all of its plugins permit."""

    def offers(self, hook: str) -> bool:
        """Return whether a hook is implemented and enabled."""
        return hook in self.offered()

    def offered(self) -> dict[str, Check | None]:
        """Return the enabled hooks, with the checks of their answers."""
        cls: Any = type(self.plugin)
        return _offered(cls, tuple(self.switches.items()), hierarchy=self.plugin.hierarchy)


Offer = tuple[Plugin, dict[str, Check | None]]
"""A plugin and the hooks that it offers, with the checks of their answers."""
Bound = tuple[Plugin, Ask]
"""A plugin and a hook of it, guarded."""
BoundTiers = list[list[Bound]]
Method = Callable[..., Any]
"""A hook, named by the method of the base class that declares it: ``Plugin.job_ready``."""


class Hooks:
    """The hooks of one session; ``hooks[Plugin.job_ready](job)`` asks all plugins as one."""

    def __init__(self, tiers: Iterable[Iterable[Enabled]]) -> None:
        entries = [list(tier) for tier in tiers]
        self.plugins = [entry.plugin for tier in entries for entry in tier]
        for position, entry in enumerate(entry for tier in entries for entry in tier):
            entry.plugin.position = position
            entry.plugin.hierarchy = entry.switches.get("enableHierarchy", False)
        self.failures = Failures()
        self._offered = [[(entry.plugin, entry.offered()) for entry in tier] for tier in entries]
        self._strict = [any(entry.is_strict for entry in tier) for tier in entries]
        self._tiers: dict[str, BoundTiers] = {}
        self._combined: dict[str, Ask] = {}

    def tiers(self, hook: Method) -> BoundTiers:
        """Return the plugins that answer a hook, tier by tier; other tiers are left out.

        Bound when first asked for: most cycles ask few hooks.
        """
        name = hook.__name__
        found = self._tiers.get(name)
        if found is None:
            asked = self._offered[: self._last_asked(name)]
            found = self._tiers[name] = [*filter(None, map(self._binder(name), asked))]
        return found

    def asks(self, hook: Method) -> list[list[Ask]]:
        """Return the questions of a hook, tier by tier; a strict tier is asked as one."""
        found = [[ask for _, ask in tier] for tier in self.tiers(hook)]
        if self.ends_strictly(hook):
            found[-1] = [in_unison(found[-1])]
        return found

    def ends_strictly(self, hook: Method) -> bool:
        """Return whether the last tier that is asked has a say only as a whole."""
        return self._last_asked(hook.__name__) is not None

    def _last_asked(self, hook: str) -> int | None:
        """Return how many tiers are asked about victims if a strict one has the last word."""
        for number, (tier, is_strict) in enumerate(zip(self._offered, self._strict, strict=True)):
            if is_strict and any(hook in offered for _, offered in tier):
                return number + 1 if HOOKS[hook].rule is TIER_INTERSECT else None
        return None

    def _binder(self, hook: str) -> Callable[[list[Offer]], list[Bound]]:
        answer = HOOKS[hook].answer
        return lambda tier: [
            (plugin, guard(plugin, hook, self.failures, offered[hook], answer))
            for plugin, offered in tier
            if hook in offered
        ]

    def bound(self, hook: Method) -> list[Bound]:
        """Return the plugins that answer a hook, in order."""
        return [bound for tier in self.tiers(hook) for bound in tier]

    def __getitem__(self, hook: Callable[Concatenate[Plugin, P], A]) -> Callable[P, A]:
        """Return the combined question, where the rule yields what a plugin answers."""
        return self._combine(hook)

    def votes(self, hook: Callable[Concatenate[Plugin, P], Vote]) -> Callable[P, Verdict]:
        """Return the combined question of a vote."""
        return self._combine(hook)

    def sums(
        self, hook: Callable[Concatenate[Plugin, P], Column | None]
    ) -> Callable[Concatenate[Column | float, P], Column | float]:
        """Return the function that adds the scores of all plugins to the first ones."""
        return self._combine(hook)

    def keys(
        self, hook: Callable[Concatenate[Plugin, P], Column]
    ) -> Callable[P, list[list[float]]]:
        """Return the function that lists the keys of some rows, in the order of comparison."""
        return self._combine(hook)

    def chosen(self, hook: Callable[Concatenate[Plugin, P], Mask | None]) -> Callable[P, list[int]]:
        """Return the function that lists the candidates that plugins offer."""
        return self._combine(hook)

    def ask_aside(self, plugin: Plugin, method: Method) -> Ask:
        """Return a method of a plugin that is not a hook, guarded; None if it fails."""
        return guard(plugin, method.__name__, self.failures)

    def _combine(self, hook: Method) -> Ask:
        name = hook.__name__
        combined = self._combined.get(name)
        if combined is None:
            asks = self.asks(hook)
            row = HOOKS[name]
            combined = self._combined[name] = row.rule.bind(asks) if asks else row.unanswered
        return combined


@lru_cache(maxsize=256)
def _offered(
    cls: Any, switches: tuple[tuple[str, bool], ...], *, hierarchy: bool
) -> dict[str, Check | None]:
    """Return the enabled hooks that a plugin implements, with the checks of their answers.

    This is the same cycle after cycle.
    """
    on = dict(switches)
    ours = cls.__module__.startswith("pumice.plugins.")
    return {
        name: hook.answer.cheap if ours else hook.answer.check
        for name, hook in HOOKS.items()
        if implements(cls, name)
        and on.get(hook.switch, True)
        and cls.hierarchy_hooks.get(name, hierarchy) == hierarchy
    }


_ANY_ANSWER = Answer()


def guard(
    plugin: Plugin,
    name: str,
    failures: Failures,
    check: Check | None = None,
    answer: Answer = _ANY_ANSWER,
) -> Ask:
    """Wrap a method of a plugin: an exception is recorded, and a safe answer is returned instead.

    Of several rows only those that fail get the safe answer.
    """
    method = getattr(plugin, name)

    def call(*args: Any) -> Any:
        try:
            found = method(*args)
            if check is not None:
                wanted = check(found, args, plugin.reasons)
                if wanted:
                    raise BadHookResultError(plugin.name, name, wanted=wanted, found=found)  # noqa: TRY301
            return found  # noqa: TRY300
        except Exception as error:  # noqa: BLE001  # a plugin is foreign code
            failed = Failed(plugin.name, name, plugin.reasons)
            spared = _spare(partial(_ask_strictly, plugin, method, check), args, answer, failed)
            found, subjects = spared or (answer.safe(args, failed), _askers(args))
            failures.note(plugin.name, name, error, subjects, method)
            return found

    return call


def _ask_strictly(plugin: Plugin, method: Method, check: Check | None, *args: Any) -> Any:
    found = method(*args)
    wanted = check(found, args, plugin.reasons) if check is not None else ""
    if wanted:
        raise BadHookResultError(plugin.name, method.__name__, wanted=wanted, found=found)
    return found


def _spare(
    ask: Ask, args: tuple[Any, ...], answer: Answer, failed: Failed
) -> tuple[Any, list[Subject]] | None:
    """Answer for the rows that a hook does not fail for, None if it does for all of them."""
    if answer.spare is None:
        return None
    try:
        spared = answer.spare(ask, args, failed)
    except Exception:  # noqa: BLE001  # in this company even good rows fail
        return None
    if spared is None:
        return None
    found, rows = spared
    kind: Literal["task", "job"] = "job" if isinstance(args[0], Jobs) else "task"
    return found, [] if isinstance(args[0], Queues) else [(kind, row) for row in rows]


def _askers(args: tuple[Any, ...]) -> list[Subject]:
    """Return the subjects of a question, where those are a task, a job or a shape."""
    first = args[0] if args else None
    if isinstance(first, Task):
        return [("task", first.row)]
    if isinstance(first, Shape):
        return [("shape", first.id)]
    if isinstance(first, Job):
        return [("job", first.row)]
    return [("job", first.job)] if isinstance(first, SubGroup) else []


class _Combined(Generic[P, A]):
    """A combined hook of a policy, bound on first use: most cycles use few."""

    def __init__(self, bind: Callable[[Hooks], Callable[P, A]]) -> None:
        self._bind = bind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, policy: "Policy", owner: type) -> Callable[P, A]:
        ask = vars(policy)[self._name] = self._bind(policy.hooks)
        return ask


def _aside_of_first(hooks: Hooks) -> Ask:
    """Return the question for many domains at once, to the plugin whose levels count."""
    for plugin, _ in hooks.bound(Plugin.domain_levels):
        return hooks.ask_aside(plugin, Plugin.levels_within)
    return lambda *_: None


class Policy:
    """The combined hooks that actions, placing and evictions ask."""

    _job_valid = _Combined(lambda hooks: hooks[Plugin.job_valid])
    _job_enqueueable = _Combined(lambda hooks: hooks.votes(Plugin.job_enqueueable))
    _on_enqueued = _Combined(lambda hooks: hooks[Plugin.on_enqueued])
    _job_ready = _Combined(lambda hooks: hooks[Plugin.job_ready])
    _may_try = _Combined(lambda hooks: hooks[Plugin.may_try])
    _may_start = _Combined(lambda hooks: hooks[Plugin.may_start])
    _on_blocked = _Combined(lambda hooks: hooks[Plugin.on_blocked])
    _job_pipelined = _Combined(lambda hooks: hooks.votes(Plugin.job_pipelined))
    _job_starving = _Combined(lambda hooks: hooks[Plugin.job_starving])
    _subgroup_ready = _Combined(lambda hooks: hooks[Plugin.subgroup_ready])
    _subgroup_pipelined = _Combined(lambda hooks: hooks.votes(Plugin.subgroup_pipelined))
    _order_subgroups = _Combined(lambda hooks: hooks[Plugin.order_subgroups])
    _overused = _Combined(lambda hooks: hooks[Plugin.overused])
    _allocatable = _Combined(lambda hooks: hooks[Plugin.allocatable])
    _preemptive = _Combined(lambda hooks: hooks[Plugin.preemptive])
    _domain_levels = _Combined(lambda hooks: hooks[Plugin.domain_levels])
    _levels_within = _Combined(_aside_of_first)
    _score_domains = _Combined(lambda hooks: hooks.sums(Plugin.score_domains))
    _rank_domains = _Combined(lambda hooks: hooks.sums(Plugin.rank_domains))
    filter_task = _Combined(lambda hooks: hooks[Plugin.filter_task])
    preemptable = _Combined(lambda hooks: hooks.chosen(Plugin.preemptable))
    reclaimable = _Combined(lambda hooks: hooks.chosen(Plugin.reclaimable))
    gang_evictable = _Combined(lambda hooks: hooks.chosen(Plugin.gang_evictable))
    victims = _Combined(lambda hooks: hooks[Plugin.victims])
    on_place = _Combined(lambda hooks: hooks[Plugin.on_place])
    on_evict = _Combined(lambda hooks: hooks[Plugin.on_evict])

    def __init__(self, snapshot: Snapshot, topology: Topology, hooks: Hooks) -> None:
        self._snapshot = snapshot
        self._topology = topology
        self.hooks = hooks

    @cached_property
    def follows_placements(self) -> bool:
        """Whether some plugin must be notified of each placement by itself."""
        return bool(self.hooks.tiers(Plugin.on_place))

    @cached_property
    def imaginable(self) -> bool:
        """Whether queues and readiness may be asked about sums that do not exist yet.

        A plugin agrees to it by ``foreseeable``; any other reads what it likes of the session.
        """
        asked = (Plugin.allocatable, Plugin.job_ready, Plugin.subgroup_ready)
        return all(plugin.foreseeable for hook in asked for plugin, _ in self.hooks.bound(hook))

    # Jobs

    def job_valid(self, job: int) -> str:
        """Return why a job cannot be scheduled at all; empty if it can."""
        return self._job_valid(Job(self._snapshot, job))

    def job_enqueueable(self, job: int) -> Verdict:
        """Return whether a pending job is admitted to its queue."""
        if any(plugin.admits_all for plugin in self.hooks.plugins):
            return True
        return self._job_enqueueable(Job(self._snapshot, job))

    def job_enqueued(self, job: int) -> None:
        """Notify plugins that a job was admitted."""
        self._on_enqueued(Job(self._snapshot, job))

    def job_ready(self, job: int) -> Verdict:
        """Return whether a job has enough to start."""
        return self._job_ready(Job(self._snapshot, job))

    def job_pipelined(self, job: int) -> Verdict:
        """Return whether a job keeps its place while it waits."""
        return self._job_pipelined(Job(self._snapshot, job))

    def may_try(self, job: int) -> Verdict:
        """Return whether a job that is next is placed at all."""
        return self._may_try(Job(self._snapshot, job))

    def may_start(self, job: int) -> Verdict:
        """Return whether a job that has its places may start."""
        return self._may_start(Job(self._snapshot, job))

    def job_blocked(self, job: int) -> None:
        """Notify plugins that a job had its turn and does not start."""
        self._on_blocked(Job(self._snapshot, job))

    def job_starving(self, job: int) -> bool:
        """Return whether a job may evict others."""
        return self._job_starving(Job(self._snapshot, job))

    # Parts of a job

    def subgroup_ready(self, part: SubGroup) -> Verdict:
        """Return whether a part of a job has enough to start; without parts, ask for the job."""
        if not self._topology.has_policy(part.job):
            return self.job_ready(part.job)
        return self._subgroup_ready(part)

    def subgroup_pipelined(self, part: SubGroup) -> Verdict:
        """Return whether a part of a job keeps its place while it waits."""
        if not self._topology.has_policy(part.job):
            return self.job_pipelined(part.job)
        return self._subgroup_pipelined(part)

    def compare_subgroups(self, left: SubGroup, right: SubGroup) -> int:
        """Compare parts of a job: negative if the left one goes first."""
        order = self._order_subgroups(left, right)
        if order:
            return -1 if order < 0 else 1
        ties = [(part.match_index, part.id) for part in (left, right)]
        return (ties[0] > ties[1]) - (ties[0] < ties[1])

    # Queues

    def overused(self, queue: int) -> bool:
        """Return whether a queue must wait."""
        return self._overused(Queue(self._snapshot, queue))

    def allocatable(self, queue: int, task: Task) -> Verdict:
        """Return whether a queue may take one more task."""
        return self._allocatable(Queue(self._snapshot, queue), task)

    @contextmanager
    def queue_limits_lifted(self) -> Iterator[None]:
        """Lift all queue limits temporarily, for questions about nodes alone."""
        asked, own = self._allocatable, vars(self)
        own["_allocatable"] = lambda *_: True
        try:
            yield
        finally:
            own["_allocatable"] = asked

    def preemptive(self, queue: int, request: Column) -> Verdict:
        """Return whether a queue may reclaim for a request (R,)."""
        return self._preemptive(Queue(self._snapshot, queue), request)

    # Network domains

    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List the network domains to try for a job or a part of it, level by level."""
        if not self.hooks.tiers(Plugin.domain_levels):
            return [[within]]
        return self._domain_levels(part, within, purpose)

    def levels_within(
        self, part: SubGroup, domains: list[Domain], purpose: str
    ) -> list[list[list[Domain]]]:
        """List the domains to try for a part of a job within each of some domains."""
        if purpose == "allocate":
            found: list[list[list[Domain]]] | None = self._levels_within(part, domains)
            if found is not None:
                return found
        return [self.domain_levels(part, domain, purpose) for domain in domains]

    def score_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains for a part of a job, each by itself."""
        return np.asarray(self._score_domains(np.zeros(len(domains)), part, domains))

    def rank_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains further that have the same best score."""
        return np.asarray(self._rank_domains(np.zeros(len(domains)), part, domains))

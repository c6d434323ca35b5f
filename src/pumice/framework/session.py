"""One scheduling cycle: its state, its input, and what plugins see and leave in it."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Final

import msgspec
import numpy as np

from pumice.api.decisions import ClaimChoice, PromiseChange
from pumice.api.devices import ClaimReservation
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job, Nodes
from pumice.errors import PluginError
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.fit_errors import gang_message
from pumice.framework.future.promises import Promise
from pumice.framework.job_placement import JobMemory
from pumice.framework.placement.equal_jobs import EqualJobs
from pumice.framework.placing import MakePlacing, Placing
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_session import FutureView
from pumice.framework.queue_limits.limits import QueueLimits
from pumice.framework.queue_limits.reservations import QueueGates
from pumice.framework.session_state import SessionState, StandingWarnings
from pumice.framework.statement import Statement

_ABOUT_TURNS: Final = (Plugin.may_try, Plugin.may_start, Plugin.on_blocked)
_FUTURE: Final = "pumice.framework.future.future"
_PROMISE_CHANGES: Final = "pumice.framework.future.promise_changes"
PROMISES: Final = "reservation"
"""The key in the process memory of promised starts: the name of the plugin that makes them."""
_OPENED_GATES: Final = "queue gates"
"""The key in the process memory of pods whose gates the last session opened."""


class NewPlaces(msgspec.Struct, frozen=True):
    """Nodes for pods of a job that were evicted to start elsewhere."""

    nodes: tuple[str, ...]
    since: float
    until: float


class Session(SessionState):
    """What actions work on; plugins see the part that ``PluginSession`` describes."""

    def __init__(
        self,
        snapshot: Snapshot,
        tiers: Iterable[Iterable[Enabled]],
        *,
        now: float = 0.0,
        seed: int = 0,
        actions: tuple[str, ...] = (),
        action_arguments: Mapping[str, Any] | None = None,
        memory: dict[str, Any] | None = None,
        started_at: float | None = None,
        warnings: StandingWarnings | None = None,
        node_usage: Mapping[str, Any] | None = None,
        metrics: Mapping[str, str] | None = None,
        services: Mapping[str, Any] | None = None,
        hooks: Hooks | None = None,
        placing: MakePlacing = Placing,
        queue_gates: bool = False,
        plugged: Callable[[str, str], None] | None = None,
    ) -> None:
        self.tiers = [list(tier) for tier in tiers]
        self.memory = {} if memory is None else memory
        opened = self.memory.setdefault(_OPENED_GATES, set())
        gates = QueueGates(snapshot, opened, enabled=queue_gates)
        super().__init__(snapshot, self.tiers, seed=seed, hooks=hooks, placing=placing, gates=gates)
        self.now = now
        self.actions = actions
        self.action_arguments = action_arguments or {}
        self.started_at = started_at
        self._warnings = warnings or StandingWarnings()
        self.node_usage = node_usage or {}
        self.metrics = metrics or {}
        self.services = services or {}
        self.total = snapshot.total()
        self.failures = self.hooks.failures
        self.plugins = self.hooks.plugins
        self.job_memory: dict[int, JobMemory] = {}
        """Memory of allocate about jobs, also if it runs again."""
        self.unschedulable: set[int] = set()
        """Jobs whose condition in this cycle is that they cannot start."""
        self.scheduled: Mask = np.zeros(len(snapshot.jobs.phase), dtype=bool)
        """Jobs whose condition in this cycle is that they can."""
        self.conditions: dict[int, tuple[str, str, str, str]] = {}
        """Job to a new condition: type, status, reason, message."""
        self.promises: dict[int, Promise] = {}
        """Job to the start that it is promised."""
        self._plugged = plugged
        self._called = ""
        """The plugin that is being opened or closed."""
        self._column_owners: dict[str, str] = {}
        self._call_all(Plugin.on_open, "OnSessionOpen")
        self._show_new_places()

    @property
    def new_places(self) -> dict[str, NewPlaces]:
        """Jobs whose pods were evicted to start elsewhere, and where; kept between cycles."""
        found: dict[str, NewPlaces] = self.memory.setdefault("new places", {})
        return found

    def _show_new_places(self) -> None:
        """Nominate pods that start again to the nodes that were found for them."""
        if "new places" not in self.memory:
            return
        jobs, tasks, nodes = self.snapshot.jobs, self.snapshot.tasks, self.snapshot.nodes
        for key, places in list(self.new_places.items()):
            if not places.since <= self.now < places.until:
                del self.new_places[key]
            elif key in jobs.row_of:
                rows = [nodes.row_of[name] for name in places.nodes if name in nodes.row_of]
                for row, node in zip(self.pending_tasks(jobs.row_of[key]), rows, strict=False):
                    self.journal.save(tasks.nominated, row)
                    tasks.nominated[row] = node

    def has_plugin(self, name: str) -> bool:
        """Return whether a plugin is configured."""
        return any(plugin.name == name for plugin in self.plugins)

    @cached_property
    def future(self) -> FutureView:
        """The cluster ahead of now; its module is imported when it is first asked."""
        made: FutureView = import_module(_FUTURE).Future(self, self.now)
        return made

    @cached_property
    def promised_places(self) -> dict[int, list[int]]:
        """Job (row) to the nodes of its pods by the plan, where it is promised a start; at close.

        Jobs behind one that would find no place are not among them.
        """
        known = [each for each in self.promises.values() if math.isfinite(each.start)]
        while known:
            found = self.future.places(known)
            if not isinstance(found, Promise):
                return found
            known = [each for each in known if each.start < found.start]
        return {}

    def promise_changes(self) -> dict[str, PromiseChange]:
        """Return how promised starts differ from those that pod groups state, at close."""
        if PROMISES not in self.memory:
            return {}
        found: dict[str, PromiseChange] = import_module(_PROMISE_CHANGES).promise_changes(self)
        return found

    def refused_ahead(self, jobs: list[int]) -> list[int]:
        """Leave out those of some jobs of which a plugin is sure that they do not start."""
        bound = (pair for hook in _ABOUT_TURNS for pair in self.hooks.bound(hook))
        judges = {plugin.name: plugin for plugin, _ in bound}
        if self.known_refused is None or len(judges) != 1 or not jobs:
            return []
        known, queues = self.known_refused.copy(), self.snapshot.jobs.queue
        for queue in {*queues[jobs].tolist()}:
            if self.policy.overused(queue):  # its jobs wait for that, not for nodes
                known[queues == queue] = False
        (judge,) = judges.values()
        found: list[int] = self.hooks.ask_aside(judge, Plugin.refused_ahead)(jobs, known) or []
        self.left_out[found] = True
        if found:
            self.considered = ~self.left_out
        return found

    def statement(self) -> Statement:
        """Open a statement."""
        return Statement(self)

    @cached_property
    def equal_jobs(self) -> EqualJobs:
        """The jobs that are refused together; found on first use, after admission."""
        return EqualJobs(self)

    def close(self) -> None:
        """Call plugins with the outcome."""
        self.fit_errors = {}
        self._call_all(Plugin.on_close, "OnSessionClose")

    def _call_all(self, hook: Callable[..., None], when: str) -> None:
        """Call each plugin in turn, and report its time."""
        plugged = self._plugged
        if plugged is not None:
            plugged("", when)
        for plugin, ask in self.hooks.bound(hook):
            self._called = plugin.name
            ask(self)
            if plugged is not None:
                plugged(plugin.name, when)
        self._called = ""

    def queue_limits(self) -> QueueLimits | None:
        """Return the limits of queues, stated ones before parts by weight; None without any."""
        limits = [plugin.queue_limits(self.snapshot, self.total) for plugin in self.plugins]
        known = [each for each in limits if each is not None]
        return min(known, key=lambda each: each.follows_demand, default=None)

    # The side of plugins, see PluginSession

    def nodes(self) -> Nodes:
        """Return all nodes."""
        return Nodes(self.snapshot)

    def others_order_queues(self, plugin: str) -> bool:
        """Return whether plugins other than this one put queues in order."""
        hooks = (Plugin.order_queues, Plugin.compare_queues)
        return any(each.name != plugin for hook in hooks for each, _ in self.hooks.bound(hook))

    def sort_jobs(self, rows: Iterable[int]) -> list[int]:
        """Order jobs once."""
        return self.ordering.sort_jobs(rows)

    def sort_tasks(self, rows: Iterable[int]) -> list[int]:
        """Order tasks once."""
        return self.ordering.sort_tasks(rows)

    def add_node_column(self, name: str, fill: float = 0.0) -> Column:
        """Add a node column of a plugin's own (N,); it is written through ``journal.save``."""
        called, owner = self._called, self._column_owners.get(name)
        of_all = hasattr(self.snapshot.nodes, name) or hasattr(Nodes, name)
        if of_all or (owner is not None and (owner != called or not called)):
            whose = "the table of nodes" if of_all else f"plugin '{owner}'"
            problem = f"{whose} has a column '{name}' already; name yours after your plugin"
            raise PluginError(called, "on_open", problem)
        self._column_owners[name] = called
        column = self.snapshot.plugin_columns[name] = np.full(self.snapshot.nodes.n, fill)
        return column

    def annotate(self, task: int, annotations: Mapping[str, str]) -> None:
        """Write annotations on a task's pod when it is bound; a rollback undoes it."""
        self.intents.annotate(task, annotations)

    def drop_annotations(self, task: int) -> None:
        """Write nothing on a task's pod in the end."""
        self.intents.drop_annotations(task)

    def lock_node(self, task: int, lock: str) -> None:
        """Lock the node of a task by an annotation before it is bound; a rollback undoes it."""
        self.intents.lock_node(task, lock)

    def reserve_claims(self, task: int, claims: tuple[ClaimReservation, ...]) -> None:
        """Reserve resource claims for a task before it is bound; a rollback undoes it."""
        self.intents.reserve(task, claims)

    def release_claims(self, claims: Iterable[str]) -> None:
        """Free the devices of claims that only pods without a node have."""
        self.intents.released_claims += claims

    def bind_volumes(self, task: int, choices: Sequence[ClaimChoice], timeout_s: float) -> None:
        """Bind a task's pod only once its claims are bound."""
        self.intents.bind_volumes(task, choices, timeout_s)

    def store(self, config_map: str, data: Mapping[str, str]) -> None:
        """Write data into a ConfigMap after the cycle."""
        self.journal.put(self.intents.stored, config_map, dict(data))

    def mark_scheduled(self, jobs: Mask) -> None:
        """Set the condition Scheduled on the marked jobs (n,)."""
        self.scheduled |= jobs

    def mark_unschedulable(self, job: int, reason: str, message: str) -> None:
        """Set the condition Unschedulable on a job."""
        self.unschedulable.add(job)
        self.conditions[job] = ("Unschedulable", "True", reason, message)

    def warn(self, plugin: str, texts: Collection[str]) -> None:
        """Log what a plugin finds wrong with the cluster; each text once while it lasts."""
        self._warnings.report(plugin, texts)

    def gang_message(self, job: Job) -> str:
        """Return how many tasks a gang lacks, and why, in Volcano's words."""
        return gang_message(self, job)


class Action(msgspec.Struct, frozen=True):
    """A step of a session."""

    place: str
    """Module and function, with a colon between them."""
    evicts: bool = False
    """Whether it makes room by evicting."""

    def load(self) -> Callable[[Session], None]:
        """Import the module, unless that is done already, and return the function."""
        return _loaded(self.place)

    def __call__(self, ssn: Session) -> None:
        """Decide through a session."""
        self.load()(ssn)


@cache
def _loaded(place: str) -> Callable[[Session], None]:
    module, _, name = place.partition(":")
    found: Callable[[Session], None] = getattr(import_module(module), name)
    return found

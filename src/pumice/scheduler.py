"""One scheduling cycle: open a session over a snapshot, run the actions, return the decisions."""

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pumice.actions import ACTIONS
from pumice.api.conf import Problem, SchedulerConf
from pumice.api.decisions import Decisions
from pumice.api.meta import KubeObject
from pumice.api.objects import from_manifest, in_namespace
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.errors import ConfError
from pumice.framework.conf_check import check_conf, errors_of
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.placing import MakePlacing, Placing
from pumice.framework.plugin import Plugin
from pumice.framework.registry import KeptPlugins, build_tiers, known_plugins
from pumice.framework.session import Session, close_session
from pumice.framework.session_state import ProcessMemory
from pumice.plugins import builtin_plugins
from pumice.standing.refused_jobs import Standing

log = logging.getLogger(__name__)


class Observer:
    """Observes a cycle without changing it; it must copy what it keeps.

    A subclass overrides the calls it needs.
    """

    def synced(self) -> None:
        """Called by a live scheduler once the snapshot is up to date, before it decides.

        ``Scheduler.decide`` gets a snapshot that is, and does not call this.
        """

    def opened(self, ssn: Session) -> None:
        """Called before the first action."""

    def plugin_done(self, plugin: str, when: str) -> None:
        """Called after "OnSessionOpen" or "OnSessionClose" of a plugin; no name when they begin."""

    def action_done(self, action: str) -> None:
        """Called after an action."""

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Called once everything is decided, before the snapshot is restored."""


class Observers(Observer):
    """Several observers as one; each sees everything, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def synced(self) -> None:
        """Pass it on."""
        for each in self._observers:
            each.synced()

    def opened(self, ssn: Session) -> None:
        """Pass it on."""
        for each in self._observers:
            each.opened(ssn)

    def plugin_done(self, plugin: str, when: str) -> None:
        """Pass it on."""
        for each in self._observers:
            each.plugin_done(plugin, when)

    def action_done(self, action: str) -> None:
        """Pass it on."""
        for each in self._observers:
            each.action_done(action)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Pass it on."""
        for each in self._observers:
            each.decided(ssn, decisions)


class Scheduler:
    """Decides cycle after cycle under one configuration.

    ``services`` are external services for plugins; ``pumice.cluster.services`` has
    the real ones.
    """

    placing: MakePlacing = Placing
    """How nodes are evaluated; a subclass may do it differently, with the same answers."""

    def __init__(
        self,
        conf: SchedulerConf,
        *,
        seed: int = 0,
        plugins: Mapping[str, type[Plugin]] | None = None,
        services: Mapping[str, Any] | None = None,
    ) -> None:
        self.conf = conf
        self.seed = seed
        self.given_plugins = dict(plugins or {})
        """Plugins beside the built-in and installed ones."""
        self._plugins = known_plugins(builtin_plugins(), self.given_plugins)
        self._process = ProcessMemory()
        self._services = dict(services or {})
        self.warnings: list[Problem] = check_conf(conf, self._plugins, ACTIONS)
        """Settings of the configuration that have no effect, and odd ones."""
        if errors := errors_of(self.warnings):
            raise ConfError(errors)
        for action in conf.actions:
            ACTIONS[action].load()  # now, not in the first cycle
        self._kept = KeptPlugins.of(self.tiers())

    def log_warnings(self) -> None:
        """Log the settings without effect, for a scheduler that serves.

        Most schedulers only try a configuration, which others have reported.
        """
        for problem in self.warnings:
            log.warning("configuration: %s", problem)

    def tiers(self) -> list[list[Enabled]]:
        """Make a fresh instance of every configured plugin, tier by tier."""
        return build_tiers(self.conf, self._plugins)[0]

    @property
    def kept_hooks(self) -> Hooks | None:
        """The hooks of plugins that are made once; None if each cycle makes its own."""
        return None if self._kept is None else self._kept.hooks

    @cached_property
    def standing(self) -> Standing:
        """What stands of the last cycle, for callers that let it stand."""
        return Standing()

    def take_mismatches(self) -> int:
        """Return how often something that stood was decided otherwise since the last call."""
        found, self.standing.mismatches = self.standing.mismatches, 0
        return found

    @cached_property
    def config_maps(self) -> list[str]:
        """The ConfigMaps ("namespace/name") that plugins read."""
        return [
            name for tier in self.tiers() for each in tier for name in each.plugin.config_maps()
        ]

    def learned_seconds(self, snapshot: Snapshot) -> Callable[[int], float | None] | None:
        """Return what tells how long jobs (rows) run that state nothing, if a plugin learns it."""
        asked = (each.plugin.learned_seconds(snapshot) for tier in self.tiers() for each in tier)
        return next((each for each in asked if each is not None), None)

    def cycle(
        self,
        objects: Sequence[Mapping[str, Any]],
        now: float,
        node_usage: Mapping[str, Any] | None = None,
        observer: Observer | None = None,
    ) -> Decisions:
        """Decide one cycle on a cluster given as manifests."""
        things: list[KubeObject] = [from_manifest(in_namespace(manifest)) for manifest in objects]
        snapshot = Ingest(Snapshot()).load(things)
        if observer is None:  # a subclass may have one of its own
            return self.decide(snapshot, now, node_usage)
        return self.decide(snapshot, now, node_usage, observer=observer)

    def decide(
        self,
        snapshot: Snapshot,
        now: float,
        node_usage: Mapping[str, Any] | None = None,
        *,
        only_changes: bool = False,
        statuses: bool = True,
        observer: Observer | None = None,
        process: ProcessMemory | None = None,
        placing: MakePlacing | None = None,
        idle: Container[str] = (),
        repeats: bool = False,
    ) -> Decisions:
        """Decide one cycle on a snapshot and leave the snapshot as it was.

        With ``only_changes`` pod groups and pods whose status stays as it is are not reported,
        without ``statuses`` neither are the amounts of queues and why pods wait.  ``process`` is
        the state of earlier cycles, also under other configurations; ``placing`` is another
        evaluation of nodes, with the same answers; ``idle`` names actions of which it is known that
        they would do nothing.  With ``repeats`` what stands is not decided again: all of a cycle
        in which nothing has changed since the last one, which moved nothing, or about jobs that
        were refused.  All changes must come by way of ``Ingest``.
        """
        process = process or self._process
        watching = observer or Observer()
        opened = None if observer is None else observer.plugin_done
        standing = self.standing if repeats and not self.config_maps else None
        refused = standing if only_changes and statuses else None
        asked = only_changes, statuses, id(process)
        try:
            with np.errstate(all="ignore"):
                while True:
                    session = self._open(
                        snapshot, now, node_usage, process=process, placing=placing, plugged=opened
                    )
                    watching.opened(session)
                    if only_changes and not statuses:
                        session.know_refused()
                    decisions = None if standing is None else standing.repeat(session, asked)
                    if decisions is not None or self._act(session, watching, idle, refused):
                        break
                    snapshot.release_session()
                if decisions is None:
                    decisions = close_session(session, only_changes=only_changes, statuses=statuses)
                    if standing is not None:
                        standing.keep(session, asked, decisions, jobs=refused is not None)
                watching.decided(session, decisions)
                return decisions
        finally:
            snapshot.release_session()  # also after a failure: the next cycle starts clean

    def _open(
        self,
        snapshot: Snapshot,
        now: float,
        node_usage: Mapping[str, Any] | None,
        *,
        process: ProcessMemory,
        placing: MakePlacing | None,
        plugged: Callable[[str, str], None] | None,
    ) -> Session:
        """Open a session over a snapshot."""
        kept = self._kept
        if kept is not None:
            kept.renew()
        return Session(
            snapshot,
            self.tiers() if kept is None else kept.tiers,
            now=now,
            seed=self.seed,
            actions=self.conf.actions,
            action_arguments=dict(self.conf.configurations),
            memory=process.plugins,
            started_at=process.started_at,
            warnings=process.warnings,
            node_usage=dict(node_usage or {}),
            metrics=self.conf.metrics,
            services=self._services,
            hooks=None if kept is None else kept.hooks,
            placing=placing or self.placing,
            queue_gates=self.conf.queue_gates,
            plugged=plugged,
        )

    def _act(
        self,
        session: Session,
        watching: Observer,
        idle: Container[str],
        refused: Standing | None,
    ) -> bool:
        """Run the actions in turn; False if jobs were left out of them that must be tried."""
        if refused is not None:
            refused.leave_out(session)
        for action in self.conf.actions:
            if refused is not None:
                refused.begin(session, action)
            if action not in idle:
                ACTIONS[action](session)
            watching.action_done(action)
            if refused is not None and not refused.end(session, action):
                return False
        return refused is None or refused.hold(session)

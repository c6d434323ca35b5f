"""fairshare: order jobs and queues by what their owners used, recent use counting more."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pumice.api.annotations import USER
from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import ConfigMap
from pumice.core.resources import Column, IndexArray, Mask, dominant_share, sum_by
from pumice.core.status import HOLDING, Status
from pumice.core.tables import NOWHERE
from pumice.errors import InputError
from pumice.framework.arguments import Duration, Fault, arg, arg_pattern
from pumice.framework.columns import Jobs, Queues
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import AccountShare, SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.fairshare.ledger import Account, Kind, Ledger

_KINDS: Final[tuple[Kind, ...]] = ("namespace", "user", "queue")
_DOMINANT: Final = "dominant"
_KEY: Final = "state"
"""Of the data of the ConfigMap."""
_LONGEST_NAME: Final = 128
"""A user of a longer name counts under its beginning: annotations may be of any length."""


@dataclass(kw_only=True)
class FairShare(Plugin, name="fairshare"):
    """Put jobs and queues first whose namespace, user or queue used less, by its weight.

    What jobs hold is charged to accounts as time passes, and fades by half in each half-life.
    The state is kept in a ConfigMap, so that a new process remembers.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()

    half_life: Duration = arg(
        "fairshare.halfLife",
        default=Duration(7 * 86400.0),
        above=0,
        doc="time after which an amount that was held counts half",
    )
    by: list[str] = arg(
        "fairshare.by",
        default_factory=lambda: ["namespace"],
        doc="what jobs are compared by: `namespace`, `user`, or one after the other",
    )
    user: str = arg(
        "fairshare.user",
        default=USER,
        doc="label, or else annotation, of a pod group that names its user",
    )
    resource: str = arg(
        "fairshare.resource",
        default=_DOMINANT,
        doc="the resource that counts, or `dominant`: the one with the largest share",
    )
    weights: dict[str, float] = arg_pattern(
        "fairshare.weight.*",
        above=0,
        doc="weight of an account, as in `fairshare.weight.user.ann`; 1, or that of the queue",
    )
    config_map: str = arg(
        "fairshare.configMap",
        default="volcano-system/pumice-fairshare",
        doc="namespace and name of the ConfigMap with the state",
    )
    write_period: Duration = arg(
        "fairshare.writePeriod",
        default=Duration(300.0),
        minimum=1.0,
        doc="shortest time between two writes of the state",
    )
    max_accounts: int = arg(
        "fairshare.maxAccounts",
        default=1000,
        minimum=1,
        maximum=3000,
        doc="how many accounts without jobs are remembered, those that used most",
    )

    def faults(self) -> Iterator[Fault]:
        """Report accounts and objects that cannot be."""
        if wrong := [each for each in self.by if each not in ("namespace", "user")]:
            yield Fault("fairshare.by", "`namespace`, `user` or both", wrong[0])
        for each in self.weights:
            kind, _, name = each.partition(".")
            if kind not in _KINDS or not name:
                wanted = "`namespace.`, `user.` or `queue.` and a name after `fairshare.weight.`"
                yield Fault(f"fairshare.weight.{each}", wanted, each)
        if self.config_map.count("/") != 1 or not all(self.config_map.split("/")):
            yield Fault("fairshare.configMap", "a namespace, a slash and a name", self.config_map)

    def config_maps(self) -> Iterable[str]:
        """Return the ConfigMap with the state."""
        return [self.config_map] if self.config_map.count("/") == 1 else []

    def on_open(self, ssn: PluginSession) -> None:
        """Charge what was held since the last cycle, and compute the order."""
        self._ssn = ssn
        self._rows = np.array(ssn.jobs(), dtype=np.intp)
        self._ledger, since = self._recall()
        self._assign()
        in_use = set(np.concatenate([*self._of_jobs.values(), self._of_queues]).tolist())
        if len(self._ledger.column_of) > self.max_accounts + len(in_use):
            self._ledger.prune(self._compute_shares(), in_use, self.max_accounts)
            self._assign()
        self._ledger.advance(ssn.now, self.half_life)
        if since is not None:
            self._charge_running(since)
        self._shares, self._weights = self._compute_shares(), self._compute_weights()
        keys, jobs, queues = self._shares / self._weights, ssn.snapshot.jobs, ssn.snapshot.queues
        compared: list[Kind] = [kind for kind in _KINDS if kind != "queue" and kind in self.by]
        compared.sort(key=self.by.index)
        self._job_keys = np.zeros((max(1, len(compared)), jobs.n))
        for place, kind in enumerate(compared):
            self._job_keys[place, self._rows] = keys[self._of_jobs[kind]]
        self._queue_keys = np.zeros(queues.n)
        self._queue_keys[np.flatnonzero(queues.listed)] = keys[self._of_queues]

    def _recall(self) -> tuple[Ledger, float | None]:
        """Return the ledger, and since when running pods are not charged if it was just read.

        A state in the cluster that is newer than the own one was written by another scheduler,
        which was the leader meanwhile.
        """
        ssn = self._ssn
        known: Ledger | None = ssn.memory.get(self.name)
        stored = ssn.snapshot.kind(CONFIG_MAP).get(self.config_map)
        if known is not None and stored is known.source:
            return known, None
        found = self._read(stored)
        if known is not None and (found is None or found.at <= known.at):
            known.source = stored
            return known, None
        found = ssn.memory[self.name] = found or Ledger()
        found.source = stored
        return found, found.at

    def _read(self, stored: object) -> Ledger | None:
        if not isinstance(stored, ConfigMap) or not stored.data.get(_KEY):
            return None
        try:
            return Ledger.read(stored.data[_KEY], self._ssn.snapshot.resources)
        except InputError as error:
            hint = "delete it; usage is counted from what runs now"
            self._ssn.warn(self.name, [f"ConfigMap {self.config_map}: {error}; {hint}"])
            return None

    def _assign(self) -> None:
        """Find the accounts of jobs and queues."""
        snapshot, ledger = self._ssn.snapshot, self._ledger
        jobs, queues, n = snapshot.jobs, snapshot.queues, len(snapshot.resources)
        spaces = [snapshot.namespaces.names[each] for each in jobs.namespace[self._rows].tolist()]
        groups: list[Any] = [jobs.groups[row] for row in self._rows.tolist()]
        users = [self._user_of(*each) for each in zip(groups, spaces, strict=True)]
        names: dict[Kind, list[str]] = {"namespace": spaces, "user": users}
        names["queue"] = [queues.names[row] for row in jobs.queue[self._rows].tolist()]
        self._of_jobs = {
            kind: ledger.columns([Account(kind, each) for each in some], n)
            for kind, some in names.items()
        }
        listed = np.flatnonzero(queues.listed).tolist()
        self._of_queues = ledger.columns([Account("queue", queues.names[i]) for i in listed], n)

    def _user_of(self, group: Any, namespace: str) -> str:
        """Return who a job is charged to; without a name, all such jobs of its namespace."""
        meta = group.metadata
        name: str = meta.labels.get(self.user) or meta.annotations.get(self.user, "")
        return name[:_LONGEST_NAME] or f"{namespace}/"

    def _charge_running(self, since: float) -> None:
        """Charge running pods for the time of which no cycle is known."""
        tasks, ledger = self._ssn.snapshot.tasks, self._ledger
        rows, jobs = self._tasks(np.isin(tasks.status, HOLDING) & ~np.isnan(tasks.started))
        held_s = np.maximum(0.0, ledger.at - np.maximum(tasks.started[rows], since))
        amounts = self._ssn.snapshot.requests(rows) * (1.0 - 0.5 ** (held_s / self.half_life))
        ledger.usage = ledger.usage + self._by_account(amounts, jobs)

    def _tasks(self, which: Mask) -> tuple[IndexArray, IndexArray]:
        """Return the rows of some tasks, and the places of their jobs among those of the cycle."""
        tasks = self._ssn.snapshot.tasks
        places = np.full(self._ssn.snapshot.jobs.n, NOWHERE)
        places[self._rows] = np.arange(len(self._rows))
        rows = np.flatnonzero(which & (tasks.job != NOWHERE))
        rows = rows[places[tasks.job[rows]] != NOWHERE]
        return rows, places[tasks.job[rows]]

    def _by_account(self, amounts: Column, jobs: IndexArray) -> Column:
        """Add up amounts (R, k) of jobs by account (R, A); each job has one of every kind."""
        n = len(self._ledger.column_of)
        each = [sum_by(amounts, columns[jobs], n) for columns in self._of_jobs.values()]
        return np.asarray(np.sum(each, axis=0))

    def _compute_shares(self) -> Column:
        """Return what part of the cluster each account held on average (A,)."""
        ledger, total = self._ledger, self._ssn.total[:, None]
        if self.resource == _DOMINANT:
            return dominant_share(ledger.usage, total)
        row = self._ssn.snapshot.resources.row(self.resource)
        if row is None:
            self._ssn.warn(self.name, [f"no node has {self.resource}, fairshare.resource"])
            return np.zeros(len(ledger.column_of))
        return dominant_share(ledger.usage[[row]], total[[row]])

    def _compute_weights(self) -> Column:
        """Return the weights of accounts (A,)."""
        queues = self._ssn.snapshot.queues
        weights = np.ones(len(self._ledger.column_of))
        weights[self._of_queues] = np.maximum(1, queues.weight[np.flatnonzero(queues.listed)])
        for text, weight in self.weights.items():
            kind, _, name = text.partition(".")
            column = self._ledger.column_of.get(Account(kind, name))  # type: ignore[arg-type]
            if column is not None:
                weights[column] = weight
        return weights

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs first whose namespace or user used less, by its weight."""
        return self._job_keys[:, jobs.rows]

    def order_queues(self, queues: Queues) -> Column:
        """Put queues first that used less, by their weight."""
        return self._queue_keys[queues.rows]

    def on_close(self, ssn: PluginSession) -> None:
        """Note what is held from now on, and write the state if it is time."""
        ledger = self._ledger
        held = ssn.snapshot.jobs.allocated[:, self._rows]
        ledger.held = self._by_account(held, np.arange(len(self._rows)))
        # places that are kept for a gang which does not start yet are given back now
        kept, of_jobs = self._tasks(ssn.snapshot.tasks.status == int(Status.ALLOCATED))
        if len(kept):
            ledger.held = ledger.held - self._by_account(ssn.snapshot.requests(kept), of_jobs)
        if not 0 <= ssn.now - ledger.written < self.write_period and self.config_map:
            ledger.written = ssn.now
            text = ledger.to_text(ssn.snapshot.resources, np.argsort(-self._shares).tolist())
            ssn.store(self.config_map, {_KEY: text})

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when a live scheduler writes the state; an order that changes makes no room."""
        return None if ssn.started_at is None else self._ledger.written + self.write_period

    def passed_over(self, memory: dict[str, Any], now: float) -> None:
        """Charge what is held."""
        ledger: Ledger | None = memory.get(self.name)
        if ledger is not None and now > ledger.at:
            ledger.advance(now, self.half_life)

    def fair_shares(self) -> list[AccountShare]:
        """Return the accounts as this cycle compared them."""
        names, resources = self._ssn.snapshot.resources.names, self._ledger.usage
        found = []
        for kind in _KINDS:
            mine = {a.name: at for a, at in self._ledger.column_of.items() if a.kind == kind}
            columns = [*mine.values()]
            all_used, all_weights = self._shares[columns].sum(), self._weights[columns].sum()
            for name, at in sorted(mine.items()):
                share, weight = float(self._shares[at]), float(self._weights[at])
                of_all = share / all_used if all_used > 0 else 0.0
                usage = dict(zip(names, resources[:, at].tolist(), strict=True))
                factor = float(0.5 ** (of_all * all_weights / weight))
                found.append(AccountShare(kind, name, weight, usage, share, factor))
        return found

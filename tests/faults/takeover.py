"""Short runs in which a standby takes over about the end of an outage, and others use the gap."""

from typing import Final

from pumice.api.annotations import RUN_SECONDS
from pumice.api.kinds import LEASE
from pumice.cluster.base import Event
from pumice.testing import pod
from tests.faults.upheaval import Stage, Upheaval
from tests.faults.workload import CPUS, OUTAGE_AT_S, cpus_of

_OVER: Final = frozenset({"Succeeded", "Failed"})
_EXPIRES_S: Final = (4.5, 8.0)
"""How long an outage lasts in which the lease runs out, after 7 s without a renewal."""


class Takeover(Upheaval):
    """One outage; the leader goes before, during or after it; pods of others take its room."""

    def __init__(self, stage: Stage, seed: int) -> None:
        super().__init__(stage, seed)
        self.fails_over = True
        chance = self._failovers
        self._end = chance.one_of(
            [self._crash_leader, self._freeze_leader, self._stop_leader, self._stop_leader, None]
        )
        at = OUTAGE_AT_S + chance.between(-2.0, 1.0)
        away_s = chance.between(*_EXPIRES_S)
        if self._end == self._stop_leader:  # it releases the lease, if the server is there
            away_s = chance.between(0.5, 5.0)
            at = OUTAGE_AT_S + away_s + chance.between(-0.5, 3.0)
        self._away_s, self._ends_at_s = away_s, at
        self._holder = ""
        self._others = 0
        self.lasts_s = OUTAGE_AT_S + away_s + 4.0

    def schedule(self) -> None:
        chance, clock, end = self._failovers, self._stage.clock, self._end
        begins = clock.now() + OUTAGE_AT_S
        clock.call_at(begins, lambda: self._note("server away", self._away(self._away_s)))
        if end is not None:  # else the outage outlasts the lease
            clock.call_at(clock.now() + self._ends_at_s, lambda: self._note("failover", end()))
        for _ in range(chance.integer(0, 3)):
            clock.call_at(begins + chance.between(0.0, self._away_s), self._use_gap)
        self._stage.cluster.listeners.append(self._hear)

    def _hear(self, kind: str, event: Event) -> None:
        """Have others act in the moment in which a lease changes hands."""
        holder = (event.object.get("spec") or {}).get("holderIdentity") if kind == LEASE else ""
        if not holder or event.object["metadata"]["name"] != "volcano":
            return
        if self._holder not in ("", holder):
            for _ in range(self._failovers.integer(1, 3)):
                self._stage.clock.call_at(self._stage.clock.now(), self._use_gap)
        self._holder = holder

    def _use_gap(self) -> None:
        """Bind a pod of another scheduler where there is room, or delete one."""
        if self._failovers.happens(0.3):
            self._note("pod deleted", self._delete_pod())
        elif self._leader() is None and not self._stage.server.writes_under_way:
            # else both may take the room, and rightly so
            self._note("bound by another", self._bind_other())

    def _bind_other(self) -> str:
        free = dict.fromkeys(self._nodes, CPUS)
        for each in self._stage.cluster.list("Pod")[0]:
            node = each["spec"].get("nodeName")
            if node and each["status"].get("phase") not in _OVER:
                free[node] -= cpus_of(each)
        node = self._failovers.one_of([*free])
        if not free[node]:
            return f"nothing on {node}"
        self._others += 1
        cpus = self._failovers.integer(1, free[node])
        marks = {RUN_SECONDS: str(self._failovers.integer(1, 4))}
        made = pod(f"other-{self._others}", cpu=cpus, node=node, annotations=marks)
        made["spec"]["schedulerName"] = "default-scheduler"
        made.pop("status", None)
        made["metadata"].pop("uid", None)
        self._stage.cluster.create(made)
        return f"{made['metadata']['name']} with {cpus} CPUs on {node}"

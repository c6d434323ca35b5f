"""One run: a cluster, the processes of Pumice on it, what goes wrong, and what must hold."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final

from pumice.api.kinds import COMMAND, JOB, LEASE, NODE_SHARD, POD_GROUP, QUEUE, Manifest, kind_of
from pumice.api.nodes import NodeShard
from pumice.cluster.base import Event
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.resource_claims import ResourceClaimUpkeep
from pumice.cluster.embedded.status_upkeep import StatusUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.embedded.volumes import VolumeController
from pumice.cluster.kube.paths import path_of
from pumice.errors import ClusterError, PumiceError
from pumice.serve.scheduler.default_queues import make_queues
from pumice.webhooks.embedded import EmbeddedAdmission
from tests.faults.api_server import ApiServer
from tests.faults.faults import Chance, Faults
from tests.faults.invariants import Invariants
from tests.faults.pumice_process import SHORT_LEASE, PumiceProcess, options, simulated
from tests.faults.simulation import SimulatedProcess, Simulation
from tests.faults.takeover import Takeover
from tests.faults.upheaval import LASTS_S, Upheaval
from tests.faults.workload import SCHEDULERS, Workload, conf_file, draw, draw_around_outage

REST_S: Final = 240.0
"""All must be at rest so long after the last fault."""
_UPKEEP_S: Final = 0.25
_QUIET_S: Final = 6.0
_CONVERGED_S: Final = 60.0
"""Time after the last fault within which all caches are complete and a process leads."""
_OVER: Final = frozenset({"Succeeded", "Failed"})
_COUNTED: Final = ("seconds", "requests", "faults", "kills", "takeovers", "binds", "evictions")
_ENDED: Final = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
_ADMITTED: Final = frozenset({"Pod", JOB, POD_GROUP, QUEUE})


@dataclass
class Outcome:
    """The result of a run."""

    seed: int
    problems: list[str] = field(default_factory=list)
    """Rules that were broken; none if all is well."""
    log: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Virtual time that it took."""
    requests: int = 0
    faults: int = 0
    kills: int = 0
    takeovers: int = 0
    binds: int = 0
    evictions: int = 0

    def add(self, other: "Outcome") -> None:
        """Count what another run did to this one's."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class World:
    """A cluster and all that happens to it under one seed."""

    def __init__(self, seed: int, rates: Mapping[str, float], *, takeover: bool) -> None:
        self.seed = seed
        self._is_short = takeover
        self._quiet_s = _QUIET_S / 2 if takeover else _QUIET_S
        self.log: list[str] = []
        self.simulation = Simulation()
        self.clock = self.simulation.clock
        self._started = self.clock.now()
        self.cluster = EmbeddedCluster(self.clock, seed=seed)
        self.kubelet = Kubelet(self.cluster, grace_s=1)
        self._upkeep = (
            self.kubelet,
            StatusUpkeep(self.cluster),
            ResourceClaimUpkeep(self.cluster),
            VolumeController(self.cluster),
        )
        self._version = -1
        self.faults = Faults(seed)
        self.faults.rates.update(rates)
        self.server = ApiServer(self.simulation, self.cluster, self.faults)
        self.simulation.network = self.server
        self.work: Workload = draw_around_outage(seed) if takeover else draw(seed)
        self.invariants = Invariants(self.cluster, self.work, self._elapsed, self._followed)
        self.processes: list[PumiceProcess] = []
        self.kills = 0
        self._chance = Chance(seed, 4)
        self._admission = EmbeddedAdmission(self.cluster)
        self._webhooks_up = True
        self._at_message: dict[SimulatedProcess, tuple[int, Callable[[], object]]] = {}
        self._lives = 0
        self._ended: set[str] = set()
        self._upheaval = (Takeover if takeover else Upheaval)(self, seed)
        self._wanted = self._replicas()
        self._rhythm = Chance(seed, 6).one_of(["event", "period"])
        self._looked_at = -1
        self._left = ""

    def run(self) -> Outcome:
        """Run everything, then check whether it comes to rest as it should."""
        self._set_up()
        with simulated(self.simulation):
            try:
                for parts in self._wanted:
                    self._start(parts)
                self._every(_UPKEEP_S, self._keep_up)
                self.simulation.run(self._started + self._upheaval.lasts_s, over=self._is_broken)
                self._calm_down()
                self.simulation.run(self.clock.now() + REST_S, over=self._is_over)
                if not self._is_broken():
                    self._rest()
            finally:
                for process in [*self.processes]:
                    process.host.kill()
        return self._outcome()

    def _outcome(self) -> Outcome:
        rules = self.invariants
        return Outcome(
            self.seed,
            rules.broken,
            self.log,
            self._elapsed(),
            self.server.requests,
            sum(self.faults.counts.values()),
            self.kills,
            sum(each["spec"].get("leaseTransitions", 0) for each in self.cluster.list(LEASE)[0]),
            rules.binds,
            len(rules.evictions),
        )

    def note(self, what: str) -> None:
        """Write down what happens."""
        self.log.append(f"{self._elapsed():8.3f}  {what}")

    def _elapsed(self) -> float:
        return self.clock.now() - self._started

    # The cluster

    def _set_up(self) -> None:
        cluster = self.cluster
        cluster.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}
        )
        make_queues(cluster)
        for manifest in (*self.work.nodes, *self.work.settings):
            cluster.create(manifest)
        if self._wanted == ["scheduler", "scheduler"]:
            self._open_queues()
        if self.work.is_divided:
            self._divide()
        cluster.admission = self._admit
        cluster.listeners.append(self._hear)
        self.server.on_request.append(self.invariants.hear_request)
        self.server.on_done.append(self.invariants.hear_done)
        self.server.on_step = self._count_message
        for at, manifests in self.work.arrivals:
            for manifest in manifests:
                self._create_at(self._started + at, manifest)
        self._upheaval.schedule()

    def _open_queues(self) -> None:
        """Open queues as the controllers would."""
        for each in self.cluster.list(QUEUE)[0]:
            self.cluster.merge_status(QUEUE, "", each["metadata"]["name"], {"state": "Open"})

    def _divide(self) -> None:
        """Assign each scheduler half of the nodes, other ones now and then, its own in the end."""
        chance, names = Chance(self.seed, 9), [each["metadata"]["name"] for each in self.work.nodes]
        for owner in SCHEDULERS:
            meta = {"kind": "NodeShard", "metadata": {"name": owner}, "spec": {}}
            self.cluster.create({"apiVersion": NodeShard.API_VERSION, **meta})
        own = names[: len(names) // 2]
        self._share(own)
        for _ in range(chance.integer(3, 12)):
            when = self._started + chance.between(1.0, LASTS_S - 1.0)
            self.clock.call_at(when, partial(self._share, chance.some(names, 0.5)))
        self.clock.call_at(self._started + LASTS_S, partial(self._share, own))

    def _share(self, first: list[str]) -> None:
        """Have some nodes belong to the first scheduler, and the others to the second."""
        rest = [each for node in self.work.nodes if (each := node["metadata"]["name"]) not in first]
        for owner, nodes in zip(SCHEDULERS, (first, rest), strict=True):
            self.cluster.patch(NODE_SHARD, "", owner, {"spec": {"nodesDesired": nodes}})
        self.note(f"{SCHEDULERS[0]} should use {', '.join(first)}")

    def _create_at(self, when: float, manifest: Manifest) -> None:
        self.clock.call_at(when, lambda: self._create(manifest))

    def _create(self, manifest: Manifest) -> None:
        """Create what a person wants, again and again if it is refused."""
        try:
            self.cluster.create(manifest)
        except PumiceError as error:
            self.note(f"refused: {error}")
            self._create_at(self.clock.now() + 2.0, manifest)

    def _admit(self, operation: str, manifest: Manifest, old: Manifest | None) -> Manifest:
        """Ask the webhooks, if they answer; of what they are not about nothing is checked."""
        kind = kind_of(manifest)
        if kind not in _ADMITTED or operation not in ("CREATE", "UPDATE"):
            return manifest
        if not self._webhooks_up:
            problem = 'failed calling webhook: Post "https://volcano-admission": refused'
            raise ClusterError(kind, "", manifest["metadata"].get("name", ""), problem)
        if old is not None and old.get("spec") == manifest.get("spec"):  # nothing to judge
            return manifest
        return self._admission(operation, manifest, old)

    def set_webhooks(self, *, up: bool) -> None:
        """Switch admission on or off."""
        self._webhooks_up = up

    def _hear(self, kind: str, event: Event) -> None:
        metadata = event.object["metadata"]
        if kind == "Pod":
            where = event.object["spec"].get("nodeName", "-")
            phase = event.object["status"].get("phase", "")
            leaving = " leaving" if metadata.get("deletionTimestamp") else ""
            self.note(f"{event.type} {metadata['name']} {phase} on {where}{leaving}")
            if event.type == "DELETED":
                self._recreate(metadata["name"])
            elif phase == "Succeeded":
                self._ended.add(metadata["name"])
        elif kind in (JOB, POD_GROUP):
            status = event.object.get("status") or {}
            phase = status.get("phase") or (status.get("state") or {}).get("phase", "")
            self.note(f"{event.type} {kind.partition('.')[0]} {metadata['name']} {phase}")

    def _recreate(self, name: str) -> None:
        """Make a pod of a bare gang again, as its creator would, unless all of it has ended."""
        gang = self.work.gangs.get(name.partition("-")[0], {})
        wanted = gang.get(name)
        if wanted is not None and not self._ended.issuperset(gang):
            self._ended.discard(name)
            self._create_at(self.clock.now() + self._chance.between(0.5, 3.0), wanted)

    def _keep_up(self) -> None:
        """Do what kubelets and the cluster's own controllers do."""
        if self.cluster.version != self._version:
            self._version = self.cluster.version
            for each in self._upkeep:
                each.sync()
            self.cluster.collect_garbage()

    def _every(self, seconds: float, action: Callable[[], object]) -> None:
        def again() -> None:
            action()
            self.clock.call_at(self.clock.now() + seconds, again)

        again()

    # Processes

    def _followed(self, name: str) -> Iterator[str]:
        """Return the paths of the kinds that a process follows."""
        for process in self.processes:
            if process.name == name and process.cluster is not None:
                yield from map(path_of, process.cluster._stores)

    def _replicas(self) -> list[str]:
        """Draw which processes run: one or two of everything, or each part by itself."""
        if self.work.is_divided:
            return ["scheduler", "second", "controllers"]
        if self._is_short:
            return ["all" if self.work.jobs else "scheduler"] * 2
        choices = [["all"], ["all", "all"], ["scheduler", "controllers"]]
        if self._upheaval.fails_over:
            choices = [["all", "all"], ["all", "all"], ["scheduler", "scheduler", "controllers"]]
        return [*self._chance.one_of(choices)]

    def _start(self, parts: str) -> None:
        self._lives += 1
        shard = {"scheduler": "volcano", "second": "second"}.get(parts, "")
        shard = shard if self.work.is_divided else ""
        lease = SHORT_LEASE if self._is_short else {}
        conf = conf_file(self.work.conf)
        given = options(conf, parts, 1.0, self._rhythm, shard=shard, lease=lease)
        name = f"{parts}-{self._lives}"
        chance = Chance(self.seed, 100 + self._lives)
        process = PumiceProcess(self.simulation, name, given, chance)
        process.on_end = lambda: self._restart(process, parts)
        process.on_cycle = self.invariants.hear_cycle
        self.processes.append(process)
        self.note(f"start {name}")

    def _restart(self, process: PumiceProcess, parts: str) -> None:
        """Start a process again that has ended, as a kubelet would."""
        killed = process.was_killed
        self.kills += killed
        self.note(f"{process.name} {'was killed' if killed else 'ended'}")
        if process.problem is not None:
            self.invariants.fail(f"{process.name} ended with {process.problem!r}")
        self.processes.remove(process)
        if self._is_short and self.processes:  # the other one does all, from here on
            return
        delay = 0.5 if self.faults.calm else self._chance.between(0.5, 4.0)
        self.clock.call_at(self.clock.now() + delay, lambda: self._start(parts))

    def at_message(self, process: PumiceProcess, steps: int, action: Callable[[], object]) -> None:
        """Do something to a process when it sends or gets its next message but so many."""
        self._at_message[process.host] = steps, action

    def _count_message(self, host: SimulatedProcess) -> None:
        found = self._at_message.get(host)
        if found is None:
            return
        left, action = found
        if left > 1:
            self._at_message[host] = left - 1, action
            return
        del self._at_message[host]
        self.simulation.next(action)

    # The end

    def _calm_down(self) -> None:
        self.note("calm")
        self.faults.calm = True
        self.server.go_away()  # late answers are reported to their waiters now
        self.server.come_back()
        self._webhooks_up = True
        self._at_message.clear()
        for process in self.processes:
            process.host.thaw()

    def _is_broken(self) -> bool:
        return bool(self.invariants.broken)

    def _is_over(self) -> bool:
        """Return whether all work has ended, or a rule is broken."""
        if self._is_broken():
            return True
        if self._looked_at != self.cluster.version:
            self._looked_at = self.cluster.version
            self._left = next(self._unfinished(), "")
        return not self._left and self.clock.now() > self._upheaval.lasts_until

    def _unfinished(self) -> Iterator[str]:
        """Describe what has yet to end."""
        for command in self.cluster.list(COMMAND)[0]:
            yield f"command {command['metadata']['name']} waits"
        for job in self.cluster.list(JOB)[0]:
            phase = ((job.get("status") or {}).get("state") or {}).get("phase")
            if phase not in _ENDED:
                yield f"job {job['metadata']['name']} is {phase}"
        there = set()
        for pod in self.cluster.list("Pod")[0]:
            there.add(pod["metadata"]["name"])
            phase = pod["status"].get("phase")
            if phase not in _OVER:
                yield f"pod {pod['metadata']['name']} is {phase}"
        for gang in self.work.gangs.values():
            for name in gang:
                if name not in there and name not in self._ended:
                    yield f"pod {name} is gone"

    def _is_led(self) -> bool:
        """Return whether every part of Pumice is at work somewhere, and follows the cluster."""
        leading = [each for each in self.processes if each.leads]
        at_work = {each.name.partition("-")[0] for each in leading} == {*self._wanted}
        return at_work and not any(each.troubles for each in self.processes)

    def _rest(self) -> None:
        """Check that everything is at rest, and that all agree on the state."""
        if not self._is_over():
            problem = f"not at rest {REST_S:g} s after the last fault: {self._left}"
            self.invariants.fail(problem)
            return
        self.note("at rest")
        deadline = self.clock.now() + _CONVERGED_S
        while self.clock.now() < deadline and not self._is_led():
            self.simulation.run(self.clock.now() + 1.0)
        # a request carried out long after its sender gave up may undo what is written already
        while True:
            self.simulation.run(self.clock.now() + self._quiet_s, over=self._is_broken)
            unsettled = self.invariants.unsettled(self.processes)
            if not unsettled or self._is_broken() or self.clock.now() >= deadline:
                break
        self.invariants.check_rest(unsettled)


def run(
    seed: int, rates: Mapping[str, float] = MappingProxyType({}), *, takeover: bool = False
) -> Outcome:
    """Run one seed, with some faults at other rates than the seed's own, or a short one."""
    return World(seed, rates, takeover=takeover).run()

"""What people, machines and networks do to a cluster during a run, drawn from its seed."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from pumice.api.kinds import JOB, POD_GROUP, Manifest
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import lose
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ClusterError
from tests.faults.api_server import ApiServer
from tests.faults.faults import Chance
from tests.faults.pumice_process import PumiceProcess
from tests.faults.workload import Workload

LASTS_S: Final = 32.0
"""Nothing goes wrong after so long."""
_FAILOVERS: Final = 0.4
"""How many runs have a leader that goes down about the end of an outage."""


class Stage(Protocol):
    """What an upheaval acts on."""

    clock: VirtualClock
    cluster: EmbeddedCluster
    server: ApiServer
    kubelet: Kubelet
    processes: list[PumiceProcess]
    work: Workload

    def note(self, what: str) -> None:
        """Write down what happens."""

    def set_webhooks(self, *, up: bool) -> None:
        """Switch admission on or off."""

    def at_message(self, process: PumiceProcess, steps: int, action: Callable[[], object]) -> None:
        """Do something to a process when it sends or gets its next message but so many."""


class Upheaval:
    """Draws what is done to a cluster, and does it at its time."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._chance = Chance(seed, 3)
        self._failovers = Chance(seed, 5)
        self.fails_over = self._failovers.happens(_FAILOVERS)
        """Whether a process takes over from another about the end of an outage."""
        self.lasts_s = LASTS_S
        """Nothing goes wrong after so long."""
        self.lasts_until = stage.clock.now()
        """When the last of what follows from an act is done."""
        self._nodes = {each["metadata"]["name"]: each for each in stage.work.nodes}
        self._acts: dict[str, Callable[[], object]] = {
            "crash": self._crash,
            "crash at a message": self._crash_at_message,
            "freeze": self._freeze,
            "freeze at a message": self._freeze_at_message,
            "watch silent": self._silence,
            "clock jump": self._jump,
            "node lost": self._lose_node,
            "node cordoned": self._cordon,
            "pod deleted": self._delete_pod,
            "pod failed": self._fail_pod,
            "job deleted": self._delete_job,
            "group deleted": self._delete_group,
            "job suspended": self._suspend,
            "server away": self._take_server_away,
            "webhooks away": self._take_webhooks_away,
            "history forgotten": self._forget_history,
        }

    def schedule(self) -> None:
        """Put what is to happen on the clock."""
        chance, names = self._chance, [*self._acts]
        chosen = chance.some(names, 0.5) or names
        for _ in range(chance.integer(2, 10)):
            self._at(chance.between(1.0, LASTS_S), chance.one_of(chosen))
        for _ in range(self._failovers.integer(1, 2) if self.fails_over else 0):
            self._schedule_failover(self._failovers.between(2.0, LASTS_S - 8.0))

    def _schedule_failover(self, seconds: float) -> None:
        """Have the server go away, and the leader shortly before or after it comes back.

        Watches of others are lost by then, and wait before they are opened again.
        """
        chance, clock = self._failovers, self._stage.clock
        away_s = chance.between(1.0, 12.0)
        end = chance.one_of([self._crash_leader, self._freeze_leader, self._stop_leader])
        clock.call_at(clock.now() + seconds, lambda: self._note("server away", self._away(away_s)))
        later_s = seconds + away_s + chance.between(-2.0, 4.0)
        clock.call_at(clock.now() + later_s, lambda: self._note("failover", end()))

    def _at(self, seconds: float, name: str) -> None:
        clock = self._stage.clock
        clock.call_at(clock.now() + seconds, lambda: self._act(name))

    def _later(self, seconds: float, action: Callable[[], object]) -> None:
        clock = self._stage.clock
        when = clock.now() + seconds
        self.lasts_until = max(self.lasts_until, when)
        clock.call_at(when, action)

    def _act(self, name: str) -> None:
        try:
            what = self._acts[name]()
        except ClusterError as error:  # gone already, or refused: so it goes
            what = error
        self._note(name, what)

    def _note(self, name: str, what: object) -> None:
        self._stage.note(f"{name}: {what}")

    # Processes

    def _process(self) -> PumiceProcess | None:
        """Draw a process, more often than not the one at work."""
        alive = [each for each in self._stage.processes if not each.ended]
        leaders = [each for each in alive if each.leads]
        if leaders and self._chance.happens(0.7):
            return self._chance.one_of(leaders)
        return self._chance.one_of(alive) if alive else None

    def _crash(self) -> str:
        process = self._process()
        if process is None:
            return "nobody"
        process.host.kill()
        return process.name

    def _leader(self) -> PumiceProcess | None:
        alive = (each for each in self._stage.processes if not each.ended)
        return next((each for each in alive if each.leads), None)

    def _crash_leader(self) -> str:
        leader = self._leader()
        if leader is not None:
            leader.host.kill()
        return f"{leader.name} killed" if leader is not None else "nobody"

    def _freeze_leader(self) -> str:
        leader, seconds = self._leader(), self._failovers.between(15.0, 25.0)
        if leader is not None:
            leader.host.freeze(seconds)
        return f"{leader.name} frozen for {seconds:g} s" if leader is not None else "nobody"

    def _stop_leader(self) -> str:
        """End the leader in order: it finishes its writes and releases the lease."""
        leader = self._leader()
        if leader is not None:
            leader.stop()
        return f"{leader.name} stopped" if leader is not None else "nobody"

    def _crash_at_message(self) -> str:
        process = self._process()
        if process is None:
            return "nobody"
        steps = self._chance.integer(1, 60)
        self._stage.at_message(process, steps, process.host.kill)
        return f"{process.name} in {steps} messages"

    def _freeze_at_message(self) -> str:
        """Freeze a process with requests in flight, for longer than its lease lasts."""
        process, seconds = self._process(), self._chance.between(15.0, 25.0)
        if process is None:
            return "nobody"
        steps = self._chance.integer(1, 30)
        self._stage.at_message(process, steps, lambda: process.host.freeze(seconds))
        return f"{process.name} in {steps} messages for {seconds:g} s"

    def _silence(self) -> str:
        """Silence the watch of pods of a process for a while, although it stays open."""
        process, seconds = self._process(), self._chance.between(5.0, 25.0)
        if process is None:
            return "nobody"
        now = self._stage.clock.now()
        self._stage.server.faults.silence(process.name, "Pod", now + seconds)
        return f"{process.name} for {seconds:g} s"

    def _freeze(self) -> str:
        process, seconds = self._process(), self._chance.between(1.0, 25.0)
        if process is None:
            return "nobody"
        process.host.freeze(seconds)
        return f"{process.name} for {seconds:g} s"

    def _jump(self) -> str:
        process, seconds = self._process(), self._chance.between(-600.0, 600.0)
        if process is None:
            return "nobody"
        process.host.skew_s = seconds
        return f"{process.name} by {seconds:g} s"

    # Nodes

    def _lose_node(self) -> str:
        name = self._chance.one_of(sorted(self._nodes))
        lose(self._stage.cluster, name)
        self._later(self._chance.between(1.0, 10.0), lambda: self._add(name))
        return name

    def _add(self, name: str) -> None:
        if self._stage.cluster.peek("Node", "", name) is None:
            self._stage.cluster.create(self._nodes[name])
            self._stage.note(f"node back: {name}")

    def _cordon(self) -> str:
        name = self._chance.one_of(sorted(self._nodes))
        self._set_cordon(name, on=True)
        self._later(self._chance.between(1.0, 8.0), lambda: self._set_cordon(name, on=False))
        return name

    def _set_cordon(self, name: str, *, on: bool) -> None:
        if self._stage.cluster.peek("Node", "", name) is not None:
            self._stage.cluster.patch("Node", "", name, {"spec": {"unschedulable": on or None}})

    # Objects

    def _one(self, kind: str, fits: Callable[[Manifest], bool] = lambda _: True) -> Any:
        found = [each for each in self._stage.cluster.list(kind)[0] if fits(each)]
        return self._chance.one_of(found) if found else None

    def _delete_pod(self) -> str:
        pod = self._one("Pod")
        return self._delete("Pod", pod)

    def _delete_job(self) -> str:
        return self._delete(JOB, self._one(JOB))

    def _delete_group(self) -> str:
        """Delete the pod group of a job: its controller makes another."""
        owned = self._one(POD_GROUP, lambda each: bool(each["metadata"].get("ownerReferences")))
        return self._delete(POD_GROUP, owned)

    def _delete(self, kind: str, manifest: Manifest | None) -> str:
        if manifest is None:
            return "none there"
        name = str(manifest["metadata"]["name"])
        self._stage.cluster.delete(kind, "default", name)
        return name

    def _fail_pod(self) -> str:
        pod = self._one("Pod", self._may_fail)
        if pod is None:
            return "none runs"
        self._stage.kubelet.fail("default", pod["metadata"]["name"])
        return str(pod["metadata"]["name"])

    def _may_fail(self, pod: Manifest) -> bool:
        job = pod["metadata"]["name"].partition("-")[0]
        return job in self._stage.work.may_fail and pod["status"].get("phase") == "Running"

    def _suspend(self) -> str:
        """Abort a job as `vcctl job suspend` does, and take it up again.

        Not one whose pods fail: a resumed job keeps them, and its gang never starts again.
        """
        spared = self._stage.work.may_fail
        job = self._one(JOB, lambda each: each["metadata"]["name"] not in spared)
        if job is None:
            return "none there"
        self._command(job, "AbortJob")
        self._later(self._chance.between(2.0, 9.0), lambda: self._command(job, "ResumeJob"))
        return str(job["metadata"]["name"])

    def _command(self, job: Manifest, action: str) -> None:
        metadata = job["metadata"]
        owner = {
            "apiVersion": job["apiVersion"],
            "kind": "Job",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        self._stage.note(f"{action} {metadata['name']}")
        self._stage.cluster.create(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {
                    "generateName": f"{metadata['name']}-",
                    "namespace": "default",
                    "ownerReferences": [owner],
                },
                "target": owner,
                "action": action,
            }
        )

    # Servers

    def _take_server_away(self) -> str:
        return self._away(self._chance.between(0.5, 12.0))

    def _away(self, seconds: float) -> str:
        self._stage.server.go_away()
        self._later(seconds, self._stage.server.come_back)
        return f"for {seconds:g} s"

    def _take_webhooks_away(self) -> str:
        seconds = self._chance.between(1.0, 15.0)
        self._stage.set_webhooks(up=False)
        self._later(seconds, lambda: self._stage.set_webhooks(up=True))
        return f"for {seconds:g} s"

    def _forget_history(self) -> str:
        self._stage.cluster.compact()
        return "all of it"

"""The rules that hold whatever goes wrong: event by event, request by request, and at rest."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from pumice.api.annotations import GROUP_NAME
from pumice.api.kinds import LEASE, POD_GROUP, QUEUE, Manifest
from pumice.apiserver.rest import Answer
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.scheduler.live_scheduler import Cycle
from tests.faults.api_server import Asked
from tests.faults.claim_rules import check_claims
from tests.faults.pumice_process import PumiceProcess
from tests.faults.rest_checks import check_caches, check_jobs
from tests.faults.workload import QUOTA, Workload, cpus_of

_OVER: Final = frozenset({"Succeeded", "Failed"})
_BINDING: Final = re.compile(r"/namespaces/(?P<namespace>[^/]+)/pods/(?P<pod>[^/]+)/binding$")
_LEASES: Final = {"controllers": "vc-controller-manager", "second": "second"}
"""The lease of a process, where it is not that of the first scheduler."""
_AGAIN: Final = 6
"""Times that a bind may be sent again after it was done unheard: thrice by recovery, and so on."""
_ROUNDS: Final = 3
"""Times that two jobs may evict each other in turn; more is a cycle."""
_WRITTEN_S: Final = 30.0
"""How long the write of an eviction may take: requests are lost, refused and sent again."""


@dataclass(frozen=True)
class Eviction:
    """One evicted pod, and its beneficiary."""

    at: float
    pod: str
    job: str
    beneficiary: str


class Invariants:
    """Watches a run; ``broken`` lists the rules that were broken, with what broke them."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        work: Workload,
        elapsed: Callable[[], float],
        followed: Callable[[str], Iterable[str]],
    ) -> None:
        """Make one; ``followed`` returns the paths of the kinds that a process follows."""
        self._cluster = cluster
        self._work = work
        self._elapsed = elapsed
        self._followed = followed
        self.broken: list[str] = []
        self.binds = 0
        self.evictions: list[Eviction] = []
        self._node_of: dict[str, str] = {}
        self._done_by: dict[tuple[str, str], str] = {}
        """Node on which a process itself has bound a pod, by process and uid."""
        self._again: Counter[tuple[str, str]] = Counter()
        self._decided: dict[str, set[str]] = defaultdict(set)
        self._leader: dict[str, str] = {}
        """Holder of each lease, by its name."""
        self._not_asked_for: dict[str, set[str]] = {}
        """Kinds that a process has yet to ask for since it took a lease."""
        self._group_gone_at: dict[str, float] = {}
        """When a pod group was last deleted, by name."""
        cluster.listeners.append(self._hear)

    def fail(self, problem: str) -> None:
        """Note that a rule is broken."""
        self.broken.append(f"{self._elapsed():.3f} s: {problem}")

    # The store, event by event

    def _hear(self, kind: str, event: Event) -> None:
        if kind == LEASE:
            self._hear_lease(event.object)
        if kind == POD_GROUP and event.type == "DELETED":
            self._group_gone_at[event.object["metadata"]["name"]] = self._elapsed()
        if kind != "Pod" or event.type == "DELETED":
            return
        pod = event.object
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        node = pod["spec"].get("nodeName")
        if not node:
            return
        known = self._node_of.setdefault(uid, "")
        if known == node:
            return
        if known:
            self.fail(f"pod {name} moved from node {known} to {node}")
        self._node_of[uid] = node
        self.binds += 1
        self._check_node(node)
        for problem in check_claims(self._cluster, pod):
            self.fail(problem)
        if self._work.conf in QUOTA and not self._work.is_divided:  # each counts its own pods
            self._check_queues(pod)

    def _check_node(self, name: str) -> None:
        """No node is over-committed; pods that are leaving still hold their room."""
        node = self._cluster.peek("Node", "", name)
        if node is None:
            return
        used = sum(cpus_of(pod) for pod in self._held() if pod["spec"].get("nodeName") == name)
        if used > int(node["status"]["allocatable"]["cpu"]):
            self.fail(f"node {name} is over-committed: {used} CPUs are taken")

    def _check_queues(self, pod: Manifest) -> None:
        """No queue holds more than its capability, nor does any of its ancestors.

        Pods that leave do not count, as in Volcano; nor do those whose eviction is being written,
        or whose group was away: a scheduler that has not seen it come back knows no queue of them.
        """
        used: Counter[str] = Counter()
        since = self._elapsed() - _WRITTEN_S
        evicted = {each.pod for each in self.evictions if each.at > since}
        away = {name for name, at in self._group_gone_at.items() if at > since}
        for each in self._held():
            meta = each["metadata"]
            leaves = f"{meta['namespace']}/{meta['name']}" in evicted or _group(each) in away
            if not leaves and not meta.get("deletionTimestamp"):
                for name in self._ancestors(self._queue_of(each)):
                    used[name] += cpus_of(each)
        for name in self._ancestors(self._queue_of(pod)):
            queue = self._cluster.peek(QUEUE, "", name) or {}
            limit = ((queue.get("spec") or {}).get("capability") or {}).get("cpu")
            if limit is not None and used[name] > int(limit):
                self.fail(f"queue {name} holds {used[name]} CPUs of {limit}")

    def _held(self) -> Iterator[Manifest]:
        for pod in self._cluster.list("Pod")[0]:
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in _OVER:
                yield pod

    def _queue_of(self, pod: Manifest) -> str:
        group = self._cluster.peek(POD_GROUP, "default", _group(pod))
        return str(((group or {}).get("spec") or {}).get("queue") or "")

    def _ancestors(self, name: str) -> Iterator[str]:
        while name:
            yield name
            queue = self._cluster.peek(QUEUE, "", name) or {}
            name = str((queue.get("spec") or {}).get("parent") or "")

    def _hear_lease(self, lease: Manifest) -> None:
        """Note a new holder: what it knew before counts for nothing."""
        name, holder = lease["metadata"]["name"], lease["spec"].get("holderIdentity") or ""
        if self._leader.get(name) != holder:
            self._leader[name] = holder
            self._not_asked_for[holder] = {*self._followed(holder)}

    # Requests

    def hear_request(self, asked: Asked) -> None:
        """Only the leader writes, and never asks for a second node for a pod it has bound."""
        process = asked.process.name
        if asked.is_collection:
            self._not_asked_for.get(process, set()).discard(asked.path)
        if not asked.is_write or asked.is_lease:
            return
        if self._not_asked_for.get(process):
            missing = sorted(self._not_asked_for[process])
            self.fail(f"{process} writes {asked.path} before it has read {missing[0]} again")
        name = _LEASES.get(process.partition("-")[0], "volcano")
        lease = self._cluster.peek(LEASE, "volcano-system", name)
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity")
        if holder != process:
            self.fail(f"{process} writes {asked.method} {asked.path} while {holder} leads")
        if _BINDING.search(asked.path):
            uid, node = _bind_of(asked)
            self._check_bind(process, uid, node)

    def _check_bind(self, process: str, uid: str, node: str) -> None:
        """A process that has bound a pod asks for no other node, and finds out before long."""
        before = self._done_by.get((process, uid))
        if before is None:
            return
        if before != node:
            self.fail(f"{process} binds {uid} to {node}, having bound it to {before}")
        self._again[process, uid] += 1
        if self._again[process, uid] > _AGAIN:
            self.fail(f"{process} goes on binding {uid}, which it has bound")

    def hear_done(self, asked: Asked, answer: Answer) -> None:
        """Remember which process bound which pod, whether its answer arrived or not."""
        if answer.code < 300 and _BINDING.search(asked.path):
            uid, node = _bind_of(asked)
            self._done_by[asked.process.name, uid] = node

    # Decisions

    def hear_cycle(self, process: PumiceProcess, cycle: Cycle) -> None:
        """Gangs start whole, and no pod is evicted without a beneficiary."""
        if cycle.dropped:
            return
        decisions = cycle.decisions
        placed: dict[str, set[str]] = defaultdict(set)
        for pod in (*decisions.binds, *decisions.pipelined):
            placed[self._group_of(process, pod)].add(pod)
        starting = {self._group_of(process, pod) for pod in decisions.binds}
        for group in sorted(starting):
            self._check_gang(process, group, {p for p in placed[group] if p in decisions.binds})
        for pod in decisions.evictions:
            beneficiary = decisions.beneficiaries.get(pod, "")
            job = self._group_of(process, pod)
            self.evictions.append(Eviction(self._elapsed(), pod, job, beneficiary))
            winners = placed.get(beneficiary) or (
                {beneficiary} & {*decisions.binds, *decisions.pipelined}
            )
            if not winners:
                self.fail(f"{pod} is evicted for '{beneficiary}', which gets no place")

    def _check_gang(self, process: PumiceProcess, group: str, started: set[str]) -> None:
        manifest = self._cluster.peek(POD_GROUP, *_split(group))
        decided = self._decided[process.name]
        decided |= started
        if manifest is None:
            return
        wanted = int(manifest["spec"].get("minMember") or 0)
        members = started | {pod for pod in decided if self._group_of(process, pod) == group}
        for pod in self._cluster.list("Pod", _split(group)[0])[0]:
            if _group(pod) == _split(group)[1] and pod["spec"].get("nodeName"):
                members.add(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        members |= self._ran_as_seen(process, group)
        if len(members) < wanted:
            self.fail(f"gang {group} starts with {len(members)} of {wanted} pods")

    def _ran_as_seen(self, process: PumiceProcess, group: str) -> set[str]:
        """Return the members that were bound and whose end, if any, a process has not seen yet."""
        if process.live is None:
            return set()
        snapshot = process.live.informer.snapshot
        row = snapshot.jobs.row_of.get(group)
        pods: Any = snapshot.tasks.pods
        return {
            snapshot.tasks.keys[task]
            for task in ([] if row is None else snapshot.jobs.tasks[row])
            if self._node_of.get(pods[task].metadata.uid, "?") == pods[task].spec.node_name
        }

    def _group_of(self, process: PumiceProcess, pod: str) -> str:
        live = process.live
        known = live.informer.known("Pod", pod) if live is not None else None
        if known is None:
            return ""
        name = known.metadata.annotations.get(GROUP_NAME, "")
        return f"{known.metadata.namespace}/{name}"

    # At rest

    def check_rest(self, unsettled: list[str]) -> None:
        """Everything is accounted for, and all caches equal the cluster."""
        for problem in unsettled:
            self.fail(problem)
        self._check_evictions()

    def unsettled(self, processes: list[PumiceProcess]) -> list[str]:
        """Return which counts and caches differ from the cluster."""
        caches = (check_caches(self._cluster, process) for process in processes)
        return [*check_jobs(self._cluster), *chain.from_iterable(caches)]

    def _check_evictions(self) -> None:
        """Two jobs do not evict each other for ever."""
        turns: Counter[tuple[str, str]] = Counter()
        for each in self.evictions:
            winner = each.beneficiary
            turns[each.job, winner] += 1
        for (loser, winner), count in turns.items():
            if min(count, turns.get((winner, loser), 0)) > _ROUNDS:
                self.fail(f"{loser} and {winner} evict each other")


def _group(pod: Manifest) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(GROUP_NAME, ""))


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def _bind_of(asked: Asked) -> tuple[str, str]:
    """Read which pod gets which node."""
    body: Any = json.loads(asked.request.body)
    return str(body["metadata"].get("uid", "")), str(body["target"]["name"])

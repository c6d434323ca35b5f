"""The decisions of one scheduling cycle, as plain data.

Filled by the scheduler; read by the scenario tests, the command line and the pages.
It describes results only: nothing here decides or talks to a cluster.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pumice.api.devices import ClaimReservation

CLUSTER: Final = "cluster"
RESOURCE_QUOTA: Final = "resource quota "
"""The name of a limit that is not a queue's; for a quota its own name follows."""
_NANO: Final = 10**9


class Bind(msgspec.Struct, frozen=True):
    """Run a pod on a node."""

    pod: str
    node: str


class Evict(msgspec.Struct, frozen=True):
    """End a pod so that its room can be used otherwise."""

    pod: str
    action: str
    beneficiary: str = ""
    note: str = ""
    """What its event says besides."""


class Annotate(msgspec.Struct, frozen=True):
    """Write annotations on a pod together with its Bind, which comes right after."""

    pod: str
    annotations: Mapping[str, str]


class Reserve(msgspec.Struct, frozen=True):
    """Assign a pod its resource claims before its Bind, which comes right after."""

    pod: str
    claims: tuple[ClaimReservation, ...]


class LockNode(msgspec.Struct, frozen=True):
    """Lock the node of a pod by annotations before its Bind, which comes right after."""

    pod: str
    locks: tuple[str, ...]
    """Names of annotations."""


class ClaimChoice(msgspec.Struct, frozen=True):
    """How a claim that waits for its first consumer gets its volume."""

    claim: str
    """ "namespace/name"."""
    volume: str
    """The volume that it is bound to; empty: one is provisioned for the node."""
    node: str

    def to_expect(self) -> dict[str, str]:
        """Write it as an entry of `expect.claims`."""
        return {"volume": self.volume} if self.volume else {"selectedNode": self.node}


class BindVolumes(msgspec.Struct, frozen=True):
    """Get a pod's claims bound before its Bind, or do not bind it at all."""

    pod: str
    choices: tuple[ClaimChoice, ...]
    timeout_s: float
    """How long the pod waits for its claims to be bound."""


Intent = Bind | Evict | Annotate | Reserve | LockNode | BindVolumes


class Condition(msgspec.Struct, frozen=True):
    """One condition of a pod group."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> "Condition":
        """Read a condition from the mapping Kubernetes uses."""
        return cls(
            type=str(manifest.get("type", "")),
            status=str(manifest.get("status", "")),
            reason=str(manifest.get("reason", "")),
            message=str(manifest.get("message", "")),
        )

    def to_manifest(self) -> dict[str, str]:
        """Write the condition as Kubernetes does, without empty texts."""
        texts = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
        }
        return {key: text for key, text in texts.items() if text}


SCHEDULED: Final = Condition("Scheduled", "True", "tasks in gang are ready to be scheduled")
"""The condition of a group whose gang can start."""


class PodGroupState(msgspec.Struct, frozen=True):
    """Status of one pod group after the session was closed; equal groups may share it."""

    phase: str
    conditions: list[Condition] = msgspec.field(default_factory=list)
    hyper_node: str | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    def to_expect(self) -> dict[str, Any]:
        """Write the state as an entry of `expect.podGroups`."""
        entry: dict[str, Any] = {"phase": self.phase}
        if self.conditions:
            entry["conditions"] = [condition.to_manifest() for condition in self.conditions]
        if self.hyper_node:
            entry["hyperNode"] = self.hyper_node
        return entry


class Short(msgspec.Struct, frozen=True):
    """A resource of which there is too little: what is used, asked for and allowed."""

    resource: str
    used: float
    request: float
    limit: float

    @classmethod
    def of_nano(cls, resource: str, used: int, request: int, limit: int) -> "Short":
        """Make one of whole nano units; those of the tables depend on the resource."""
        name = resource.removeprefix("requests.").removeprefix("limits.")
        per_unit = _NANO if name in ("memory", "pods") else _NANO // 1000
        return cls(resource, used / per_unit, request / per_unit, limit / per_unit)

    def numbers(self) -> dict[str, Any]:
        """Return them as the numbers of a refusal."""
        return {
            "resource": self.resource,
            "used": self.used,
            "request": self.request,
            "limit": self.limit,
        }


def short_of(numbers: Mapping[str, Any]) -> list[Short]:
    """Return the resources that were short, from the numbers of a refusal or a record."""
    every = (numbers, *numbers.get("more", ()))
    return [
        Short(each["resource"], *(each.get(key, 0.0) for key in ("used", "request", "limit")))
        for each in every
        if "resource" in each
    ]


class WaitingPod(msgspec.Struct, frozen=True):
    """Why a pod has no node: reason and message of its condition `PodScheduled`."""

    reason: str
    message: str


class JobRecord(msgspec.Struct, frozen=True):
    """Where a job stopped in a cycle, why, and the numbers that were compared.

    Stage and reason are from closed lists; amounts are in the units of the tables.
    """

    stage: str
    reason: str
    numbers: dict[str, Any] = msgspec.field(default_factory=dict)


class PromiseChange(msgspec.Struct, frozen=True):
    """A start promised to a job that is new, another one, or over, and the event that says so."""

    text: str
    """Of the annotation ``pumice.dev/reservation`` of its PodGroup; empty: none any more."""
    reason: str = ""
    message: str = ""


class Decisions(msgspec.Struct):
    """Everything one cycle decided; pods and pod groups are named "namespace/name"."""

    binds: dict[str, str] = msgspec.field(default_factory=dict)
    """Pod to node, in the order in which the pods were handed to the binder."""
    annotations: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Pod to annotations that are to be written with its bind."""
    reservations: dict[str, tuple[ClaimReservation, ...]] = msgspec.field(default_factory=dict)
    """Pod to the resource claims that are to be allocated and reserved for it before its bind."""
    node_locks: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Pod to the annotations by which its node is to be locked before its bind."""
    released_claims: list[str] = msgspec.field(default_factory=list)
    """Resource claims whose devices are to be freed: only a waiting pod has them."""
    stored: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """ConfigMap to the data that plugins keep in it for schedulers to come."""
    volumes: dict[str, BindVolumes] = msgspec.field(default_factory=dict)
    """Pod of ``binds`` to the claims that must be bound before it."""
    evictions: list[str] = msgspec.field(default_factory=list)
    """Pods in the order of the evict calls."""
    evicted_by: dict[str, str] = msgspec.field(default_factory=dict)
    """Evicted pod to the action that wants its room."""
    beneficiaries: dict[str, str] = msgspec.field(default_factory=dict)
    """Evicted pod to the pod or job that its room is for; absent if it is for none."""
    eviction_notes: dict[str, str] = msgspec.field(default_factory=dict)
    """Evicted pod to what its event says besides."""
    pipelined: dict[str, str] = msgspec.field(default_factory=dict)
    """Pod to node for tasks that wait for a node to become free."""
    opened_gates: list[str] = msgspec.field(default_factory=list)
    """Pods whose queue gates are to be removed, in the order in which queues admitted them."""
    pod_groups: dict[str, PodGroupState] = msgspec.field(default_factory=dict)
    """Only pod groups that the session contained."""
    promises: dict[str, PromiseChange] = msgspec.field(default_factory=dict)
    """Job to the start it is promised, where its PodGroup does not state it yet."""
    nominated: dict[str, str] = msgspec.field(default_factory=dict)
    """Pod to node whose `status.nominatedNodeName` is to be written."""
    queues: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Queue to `status.allocated`: resource name to quantity text."""
    unschedulable: dict[str, str] = msgspec.field(default_factory=dict)
    """Job to fit error text."""
    waiting_pods: dict[str, WaitingPod] = msgspec.field(default_factory=dict)
    """Pod to why it waits; of a session that reports changes only those that do not show it."""
    task_statuses: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Job to number of tasks for each status name."""
    explanations: dict[str, str] = msgspec.field(default_factory=dict)
    """Job to one plain sentence on why it still waits."""
    records: dict[str, JobRecord] = msgspec.field(default_factory=dict)
    """Job to what its explanation was rendered from."""

    failures: list[str] = msgspec.field(default_factory=list)
    """Plugins that raised or broke their contract and were skipped: a line for each hook."""
    failed_for: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Job to such lines, where the failure is due to the job or to a pod of it."""

    @property
    def claims(self) -> dict[str, ClaimChoice]:
        """How each claim that pods of ``binds`` wait for gets its volume."""
        return {each.claim: each for some in self.volumes.values() for each in some.choices}

    def devices(self) -> dict[str, list[str]]:
        """Return the devices, as "pool/device", that resource claims get."""
        return {
            each.claim: [f"{one.pool}/{one.device}" for one in each.allocation.devices.results]
            for claims in self.reservations.values()
            for each in claims
            if each.allocation is not None
        }

    def expected_claims(self) -> dict[str, dict[str, str] | list[str]]:
        """Return what claims get, as `expect.claims`: a mapping for volumes, a list for devices."""
        volumes = {key: choice.to_expect() for key, choice in self.claims.items()}
        found: dict[str, dict[str, str] | list[str]] = {**volumes, **self.devices()}
        return dict(sorted(found.items()))

    def to_expect(self) -> dict[str, Any]:
        """Write the decisions with the keys of a scenario's `expect`."""
        record: dict[str, Any] = {
            "binds": dict(sorted(self.binds.items())),
            "bindOrder": list(self.binds),
            "evictions": list(self.evictions),
            "pipelined": dict(sorted(self.pipelined.items())),
            "podGroups": {
                name: state.to_expect() for name, state in sorted(self.pod_groups.items())
            },
            "queues": {name: dict(shares) for name, shares in sorted(self.queues.items())},
        }
        if self.opened_gates:
            record["openedGates"] = list(self.opened_gates)
        claims = self.expected_claims()
        if claims:
            record["claims"] = claims
        if self.nominated:
            record["nominated"] = dict(sorted(self.nominated.items()))
        if self.unschedulable:
            record["unschedulable"] = dict(sorted(self.unschedulable.items()))
        return record

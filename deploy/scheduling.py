"""Schemas of what jobs are scheduled by: gangs, queues, orders, nodes and the network."""

from itertools import combinations

from deploy.jobs import network_topology
from deploy.schema import (
    DNS_NAME,
    Schema,
    amounts,
    by_name,
    conditions,
    count,
    fields,
    flag,
    index,
    label_selector,
    moment,
    name,
    number,
    one_of,
    several,
    text,
    texts,
)


def podgroup_spec() -> Schema:
    """Give the specification of a gang."""
    subgroup = {
        "labelSelector": label_selector("Which pods divide by this policy."),
        "matchLabelKeys": several(
            "Labels whose values tell subgroups apart.",
            text(),
            **{"x-kubernetes-list-type": "atomic"},
        ),
        "minSubGroups": count("Subgroups that must be placed.", default=0),
        "name": text("The policy's name.", maxLength=253),
        "networkTopology": network_topology("How close the pods of one subgroup lie."),
        "subGroupSize": number("Pods of one subgroup.", minimum=1, default=1),
    }
    parts = {
        "minMember": count("Pods that must be able to start together."),
        "minResources": amounts("What must be free before any pod may start."),
        "minTaskMember": by_name("Pods of each task that must be able to start.", number()),
        "networkTopology": network_topology(),
        "priorityClassName": text("The group's PriorityClass.", maxLength=253),
        "queue": name("The queue it waits in.", default="default"),
        "subGroupPolicy": several("How the group divides.", fields("", subgroup)),
    }
    return fields("What the gang needs.", parts)


def podgroup_status() -> Schema:
    """Give the status of a gang."""
    condition = {key: text() for key in ("message", "reason", "status", "transitionID", "type")}
    condition["lastTransitionTime"] = moment()
    parts = {
        "conditions": several("Why it waits or not.", fields("", condition)),
        "failed": count("Pods that failed."),
        "phase": one_of("How far it is.", "Pending", "Running", "Unknown", "Inqueue", "Completed"),
        "running": count("Pods that run."),
        "succeeded": count("Pods that succeeded."),
    }
    return fields("How far the gang is.", parts)


def queue_spec() -> Schema:
    """Give the specification of a queue."""
    groups = {
        "preferredDuringSchedulingIgnoredDuringExecution": texts("Node groups it would like."),
        "requiredDuringSchedulingIgnoredDuringExecution": texts("Node groups it is held to."),
    }
    affinity = {
        "nodeGroupAffinity": fields("Where its pods go.", groups),
        "nodeGroupAntiAffinity": fields("Where its pods do not go.", groups),
    }
    cluster = {"capacity": amounts(""), "name": text(), "weight": number()}
    parts = {
        "affinity": fields("Node groups for its pods.", affinity),
        "capability": amounts("The most it may use."),
        "dequeueStrategy": one_of(
            "Whether a job that does not fit holds up those behind it.",
            "fifo",
            "traverse",
            default="traverse",
        ),
        "deserved": amounts("What it may claim back from others."),
        "extendClusters": several("Other clusters its jobs may go to.", fields("", cluster)),
        "guarantee": fields("What it always keeps.", {"resource": amounts("")}),
        "parent": name("The queue above it."),
        "priority": count("Which queue comes first."),
        "reclaimable": flag("Whether others may claim back what it uses beyond its share."),
        "type": text("Kind of queue.", maxLength=253),
        "weight": number("Its share against others.", minimum=1, maximum=65535, default=1),
    }
    return fields("The queue's share and bounds.", parts)


def queue_status() -> Schema:
    """Give the status of a queue."""
    reservation = {"nodes": texts(), "resource": amounts("")}
    parts = {
        "allocated": amounts("What it uses."),
        "reservation": fields("What is kept for it.", reservation),
        "state": one_of("Whether it takes jobs.", "Open", "Closed", "Closing", "Unknown"),
    }
    phases = ("completed", "inqueue", "pending", "running", "unknown")
    parts |= {phase: count(f"How many PodGroups: {phase}.") for phase in phases}
    return fields("What the queue uses and holds.", parts)


def hypernode_spec() -> Schema:
    """Give the specification of a part of the network."""
    selector = {
        "exactMatch": fields(
            "One by name.",
            {"name": text(minLength=1, maxLength=253, pattern=DNS_NAME)},
            "name",
        ),
        "labelMatch": label_selector("Those with these labels."),
        "regexMatch": fields(
            "Those whose name matches.", {"pattern": text(minLength=1)}, "pattern"
        ),
    }
    given = [f"has(self.{way})" for way in selector]
    pairs = [f"!({one} && {other})" for one, other in combinations(given, 2)]
    rules = [
        {
            "rule": " || ".join(given),
            "message": "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        },
        {
            "rule": " && ".join(pairs),
            "message": "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        },
    ]
    member = {
        "selector": fields("Which.", selector, **{"x-kubernetes-validations": rules}),
        "type": one_of("What is meant.", "Node", "HyperNode"),
    }
    parts = {
        "members": several("What lies within.", fields("", member, "type"), minItems=1),
        "tier": index("How far apart the members are; lower is closer.", minimum=0),
        "tierName": text("What the tier is called.", maxLength=253),
    }
    return fields("A part of the network.", parts, "tier")


def hypernode_status() -> Schema:
    """Give the status of a part of the network."""
    parts = {
        "conditions": conditions("State of the part."),
        "nodeCount": number("How many nodes lie within.", wide=True, minimum=0),
    }
    return fields("What was found.", parts)


def command_parts() -> dict[str, Schema]:
    """Give the fields of an order, which has no specification."""
    target = {key: text() for key in ("apiVersion", "kind", "name", "uid")}
    target |= {"blockOwnerDeletion": flag(), "controller": flag()}
    return {
        "action": text("What to do: AbortJob, ResumeJob, OpenQueue, CloseQueue and others."),
        "message": text("More about it."),
        "reason": text("Why."),
        "target": fields(
            "The job or queue it is for.",
            target,
            "apiVersion",
            "kind",
            "name",
            "uid",
            **{"x-kubernetes-map-type": "atomic"},
        ),
    }


def numatopology_spec() -> Schema:
    """Give the specification of the NUMA nodes of a node."""
    container = {"allocations": by_name("", text()), "name": text()}
    pod = {
        "containerAllocations": several("", fields("", container)),
        "name": text(),
        "namespace": text(),
        "uid": text(),
    }
    cpu = {key: index("", minimum=0) for key in ("core", "numa", "socket")}
    resource = {"allocatable": text(), "capacity": index()}
    parts = {
        "cpuDetail": by_name("Where each CPU lies.", fields("", cpu)),
        "numares": by_name("Resources by name and their sets.", fields("", resource)),
        "podAllocations": several("What pods hold.", fields("", pod)),
        "policies": by_name("The kubelet's policies.", text()),
        "resReserved": by_name("What is kept for the system.", text()),
    }
    return fields("The CPUs of a node.", parts)


def colocation_parts() -> dict[str, Schema]:
    """Give the fields of a configuration of shared nodes."""
    bounds = {"minimum": 0, "maximum": 100}
    memory = {
        "highRatio": index("", default=100, **bounds),
        "lowRatio": index("", default=0, **bounds),
        "minRatio": index("", default=0, **bounds),
    }
    spec = {"memoryQos": fields("", memory), "selector": label_selector("Which pods.")}
    status = {
        "conditions": conditions(
            "", **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        )
    }
    return {"spec": fields("", spec), "status": fields("", status)}


def shard_parts() -> dict[str, Schema]:
    """Give the fields of a shard of nodes."""
    status = {key: texts() for key in ("nodesInUse", "nodesToAdd", "nodesToRemove")}
    status["lastUpdateTime"] = moment()
    spec = fields("", {"nodesDesired": texts()}, "nodesDesired")
    return {"spec": spec, "status": fields("", status)}

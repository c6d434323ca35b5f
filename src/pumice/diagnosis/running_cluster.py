"""A running cluster as the source of a world: objects, jobs, configuration, use of nodes.

Reads only, over the cluster protocol, so a real cluster and an embedded one are read alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from pumice.api.conf import SchedulerConf
from pumice.api.kinds import JOB, Manifest
from pumice.api.nodes import Node
from pumice.api.objects import KINDS, from_manifest
from pumice.cluster.base import Cluster
from pumice.cluster.usage import usage_source
from pumice.errors import ClusterError, NotFoundError, PumiceError

CONF_NAMESPACE: Final = "volcano-system"
CONF_NAME: Final = "volcano-scheduler-configmap"
CONF_SUFFIX: Final = "scheduler.conf"
"""How the key of a ConfigMap ends whose text is a scheduler configuration."""
_NEEDED: Final = frozenset({"Node", "Pod"})
"""Kinds without which nothing can be said; any other may be missing or hidden."""
_MEASURING: Final = frozenset({"usage", "rescheduling"})
"""Plugins that look at the measured use of nodes."""


@dataclass
class Reading:
    """What a cluster said."""

    now: float
    objects: list[Manifest] = field(default_factory=list)
    jobs: list[Manifest] = field(default_factory=list)
    conf: tuple[str, str] | None = None
    """Text of the scheduler configuration and where it stands."""
    notes: list[str] = field(default_factory=list)
    """What could not be read."""


def read_cluster(cluster: Cluster) -> Reading:
    """Read everything that scheduling looks at.

    Raises:
        PumiceError: the cluster cannot be reached, or does not show its nodes and pods.
    """
    reading = Reading(now=cluster.now())
    for version, kind in KINDS:
        group, slash, _ = version.partition("/")
        name = f"{kind}.{group}" if slash else kind
        reading.objects += _listed(cluster, name, reading.notes)
    reading.jobs = _listed(cluster, JOB, reading.notes)
    reading.conf = _configuration(cluster)
    return reading


def _listed(cluster: Cluster, kind: str, notes: list[str]) -> list[Manifest]:
    """List a kind; one that is not served has no objects, one that is hidden is noted."""
    try:
        return cluster.list(kind)[0]
    except NotFoundError:
        return []
    except ClusterError as error:
        if kind in _NEEDED:
            raise
        notes.append(f"{kind} left out: {error.problem}")
        return []


def _configuration(cluster: Cluster) -> tuple[str, str] | None:
    """Find the scheduler's ConfigMap: by its usual name, else by the key of its text."""
    try:
        found = _conf_texts([cluster.get("ConfigMap", CONF_NAMESPACE, CONF_NAME)])
    except ClusterError:
        try:
            found = _conf_texts(cluster.list("ConfigMap")[0])
        except ClusterError:
            found = []
    return found[0] if found else None


def _conf_texts(maps: Iterable[Manifest]) -> list[tuple[str, str]]:
    """Give text and place of each configuration, the one with the usual name first."""
    found = [
        (one["metadata"]["name"] != CONF_NAME, one["metadata"].get("namespace", ""), one, text)
        for one in maps
        for key, text in (one.get("data") or {}).items()
        if str(key).endswith(CONF_SUFFIX)
    ]
    found.sort(key=lambda entry: (*entry[:2], entry[2]["metadata"]["name"]))
    return [
        (str(text), f"ConfigMap {namespace}/{one['metadata']['name']}")
        for _, namespace, one, text in found
    ]


def measured_use(
    conf: SchedulerConf, objects: Iterable[Manifest], now: float, notes: list[str]
) -> dict[str, dict[str, float]]:
    """Ask the source of measurements that a configuration names, if a plugin looks at them."""
    names = {plugin.name for tier in conf.tiers for plugin in tier.plugins}
    if not conf.metrics or not names & _MEASURING:
        return {}
    nodes = [from_manifest(one) for one in objects if one["kind"] == "Node"]
    try:
        source = usage_source(conf.metrics)
        return source.read([node for node in nodes if isinstance(node, Node)], now)
    except PumiceError as error:
        notes.append(f"node usage left out: {error}")
        return {}

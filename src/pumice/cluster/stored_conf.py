"""The scheduler configuration that a cluster stores in a ConfigMap."""

from collections.abc import Iterable
from typing import Final

from pumice.api.kinds import SYSTEM_NAMESPACE, Manifest
from pumice.api.named_files import conf_entries
from pumice.cluster.base import ReadableCluster
from pumice.errors import ClusterError

CONF_NAME: Final = "volcano-scheduler-configmap"


def scheduler_configuration(cluster: ReadableCluster) -> tuple[str, str] | None:
    """Find the scheduler's ConfigMap; one that cannot be read counts as missing."""
    try:
        return stored_configuration(cluster)
    except ClusterError:
        return None


def stored_configuration(cluster: ReadableCluster) -> tuple[str, str] | None:
    """Find the scheduler's ConfigMap: by its usual name, else by the key of its text.

    Raises:
        ClusterError: the ConfigMaps cannot be read.
    """
    try:
        found = _conf_texts([cluster.get("ConfigMap", SYSTEM_NAMESPACE, CONF_NAME)])
    except ClusterError:
        found = _conf_texts(cluster.list("ConfigMap")[0])
    return found[0] if found else None


def _conf_texts(maps: Iterable[Manifest]) -> list[tuple[str, str]]:
    """Return text and place of each configuration, the one with the usual name first."""
    found = [
        (one["metadata"]["name"] != CONF_NAME, one["metadata"].get("namespace", ""), one, text)
        for one in maps
        for _, text in conf_entries(one.get("data"))
    ]
    found.sort(key=lambda entry: (*entry[:2], entry[2]["metadata"]["name"]))
    return [
        (str(text), f"ConfigMap {namespace}/{one['metadata']['name']}")
        for _, namespace, one, text in found
    ]

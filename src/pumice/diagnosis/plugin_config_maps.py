"""The ConfigMaps of a cluster that plugins read."""

import contextlib

from pumice.api.conf import parse_conf
from pumice.api.kinds import CONFIG_MAP, Manifest
from pumice.cluster.base import ReadableCluster
from pumice.errors import ClusterError, PumiceError
from pumice.scheduler import Scheduler


def plugin_config_maps(cluster: ReadableCluster, conf: str) -> list[Manifest]:
    """Return those that the plugins of a configuration read, if available."""
    try:
        wanted = Scheduler(parse_conf(conf)).config_maps
    except PumiceError:  # reported where the configuration is used
        return []
    found = []
    for key in wanted:
        with contextlib.suppress(ClusterError):
            found.append(cluster.get(CONFIG_MAP, *key.split("/", 1)))
    return found

"""The API server of a watched cluster, as a service that answers with JSON."""

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pumice.cluster.http.blocking import MAX_ANSWER
from pumice.cluster.kube.cluster import KubeCluster
from pumice.errors import ClusterError, HttpError


class ApiServer:
    """Sends requests with the identity and within the rate limit of a watched cluster."""

    def __init__(self, cluster: KubeCluster, timeout_s: float) -> None:
        self._cluster = cluster
        self._timeout_s = timeout_s

    @property
    def address(self) -> str:
        """Its address."""
        return self._cluster.server

    def deadline(self) -> float:
        """Return the moment by which a reading that begins now must be done."""
        return time.monotonic() + self._timeout_s

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, deadline: float
    ) -> dict[str, Any]:
        """Ask for one JSON object.

        Raises:
            HttpError: no answer in time, or an unusable one.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        left_s = deadline - time.monotonic()
        try:
            return self._cluster.read_path(target, timeout_s=left_s, cap=MAX_ANSWER)
        except ClusterError as error:
            raise HttpError(f"{self.address}{path}", error.problem, error.code) from error

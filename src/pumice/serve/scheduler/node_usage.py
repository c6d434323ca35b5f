"""Measured use of nodes, read in the background and never waited for.

Used by the loop of a served scheduler when the configuration has a section ``metrics``.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pumice import logs
from pumice.api.nodes import Node
from pumice.cluster.usage.conf import refresh_period, usage_source
from pumice.cluster.usage.endpoint import ServiceWithin
from pumice.cluster.usage.source import UsageCache

_log = logs.get("usage")
_LOOK_S: Final = 1.0
"""How often it is checked whether a reading is due."""


class BackgroundUsage:
    """Reads a source at its own pace in a thread, and returns the latest readings at once."""

    def __init__(
        self,
        metrics: Mapping[str, str],
        clock: Callable[[], float],
        api_server: ServiceWithin | None = None,
    ) -> None:
        """Make one; ``api_server`` is used by sources behind an API server.

        Raises:
            ConfError: the section is wrong.
        """
        self._cache = UsageCache(usage_source(metrics, api_server), refresh_period(metrics))
        self._clock = clock
        self._nodes: Sequence[Node] = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-usage", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; a reading in progress ends in the background."""
        self._stop.set()

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Set the nodes whose use is wanted."""
        self._nodes = nodes

    def latest(self) -> Mapping[str, Any]:
        """Return the last reading of each node."""
        return self._cache.latest()

    def _run(self) -> None:
        while not self._stop.is_set():
            nodes = self._nodes
            if nodes:
                try:
                    self._cache.refresh(self._clock(), nodes)
                except Exception as error:  # noqa: BLE001  # the next reading may do better
                    _log.error("cannot read node usage", error=f"{type(error).__name__}: {error}")
            self._stop.wait(_LOOK_S)

"""The few ConfigMaps that plugins read, looked up one by one every now and then.

Used by LiveScheduler.  Watching all ConfigMaps of a cluster would need more rights and memory
than the one or two that matter.
"""

from collections.abc import Callable, Iterable
from typing import Final

from pumice import logs
from pumice.api.config_maps import ConfigMap
from pumice.api.kinds import CONFIG_MAP
from pumice.api.objects import from_manifest
from pumice.core.snapshot import Snapshot
from pumice.errors import ClusterError, InputError, NotFoundError
from pumice.serve.scheduler.recovery import Read

_EACH_S: Final = 60.0
_AFTER_FAILURE_S: Final = 5.0
_READ_S: Final = 1.0
_log = logs.get("config-maps")


class ConfigMaps:
    """Looks ConfigMaps up and shows them to the scheduler."""

    def __init__(self, read: Read, clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, ConfigMap] = {}
        self._due: dict[str, float] = {}

    def show(self, wanted: Iterable[str], snapshot: Snapshot) -> None:
        """Put the wanted ones ("namespace/name") into a snapshot, if they exist."""
        shown = snapshot.kind(CONFIG_MAP)
        for key in wanted:
            if self._due.get(key, 0.0) <= self._clock():
                self._look_up(key)
            if key in self._known:
                shown[key] = self._known[key]
            else:
                shown.pop(key, None)

    def _look_up(self, key: str) -> None:
        """Read one; if that fails, the last version stays."""
        namespace, _, name = key.partition("/")
        again = _EACH_S
        try:
            found = from_manifest(self._read(CONFIG_MAP, namespace, name, _READ_S))
        except NotFoundError:
            self._known.pop(key, None)
        except (ClusterError, InputError) as error:
            _log.warning("ConfigMap cannot be read", key=key, why=error)
            again = _AFTER_FAILURE_S
        else:
            if isinstance(found, ConfigMap):
                self._known[key] = found
        self._due[key] = self._clock() + again

"""A moment of a record as a cluster that can be read."""

from collections.abc import Mapping

from pumice.api.kinds import Manifest
from pumice.errors import NotFoundError
from pumice.records.history import Moment

_Objects = list[Manifest]


class PastCluster:
    """What a cluster would have answered at a moment."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    def now(self) -> float:
        """Return the time of the moment."""
        return self._moment.now

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object."""
        found = self._moment.objects.get((kind, namespace, name))
        if found is None:
            raise NotFoundError(kind, namespace, name)
        return found

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[_Objects, str]:
        """Return all objects of a kind."""
        wanted = (labels or {}).items()
        found = [
            one
            for place, one in self._moment.objects.items()
            if place[0] == kind
            and (not namespace or place[1] == namespace)
            and wanted <= (one["metadata"].get("labels") or {}).items()
        ]
        return found, ""

"""The priorities that the priority classes of a cluster give to pod groups and pods."""

from pumice.core.snapshot import Snapshot


class Priorities:
    """The priority classes of a cluster at one moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        classes = snapshot.kind("PriorityClass").values()
        self._values: dict[str, int] = {each.metadata.name: each.value for each in classes}
        # Kubernetes: of several defaults the lowest counts
        self._default: int = min((c.value for c in classes if c.global_default), default=0)

    def of_group(self, name: str) -> int:
        """Return the priority of a pod group; one that names no known class has the default."""
        return self._values.get(name, self._default)

    def of_pod(self, name: str) -> int:
        """Return the priority of a new pod; an unknown class gives none."""
        return self._values.get(name, 0) if name else self._default

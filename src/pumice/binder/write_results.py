"""Results of writes, as plain data; made by the binder, read by the scheduler's loop."""

import msgspec

from pumice.errors import ClusterError, NotFoundError


class WriteResult(msgspec.Struct, frozen=True):
    """The result of one write about one object."""

    what: str
    """The write: "bind", "evict", "release" (of the resource claims of a pod that is not bound),
    "gate", "pod status", "group", "cause", "queue", "event", or the kind of a patched object."""
    key: str
    """ "namespace/name", or the name alone."""
    uid: str = ""
    error: ClusterError | None = None
    node: str = ""
    """Of a bind."""
    took_s: float = 0.0
    """From handing it in to its answer."""


class WriteResults(msgspec.Struct):
    """The results of writes since the last time; pods are named "namespace/name"."""

    results: list[WriteResult] = msgspec.field(default_factory=list)

    @property
    def bound(self) -> list[str]:
        """The pods that were bound."""
        return [each.key for each in self.results if each.what == "bind" and each.error is None]

    @property
    def failed(self) -> dict[str, ClusterError]:
        """The pods whose bind failed."""
        failed = (each for each in self.results if each.what == "bind")
        return {each.key: each.error for each in failed if each.error is not None}

    @property
    def evicted(self) -> list[str]:
        """The pods that were evicted."""
        return [each.key for each in self.results if each.what == "evict" and each.error is None]

    @property
    def errors(self) -> list[ClusterError]:
        """Failures other than of binds; an object that is gone meanwhile is no error."""
        return [
            each.error
            for each in self.results
            if each.what != "bind"
            and each.error is not None
            and not isinstance(each.error, NotFoundError)
        ]

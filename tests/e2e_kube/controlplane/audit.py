"""What the programs under test asked of the API server, read from its audit log."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """One finished request."""

    user: str
    verb: str
    group: str
    resource: str
    """With the subresource behind a slash."""
    namespace: str
    name: str
    status: int
    sent: Any = None
    """The object sent, where the policy keeps it."""

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> "Request":
        """Read one line of the log."""
        about = entry.get("objectRef", {})
        parts = [about.get("resource", entry["requestURI"]), about.get("subresource", "")]
        return cls(
            entry["user"]["username"].removeprefix("system:serviceaccount:"),
            entry["verb"],
            about.get("apiGroup", ""),
            "/".join(part for part in parts if part),
            about.get("namespace", ""),
            about.get("name", ""),
            entry.get("responseStatus", {}).get("code", 0),
            entry.get("requestObject"),
        )

    @property
    def right(self) -> str:
        """The right it takes: ``patch podgroups.scheduling.volcano.sh``."""
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}"


class AuditLog:
    """The log from a moment on."""

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        self._path = path
        self._start = 0 if from_start or not path.exists() else path.stat().st_size

    def requests(self) -> Iterator[Request]:
        """Return the requests that have been answered since that moment."""
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            log.seek(self._start)
            for line in log:
                if line.endswith(b"\n"):  # the last one may be half written
                    yield Request.from_entry(json.loads(line))

    def binds(self, namespace: str) -> Counter[str]:
        """Count the accepted bindings of each pod in a namespace."""
        return Counter(
            request.name
            for request in self.requests()
            if request.resource == "pods/binding"
            and request.namespace == namespace
            and request.status < 300
        )

    def refused(self) -> list[str]:
        """List the rights that were missing.

        An API server that has just started refuses everything for a moment: what was granted at
        another time is not missing.
        """
        answered: dict[bool, set[str]] = {True: set(), False: set()}
        for request in self.requests():
            answered[request.status == 403].add(f"{request.user}: {request.right}")
        return sorted(answered[True] - answered[False])

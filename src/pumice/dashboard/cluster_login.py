"""Login through the cluster: it identifies users and decides what they may see.

A token is sent to the API server (TokenReview); the namespaces that its owner may read are asked
for one by one (SubjectAccessReview), with the rights that `kubectl get podgroups` needs.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pumice import logs
from pumice.api.kinds import Manifest
from pumice.cluster.base import Cluster
from pumice.dashboard.documents.shared import Scope
from pumice.dashboard.security import Person, Right
from pumice.errors import ClusterError

_log = logs.get("dashboard")
_TRUSTED_S: Final = 60.0
"""How long an answer of the cluster is cached."""
_MOST_NAMESPACES: Final = 500
"""Maximum number of namespaces that are checked for one user."""
_GROUP: Final = "scheduling.volcano.sh"


@dataclass(slots=True)
class _Known:
    """The cluster's answers about one user."""

    until: float
    cluster: bool
    """Whether they may see nodes and queues."""
    everywhere: bool
    """Whether they may see all namespaces."""
    namespaces: dict[str, bool] = field(default_factory=dict)
    """Namespaces that were asked about, and whether they may see them."""


class ClusterLogin:
    """Users of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        namespaces: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask a cluster; ``namespaces`` are those that may have something to show."""
        self._cluster = cluster
        self._namespaces = namespaces
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Person, _Known] = {}
        self._earlier: list[str] = []
        """Namespaces that had something to show so far."""

    def identify(self, token: str) -> Person | None:
        """Ask the cluster whose token it is."""
        status = self._ask("authentication.k8s.io/v1", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        groups = tuple(str(group) for group in user.get("groups") or ())
        return Person(str(user["username"]), groups)

    def scope(self, person: Person) -> Scope:
        """Ask the cluster what a person may see; an answer is cached for a minute.

        Namespaces that are new since then are asked about at once.
        """
        now = self._clock()
        with self._lock:
            known = self._known.get(person)
        if known is None or now >= known.until:
            known = self._asked(person, now)
        if known.everywhere:
            return Scope(None, cluster=known.cluster)
        named = self._named()
        for name in named:
            if name not in known.namespaces:
                known.namespaces[name] = self._sees(person, name)
        seen = frozenset(name for name in named if known.namespaces[name])
        return Scope(seen, cluster=known.cluster)

    def _named(self) -> list[str]:
        """List namespaces with something to show, then those that had: a job may be suspended."""
        now = list(self._namespaces())
        with self._lock:
            named = list(dict.fromkeys([*now, *self._earlier]))[:_MOST_NAMESPACES]
            self._earlier = named
        return named

    def may(self, person: Person, right: Right) -> bool:
        """Ask the cluster whether a person has a right."""
        given = (("namespace", right.namespace), ("name", right.name))
        attributes = {"verb": right.verb, "group": right.group, "resource": right.resource}
        attributes |= {key: value for key, value in given if value}
        asked = {
            "user": person.name,
            "groups": list(person.groups),
            "resourceAttributes": attributes,
        }
        status = self._ask("authorization.k8s.io/v1", "SubjectAccessReview", asked)
        return status.get("allowed") is True

    def _asked(self, person: Person, now: float) -> _Known:
        cluster = all(
            self.may(person, Right("list", group, resource))
            for group, resource in (("", "nodes"), (_GROUP, "queues"))
        )
        known = _Known(now + _TRUSTED_S, cluster, self._sees(person))
        with self._lock:
            self._known = {who: kept for who, kept in self._known.items() if kept.until > now}
            self._known[person] = known
        return known

    def _sees(self, person: Person, namespace: str = "") -> bool:
        return all(
            self.may(person, Right("list", group, resource, namespace))
            for group, resource in ((_GROUP, "podgroups"), ("", "pods"))
        )

    def _ask(self, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Ask; a cluster that does not answer admits no user."""
        review: Manifest = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec}
        try:
            return self._cluster.create(review).get("status") or {}
        except ClusterError as error:
            _log.warning("cannot ask the cluster who may read", kind=kind, problem=error.problem)
            return {}

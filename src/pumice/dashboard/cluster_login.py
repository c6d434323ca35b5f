"""Login through the cluster: it identifies users and decides what they may see.

A token is sent to the API server (TokenReview); the namespaces that its owner may read are asked
for one by one (SubjectAccessReview), with the rights that `kubectl get podgroups` needs.
"""

import threading
import time
from collections.abc import Callable, Sequence
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
        self._scopes: dict[Person, tuple[float, Scope]] = {}

    def identify(self, token: str) -> Person | None:
        """Ask the cluster whose token it is."""
        status = self._ask("authentication.k8s.io/v1", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        groups = tuple(str(group) for group in user.get("groups") or ())
        return Person(str(user["username"]), groups)

    def scope(self, person: Person) -> Scope:
        """Ask the cluster what a person may see; the answer is cached for a minute."""
        now = self._clock()
        with self._lock:
            until, known = self._scopes.get(person, (0.0, None))
        if known is not None and now < until:
            return known
        found = self._scope(person)
        with self._lock:
            self._scopes = {who: kept for who, kept in self._scopes.items() if kept[0] > now}
            self._scopes[person] = (now + _TRUSTED_S, found)
        return found

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

    def _scope(self, person: Person) -> Scope:
        cluster = all(
            self.may(person, Right("list", group, resource))
            for group, resource in (("", "nodes"), (_GROUP, "queues"))
        )
        if self._sees(person):
            return Scope(None, cluster=cluster)
        named = list(self._namespaces())[:_MOST_NAMESPACES]
        return Scope(frozenset(name for name in named if self._sees(person, name)), cluster=cluster)

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

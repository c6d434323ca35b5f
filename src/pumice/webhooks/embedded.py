"""Admission for the embedded cluster: schemas and webhooks before an object is stored.

Set as ``EmbeddedCluster.admission``; refusals have the message of a real API
server with Volcano's webhooks.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

from pumice.api.kinds import (
    BUILT_IN_NAMES,
    JOB,
    QUEUE,
    SCHEDULER_NAME,
    Kind,
    Kinds,
    Manifest,
    kind_of,
)
from pumice.api.schema.build import CHECKED_KINDS
from pumice.api.schema.grammar import notation_of
from pumice.cluster.embedded.node_operations import registered
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import DeniedError, RejectedError
from pumice.webhooks.admission_chain import Chain
from pumice.webhooks.built_ins import check_built_in, check_head
from pumice.webhooks.contents import HEAD, KnownContents
from pumice.webhooks.custom_schemas import CustomSchemas
from pumice.webhooks.fields import refused
from pumice.webhooks.go_types import DecodeError, decode
from pumice.webhooks.pods.template import pod_content
from pumice.webhooks.registry import CHART_PATHS, SERVICES
from pumice.webhooks.review import Operation, Options, PatchError, Request, applied, children_of

_INVALID: Final = " is invalid: "
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_NO_SPEC: Final = "spec: Required value"
_POD_STATUS: Final = "v1.RunningPod"


class EmbeddedAdmission:
    """Judges what is written to an embedded cluster."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        options: Options | None = None,
        paths: Iterable[str] = CHART_PATHS,
        *,
        is_default_scheduler: bool = False,
    ) -> None:
        """Make one; with ``is_default_scheduler`` pods of the default scheduler become ours."""
        listed = tuple(paths)
        self._world, self._options = _World(cluster), options or Options()
        self._chain = Chain(self._world, self._options, listed)
        self._kinds = frozenset({*CHECKED_KINDS, *(SERVICES[path].kind for path in listed)})
        self._valid_pods = KnownContents[None]()
        self.custom_schemas = CustomSchemas(cluster)
        self._is_default_scheduler = is_default_scheduler

    def __call__(self, operation: str, manifest: Manifest, old: Manifest | None) -> Manifest:
        """Return the object to store.

        Raises:
            RejectedError: it does not fit its schema.
            DeniedError: a webhook refuses it.
        """
        kind = kind_of(manifest)
        if operation == "STATUS":
            self._check_status(manifest)
            return self._fitted(kind, manifest, old)
        if kind not in self._kinds:
            if operation == "DELETE":
                return manifest
            self._check_built_in(manifest, old)
            if operation == "CREATE" and kind in ("Node", "Pod"):
                return self._completed(kind, manifest)
            return self._fitted(kind, manifest, old)
        if operation == "UPDATE" and kind == JOB:
            manifest = self._filled(manifest)
        verdict = self._chain.judge(cast("Operation", operation), manifest, old)
        if verdict.allowed:
            judged: Manifest = verdict.object
            return judged
        place = _place(manifest)
        if verdict.reason == "InternalError":  # a default of the webhook found no place
            raise RejectedError(*place, _NO_SPEC)
        if verdict.reason == "Invalid" and _INVALID in verdict.message:
            if verdict.errors:
                raise refused(place, verdict.errors)
            raise RejectedError(*place, verdict.message.partition(_INVALID)[2])
        raise DeniedError(*place, verdict.message)

    def _fitted(self, kind: str, manifest: Manifest, old: Manifest | None) -> Manifest:
        """Complete and check an object of a kind that a client defined."""
        if kind in BUILT_IN_NAMES:
            return manifest
        return self.custom_schemas.prepared(self._known(manifest), manifest, old)

    def _completed(self, kind: str, manifest: Manifest) -> Manifest:
        """Complete a new node, or a pod that names no scheduler."""
        if kind == "Node":
            return registered(manifest, self._world.version)
        if not self._is_default_scheduler:
            return manifest
        named = manifest["spec"].get("schedulerName") or _DEFAULT_SCHEDULER
        chosen = SCHEDULER_NAME if named == _DEFAULT_SCHEDULER else named
        return {**manifest, "spec": {**manifest["spec"], "schedulerName": chosen}}

    def _check_built_in(self, manifest: Manifest, old: Manifest | None) -> None:
        """Check an object of Kubernetes' own kinds: types first, then values."""
        kind = self._known(manifest)
        notation = notation_of(kind.group, kind.kind)
        content = pod_content(manifest, is_new=old is None) if kind.name == "Pod" else b""
        if content in self._valid_pods:
            head: Manifest = {key: manifest[key] for key in HEAD if key in manifest}
            found = list(check_head(kind, self._decoded(kind, head, notation), old))
        else:
            found = list(check_built_in(kind, self._decoded(kind, manifest, notation), old))
        if found:
            raise refused(_place(manifest), found)
        self._valid_pods.remember(content, None)

    def _check_status(self, manifest: Manifest) -> None:
        """Check the types of a status, also of pods and Volcano's kinds."""
        kind = self._known(manifest)
        notation = notation_of(kind.group, kind.kind) if kind.name != "Pod" else _POD_STATUS
        kept: Manifest = {key: manifest[key] for key in (*HEAD, "status") if key in manifest}
        self._decoded(kind, kept, notation)

    def _known(self, manifest: Manifest) -> Kind:
        return self._world.kinds.of(manifest)

    @staticmethod
    def _decoded(kind: Kind, manifest: Manifest, notation: str) -> Manifest:
        start = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        if _has_null_item(manifest):
            raise DeniedError(*_place(manifest), f"{start}: expected no null in a list, got one")
        try:
            return decode(manifest, notation)
        except DecodeError as error:
            raise DeniedError(*_place(manifest), f"{start}: {error}") from None

    def _filled(self, job: Manifest) -> Manifest:
        """Fill in a changed job; the chain asks for changes of new objects only, as Volcano's."""
        request = Request(operation="UPDATE", object=job)
        patch = SERVICES["/jobs/mutate"].answer(request, self._world, self._options).patch
        try:
            filled: Manifest = applied(job, patch) if patch else job
        except PatchError:
            raise RejectedError(*_place(job), _NO_SPEC) from None
        return filled


def _has_null_item(value: Any) -> bool:
    """Return whether a list has a null in it: Go reads an empty item, most who read objects fail.

    Fields that are null are absent ones.
    """
    if isinstance(value, dict):
        return any(map(_has_null_item, value.values()))
    return isinstance(value, list) and any(one is None or _has_null_item(one) for one in value)


def _place(manifest: Manifest) -> tuple[str, str, str]:
    """Name the kind, namespace and name of an object, whatever it holds."""
    metadata = manifest.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return kind_of(manifest), str(known.get("namespace") or ""), str(known.get("name") or "")


class _World:
    """The objects in the cluster; a new queue counts as open, which it soon will be."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    @property
    def kinds(self) -> Kinds:
        return self._cluster.kinds

    @property
    def version(self) -> int:
        return self._cluster.version

    def queue(self, name: str) -> Manifest | None:
        found = self._cluster.peek(QUEUE, "", name)
        if found is None or (found.get("status") or {}).get("state"):
            return found
        return {**found, "status": {**(found.get("status") or {}), "state": "Open"}}

    def queues(self) -> Iterable[Manifest]:
        return self._cluster.list(QUEUE)[0]

    def below(self, name: str) -> list[Manifest]:
        return children_of(name, self.queues())

    def namespace(self, name: str) -> Manifest | None:
        return self._cluster.peek("Namespace", "", name)

    def find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object that is to be deleted; the store itself refuses a name that is taken."""
        return self._cluster.peek(kind, namespace, name)

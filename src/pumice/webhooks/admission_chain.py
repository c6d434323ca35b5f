"""The path of an object into a cluster: schema, webhooks and checks in an API server's order.

Used by the embedded cluster, by `pumice lint` and to run recorded decisions; a real API server
does this itself and only calls the webhooks.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Protocol

import msgspec

from pumice.api.annotations import NOT_READY_TAINTS
from pumice.api.cloning import clone
from pumice.api.kinds import BUILT_IN, Kind, Manifest
from pumice.api.schema.build import Node, schema_of
from pumice.api.schema.grammar import fields_of
from pumice.webhooks.fields import FieldError, aggregate, quoted
from pumice.webhooks.go_types import DecodeError, decode
from pumice.webhooks.metadata import check_metadata, check_metadata_update, finalizer_warnings
from pumice.webhooks.pods.defaults import filled_pod
from pumice.webhooks.pods.template import check_pod
from pumice.webhooks.registry import SERVICES, SKIPPED_NAMESPACES, Service
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Operation,
    Options,
    Patch,
    PatchError,
    Request,
    applied,
    unreadable,
)
from pumice.webhooks.schemas import SchemaContents, fill_in

Source = Literal["", "builtin", "crd-schema", "webhook"]
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in BUILT_IN}
_SUFFIX: Final = "x" * 5


class World(Existing, Protocol):
    """The existing objects, also of other kinds."""

    def find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object, None if there is none."""


class Call(msgspec.Struct, frozen=True):
    """A webhook call and its answer."""

    service: Service
    answer: Answer


class Verdict(msgspec.Struct):
    """The outcome of a write."""

    object: Any = None
    """As it would be stored."""
    message: str = ""
    """Empty: it is allowed."""
    code: int = 0
    reason: str | None = None
    source: Source = ""
    webhook: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
    calls: list[Call] = msgspec.field(default_factory=list)
    errors: list[FieldError] = msgspec.field(default_factory=list)
    """The findings of schema and metadata."""
    misread: Finding | None = None
    """A value of the wrong type, for which an API server does not look at the rest."""

    @property
    def allowed(self) -> bool:
        """Whether it may pass."""
        return not self.message


_Services = Mapping[tuple[str, Operation, bool], list[Service]]
"""The webhooks to ask by kind, operation, and whether they may change the object."""


def _by_request(services: Iterable[Service]) -> _Services:
    found: dict[tuple[str, Operation, bool], list[Service]] = {}
    for one in services:
        for operation in one.operations:
            found.setdefault((one.kind, operation, one.mutating), []).append(one)
    return found


class _RefusedError(Exception):
    """Ends the path of an object."""


class Chain:
    """Judges writes to a world by a set of webhooks."""

    def __init__(
        self, world: World, options: Options | None = None, paths: Iterable[str] = tuple(SERVICES)
    ) -> None:
        self._world = world
        self._options = options or Options()
        self._services = _by_request(SERVICES[path] for path in paths)
        self._contents = SchemaContents()

    def judge(self, operation: Operation, manifest: Any, old: Manifest | None = None) -> Verdict:
        """Follow an object; ``old`` is the stored one of an update."""
        verdict = Verdict(object=clone(manifest))
        with contextlib.suppress(_RefusedError):
            way = _Way(self._world, self._options, self._services, self._contents, verdict)
            way.go(operation, old)
        return verdict


class _Way(msgspec.Struct):
    """One object on its path."""

    world: World
    options: Options
    services: "_Services"
    contents: SchemaContents
    verdict: Verdict

    def go(self, operation: Operation, old: Manifest | None) -> None:
        kind = self._kind()
        self._decode(kind)
        if operation == "DELETE":
            self._delete(kind)
        elif operation == "UPDATE":
            self._update(kind, old)
        else:
            self._create(kind)

    def _create(self, kind: Kind) -> None:
        node = schema_of(kind.name)
        self._read(kind, node)
        given = self.verdict.object
        namespace = given["metadata"].get("namespace", "") if kind.namespaced else ""
        if kind.namespaced and self.world.namespace(namespace) is None:
            self._refuse(f'namespaces "{namespace}" not found', 404, "NotFound", "builtin")
        if kind.name == "Pod":
            self._fill_pod()
        for service in self._asked(kind, "CREATE", namespace, mutating=True):
            self._ask(service, "CREATE", namespace, None)
        given = self.verdict.object
        metadata = given["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName'][:58]}{_SUFFIX}"
        if kind.has_status:
            given.pop("status", None)
        self._check_new(kind, node)
        for service in self._asked(kind, "CREATE", namespace, mutating=False):
            self._ask(service, "CREATE", namespace, None)
        name = metadata["name"]
        if self.world.find(kind.name, namespace, name) is not None:
            text = f"{kind.resource} {quoted(name)} already exists"
            self._refuse(text, 409, "AlreadyExists", "builtin")

    def _update(self, kind: Kind, old: Manifest | None) -> None:
        node = schema_of(kind.name)
        self._read(kind, node)
        given = self.verdict.object
        metadata = given["metadata"]
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        if old is None:
            self._refuse(f"{self._named(kind)} not found", 404, "NotFound", "builtin")
            return
        self._check_version(kind, old)
        if kind.has_status:
            given.pop("status", None)
            if "status" in old:
                given["status"] = clone(old["status"])
        self._check_changed(kind, node, old)
        for service in self._asked(kind, "UPDATE", namespace, mutating=False):
            self._ask(service, "UPDATE", namespace, old)

    def _check_version(self, kind: Kind, old: Manifest) -> None:
        """Refuse a change of an object that is not the stored one."""
        version = self.verdict.object["metadata"].get("resourceVersion", "")
        if not version:
            text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            self._refuse(f"{self._named(kind)} is invalid: {text}", 422, "Invalid", "builtin")
        if version != old["metadata"].get("resourceVersion"):
            text = (
                f"Operation cannot be fulfilled on {self._named(kind)}: the object has been "
                "modified; please apply your changes to the latest version and try again"
            )
            self._refuse(text, 409, "Conflict", "builtin")

    def _named(self, kind: Kind) -> str:
        return f"{kind.resource} {quoted(self.verdict.object['metadata'].get('name', ''))}"

    def _delete(self, kind: Kind) -> None:
        metadata = self.verdict.object["metadata"]
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        name = metadata.get("name", "")
        old = self.world.find(kind.name, namespace, name)
        if old is None:
            text = f"{kind.resource} {quoted(name)} not found"
            self._refuse(text, 404, "NotFound", "builtin")
        for service in self._asked(kind, "DELETE", namespace, mutating=False):
            self._ask(service, "DELETE", namespace, old)

    def _kind(self) -> Kind:
        given = self.verdict.object
        if not isinstance(given, dict) or not isinstance(given.get("metadata") or {}, dict):
            self._refuse("Object 'Kind' is missing in the object", 400, "BadRequest", "builtin")
        given["metadata"] = given.get("metadata") or {}
        version, kind = given.get("apiVersion"), given.get("kind")
        group, slash, _ = str(version).rpartition("/")
        known = KINDS.get(f"{kind}.{group}" if slash else str(kind))
        if known is None:
            text = "the server could not find the requested resource"
            self._refuse(text, 404, "NotFound", "builtin")
            raise _RefusedError
        if known.api_version != version:
            self._warn_of_all_fields(known)
            text = (
                f"the API version in the data ({version}) "
                f"does not match the expected API version ({known.api_version})"
            )
            self._refuse(text, 400, "BadRequest", "builtin")
        return known

    def _warn_of_all_fields(self, kind: Kind) -> None:
        """Warn as an API server does for a version without a schema."""
        if schema_of(kind.name) is not None:  # a custom resource
            self._warn_of_metadata()
            fields = sorted(set(self.verdict.object) - {"apiVersion", "kind", "metadata"})
            self.verdict.warnings += [f'unknown field "{name}"' for name in fields]

    def _warn_of_metadata(self) -> None:
        unknown = sorted(self.verdict.object["metadata"].keys() - fields_of("meta.ObjectMeta"))
        self.verdict.warnings += [f'unknown field "metadata.{name}"' for name in unknown]

    def _decode(self, kind: Kind) -> None:
        """Decode what the API server itself decodes."""
        given = self.verdict.object
        start = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        try:
            if kind.name == "Pod":
                decode(given, "v1.Pod")
            metadata = decode(given["metadata"], "meta.ObjectMeta")
        except DecodeError as error:
            if kind.name == "Pod":
                self.verdict.misread = unreadable(error).findings[0]
            self._refuse(f"{start}{error}", 400, "BadRequest", "builtin")
            return
        self._warn_of_metadata()
        given["metadata"] = metadata

    def _read(self, kind: Kind, node: Node | None) -> None:
        """Fill in defaults and remove unknown fields."""
        given = self.verdict.object
        if kind.namespaced:
            given["metadata"]["namespace"] = given["metadata"].get("namespace") or "default"
        if node is not None:
            unknown = self.contents.prepare(given, node)
            self.verdict.warnings += [f'unknown field "{path}"' for path in unknown]

    def _fill_pod(self) -> None:
        pod = filled_pod(decode(self.verdict.object, "v1.Pod"))
        spec = pod["spec"]
        tolerations = list(spec.get("tolerations") or ())
        for key in NOT_READY_TAINTS:
            if not any(_tolerates(one, key) for one in tolerations):
                added = {
                    "key": key, "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }  # fmt: skip
                tolerations.append(added)
        spec["tolerations"] = tolerations
        self.verdict.object = pod

    def _asked(
        self, kind: Kind, operation: Operation, namespace: str, *, mutating: bool
    ) -> list[Service]:
        if kind.namespaced and namespace in SKIPPED_NAMESPACES:
            return []
        return self.services.get((kind.name, operation, mutating), [])

    def _ask(
        self, service: Service, operation: Operation, namespace: str, old: Manifest | None
    ) -> None:
        given = self.verdict.object
        request = Request(
            operation=operation,
            object=None if operation == "DELETE" else given,
            old=old,
            namespace=namespace,
            name=given["metadata"].get("name", ""),
        )
        answer = service.answer(request, self.world, self.options)
        self.verdict.calls.append(Call(service, answer))
        self.verdict.webhook = service.path
        if answer.message:
            text = f'admission webhook "{service.name}" denied the request: {answer.message}'
            self._refuse(text, 400, None, "webhook")
        if answer.patch:
            self._change(answer.patch, service)
        self.verdict.webhook = ""

    def _change(self, patch: Patch, service: Service) -> None:
        try:
            self.verdict.object = applied(self.verdict.object, patch)
        except PatchError as error:
            text = f"Internal error occurred: {error}"
            self._refuse(text, 500, "InternalError", "webhook")
        fill_in(self.verdict.object, schema_of(service.kind))

    def _check_new(self, kind: Kind, node: Node | None) -> None:
        given = self.verdict.object
        if kind.name == "Pod":
            self._invalid(kind, list(check_pod(decode(given, "v1.Pod"))), "builtin")
            return
        found = list(check_metadata(given["metadata"], namespaced=kind.namespaced))
        source: Source = "builtin" if found else "crd-schema"
        if node is not None:
            found += self.contents.faults(given, node)
        self._invalid(kind, found, source)
        self.verdict.warnings += finalizer_warnings(given["metadata"].get("finalizers") or ())

    def _check_changed(self, kind: Kind, node: Node | None, old: Manifest) -> None:
        given = self.verdict.object
        found = list(check_metadata_update(given["metadata"], old["metadata"]))
        source: Source = "builtin" if found else "crd-schema"
        if node is not None:
            found += self.contents.faults(given, node, old)
        self._invalid(kind, found, source)

    def _invalid(self, kind: Kind, found: list[FieldError], source: Source) -> None:
        if found:
            self.verdict.errors = found
            name = self.verdict.object["metadata"].get("name", "")
            text = f"{kind.name} {quoted(name)} is invalid: {aggregate(found)}"
            self._refuse(text, 422, "Invalid", source)

    def _refuse(self, message: str, code: int, reason: str | None, source: Source) -> None:
        verdict = self.verdict
        verdict.message, verdict.code, verdict.reason = message, code, reason
        verdict.source = source
        raise _RefusedError


def _tolerates(toleration: Mapping[str, Any], key: str) -> bool:
    effect = toleration.get("effect", "") in ("", "NoExecute")
    return effect and toleration.get("key", "") in ("", key)

"""The Kubernetes REST API on an embedded cluster: a request in, an answer out; no sockets here."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from pumice.api.json_text import parse_json
from pumice.api.kinds import Manifest
from pumice.api.text_files import decoded
from pumice.api.yaml_text import parse_yaml
from pumice.apiserver import write_verbs
from pumice.apiserver.columns import many, one, wanted_form
from pumice.apiserver.discovery import AGGREGATED, document
from pumice.apiserver.failures import RequestError, failure, status, success, typed
from pumice.apiserver.field_validation import field_warnings
from pumice.apiserver.protobuf import read_object
from pumice.apiserver.reviews import answered, is_review, review_at
from pumice.apiserver.selectors import selector
from pumice.apiserver.watches import EventLines, Watch, WatchRequest
from pumice.apiserver.write_verbs import ResourcePath
from pumice.cluster.base import PatchType
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import InputError, NotFoundError, PumiceError
from pumice.webhooks.cpu_budget import OverBudgetError, cpu_budget
from pumice.webhooks.custom_schemas import CustomSchemas

JSON = "application/json"
_BODY: Final = "body"
_MOST_PARTS: Final = 100_000
"""Mappings and lists of an object: a few bytes of each cost far more time and memory when read."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client; ``path`` is decoded only after it is split."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = JSON
    content_type: str = JSON
    body: bytes = b""

    def says(self, name: str) -> bool:
        """Return whether a query parameter is true: any value but two, as for an API server."""
        return name in self.query and self.query[name].lower() not in ("false", "0")

    def content(self) -> Any:
        """Read the body, None if there is none.

        Raises:
            RequestError: it cannot be read.
        """
        if not self.body.strip():
            return None
        if "protobuf" in self.content_type:
            return read_object(self.body)
        if self.body.count(b"{") + self.body.count(b"[") > _MOST_PARTS:
            problem = f"expected at most {_MOST_PARTS:,} mappings and lists in a body, got more"
            raise RequestError(413, problem)
        try:
            text = decoded(self.body, _BODY)
            if "yaml" not in self.content_type:
                return parse_json(text, _BODY, unique=False)
            documents = parse_yaml(text, _BODY, unique=False)
        except InputError as error:
            raise RequestError(400, f"the body cannot be read: {error}") from None
        if len(documents) != 1:
            raise RequestError(400, f"expected one object, got {len(documents)}")
        return documents[0]

    def manifest(self) -> Manifest:
        """Read the body as an object.

        Raises:
            RequestError: it is none.
        """
        content = self.content()
        if not isinstance(content, dict):
            raise RequestError(400, f"expected an object, got {type(content).__name__}")
        return content

    def patch_type(self) -> PatchType:
        """Return the patch type of the body.

        Raises:
            RequestError: the type is unknown.
        """
        found = write_verbs.PATCHES.get(self.content_type.partition(";")[0].strip())
        if found is None:
            problem = f"expected one of {', '.join(write_verbs.PATCHES)}, got {self.content_type}"
            raise RequestError(415, problem)
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets: data, a text, or a watch whose lines are sent as things happen."""

    code: int
    content: Any = None
    content_type: str = JSON
    watch: Watch | None = None
    warnings: Sequence[str] = ()


_REQUEST_S: Final = 5.0
"""Seconds of processor time for the checks of one request; others wait meanwhile."""
_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})
_WATCH_S: Final = 1800
_LONGEST_NUMBER: Final = 18


def _nothing() -> None:
    """Do nothing."""


class RestApi:
    """Answers requests; ``on_write`` is called after each that may have changed something."""

    def __init__(self, cluster: EmbeddedCluster, on_write: Callable[[], object] = _nothing) -> None:
        self.cluster = cluster
        self._on_write = on_write
        self._event_lines = EventLines()
        self._custom = CustomSchemas(cluster)

    def answer(self, request: Request) -> Answer:
        """Answer a request; errors become part of the answer."""
        try:
            with cpu_budget(_REQUEST_S):
                return self._dispatch(request)
        except OverBudgetError:
            problem = f"the object is too large: checking it takes more than {_REQUEST_S:g} s"
            return Answer(413, failure(RequestError(413, problem), self.cluster.kinds))
        except PumiceError as error:
            refused = failure(error, self.cluster.kinds)
            return Answer(refused["code"], refused)

    def _dispatch(self, request: Request) -> Answer:
        parts = [part for part in request.path.split("/") if part]
        if "%" in request.path:
            parts = [unquote(part) for part in parts]
        path = self._resource_path(parts)
        if path is None:
            return self._describe(parts, request)
        if is_review(path.kind):
            return self._review(path, request)
        if request.method == "GET":
            return self._read(path, request)
        answer = self._write(path, request)
        self._on_write()
        return answer

    def _resource_path(self, parts: list[str]) -> ResourcePath | None:
        """Read an address, None if it names no objects."""
        if parts[:1] == ["api"] and len(parts) > 2:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[:1] == ["apis"] and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        kind = self.cluster.kinds.at(group, version, rest[0]) or review_at(group, version, rest[0])
        if kind is None or len(rest) > 3:
            raise RequestError(404, "the server could not find the requested resource")
        name, subresource = [*rest[1:], "", ""][:2]
        if name and kind.namespaced and not namespace:
            raise RequestError(404, "the server could not find the requested resource")
        return ResourcePath(kind, namespace if kind.namespaced else "", name, subresource)

    def _describe(self, parts: list[str], request: Request) -> Answer:
        """Answer a question about the server itself."""
        if request.method != "GET":
            raise RequestError(405, f"{request.method} is not served at {request.path}")
        if len(parts) == 1 and parts[0] in _HEALTH:
            return Answer(200, "ok", "text/plain")
        found = document(self.cluster.kinds, parts, request.accept)
        if found is None:
            raise RequestError(404, "the server could not find the requested resource")
        if found.get("kind") == "APIGroupDiscoveryList":
            return Answer(200, found, AGGREGATED)
        return Answer(200, found)

    @staticmethod
    def _review(path: ResourcePath, request: Request) -> Answer:
        """Answer a question about rights or identity."""
        if request.method != "POST" or path.name:
            raise RequestError(405, f"a {path.kind.kind} can only be created")
        return Answer(201, answered(path.kind, request.manifest()))

    def _read(self, path: ResourcePath, request: Request) -> Answer:
        form = wanted_form(request.accept, request.query.get("includeObject", ""))
        cluster = self.cluster
        if not path.name:
            if request.says("watch"):
                asked = _watch_request(path, request)
                return Answer(200, watch=Watch(cluster, asked, lines=self._event_lines))
            return self._list(path, request)
        if path.subresource == "scale":
            return Answer(200, write_verbs.scale_of(cluster, path))
        if path.subresource not in ("", "status"):
            raise write_verbs.no_subresource(path)
        manifest = cluster.peek(path.kind.name, path.namespace, path.name)
        if manifest is None:
            raise NotFoundError(path.kind.name, path.namespace, path.name)
        return Answer(200, one(manifest, path.kind, form, cluster.now()))

    def _list(self, path: ResourcePath, request: Request) -> Answer:
        query, kind = request.query, path.kind
        fits = selector(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        items, version = self.cluster.list(kind.name, path.namespace)
        if fits is not None:
            items = [item for item in items if fits(item)]
        if query.get("continue"):  # whoever watches from the list must hear what changed meanwhile
            *after, version = _read_token(query["continue"])
            items = [item for item in items if [*_position(item)] > after]
        metadata: Manifest = {"resourceVersion": version}
        limit = _number(query, "limit")
        if limit and len(items) > limit:
            metadata["continue"] = _token(*_position(items[limit - 1]), version)
            metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        form = wanted_form(request.accept, query.get("includeObject", ""))
        return Answer(200, many(items, kind, form, self.cluster.now(), metadata))

    def _write(self, path: ResourcePath, request: Request) -> Answer:
        """Carry a write out, in a copy if it is a dry run."""
        cluster = self.cluster
        options: Mapping[str, Any] = {}
        if request.method == "DELETE":
            options = typed(request.content(), "meta.DeleteOptions")
        dry = request.query.get("dryRun") or options.get("dryRun")
        if request.method == "DELETE":
            return self._delete(path, request, options, dry=bool(dry))
        if dry:
            cluster = write_verbs.dry_run_copy(cluster, self._with_name(path, request))
        if request.method == "POST":
            return self._post(cluster, path, request)
        if not path.name:
            raise RequestError(405, f"{request.method} needs the name of an object")
        if request.method == "PUT":
            content = request.manifest()
            warnings = [] if path.subresource else self._warnings(path, content, request)
            manifest, is_new = write_verbs.update(cluster, path, content), False
        elif request.method == "PATCH":
            patch_type = request.patch_type()
            content = request.manifest() if patch_type == "apply" else request.content()
            wanted = write_verbs.patched(cluster, path, content, patch_type)
            warnings = self._warnings(path, wanted, request)
            manifest, is_new = write_verbs.patch(cluster, path, content, patch_type)
        else:
            raise RequestError(405, f"{request.method} is not served")
        if path.subresource == "scale":
            return Answer(200, manifest)
        shown = self._outcome(cluster, path, manifest, request)
        return Answer(201 if is_new else 200, shown, warnings=warnings)

    def _outcome(
        self, cluster: EmbeddedCluster, path: ResourcePath, manifest: Manifest, request: Request
    ) -> Manifest:
        """Return what was written, in the form that the client wants."""
        if cluster is not self.cluster:
            before = self.cluster.peek(path.kind.name, path.namespace, path.name)
            manifest = write_verbs.as_before(manifest, before)
        return one(manifest, path.kind, wanted_form(request.accept), cluster.now())

    def _warnings(self, path: ResourcePath, content: Any, request: Request) -> list[str]:
        """Return warnings about fields that do not exist, which the client may want refused."""
        return field_warnings(path.kind, content, request.query, self._custom.of(path.kind))

    @staticmethod
    def _with_name(path: ResourcePath, request: Request) -> ResourcePath:
        """Complete the address of a new object by the name in its body."""
        if path.name or request.method != "POST":
            return path
        metadata = request.manifest().get("metadata")
        name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
        return ResourcePath(path.kind, path.namespace, name)

    def _post(self, cluster: EmbeddedCluster, path: ResourcePath, request: Request) -> Answer:
        served = path.kind.name == "Pod" and path.subresource in ("binding", "eviction")
        if path.subresource and not served:
            raise write_verbs.no_subresource(path)
        content = request.manifest()
        if not path.name:
            warnings = self._warnings(path, content, request)
            made = write_verbs.create(cluster, path, content)
            shown = self._outcome(cluster, path, made, request)
            return Answer(201, shown, warnings=warnings)
        if path.subresource == "binding":
            write_verbs.bind(cluster, path, content)
        elif path.subresource == "eviction":
            write_verbs.check_budgets(self.cluster, path)
            options = typed(content, "policy.Eviction").get("deleteOptions") or {}
            write_verbs.delete(cluster, path, options)
        else:
            raise RequestError(405, "POST goes to the collection, not to an object")
        return Answer(201, status(201, "", ""))

    def _delete(
        self, path: ResourcePath, request: Request, options: Mapping[str, Any], *, dry: bool
    ) -> Answer:
        """Delete one object, or all that a selector matches."""
        cluster = self.cluster
        options = {**_options_in_query(request.query), **options}
        if path.subresource:
            raise RequestError(405, f"'{path.subresource}' cannot be deleted")
        if not path.name:
            listed = self._list(path, Request("GET", request.path, request.query)).content
            for item in () if dry else listed["items"]:
                metadata = item["metadata"]
                home = metadata.get("namespace", "")
                write_verbs.delete(
                    cluster, ResourcePath(path.kind, home, metadata["name"]), options
                )
            return Answer(200, listed)
        before = cluster.get(path.kind.name, path.namespace, path.name)
        left = None if dry else write_verbs.delete(cluster, path, options)
        if left is not None:
            return Answer(200, left)
        return Answer(200, success(path.kind, path.name, before["metadata"]["uid"]))


def _options_in_query(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a deletion that its address states."""
    options: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        options["gracePeriodSeconds"] = _number(query, "gracePeriodSeconds")
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    return options


def _watch_request(path: ResourcePath, request: Request) -> WatchRequest:
    query = request.query
    initial = request.says("sendInitialEvents")
    return WatchRequest(
        path.kind,
        path.namespace,
        since="" if initial else _version(query),
        selector=selector(query.get("labelSelector", ""), query.get("fieldSelector", "")),
        form=wanted_form(request.accept, query.get("includeObject", "")),
        timeout_s=_number(query, "timeoutSeconds") or _WATCH_S,
        bookmarks=request.says("allowWatchBookmarks"),
        initial=initial,
    )


def _version(query: Mapping[str, str]) -> str:
    """Return the version that a watch begins with, empty if none is named."""
    if query.get("resourceVersion"):
        _number(query, "resourceVersion")
    return query.get("resourceVersion", "")


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    if not (text.isdecimal() and text.isascii() and len(text) <= _LONGEST_NUMBER):
        raise RequestError(400, f"expected a number as {name}, got '{text:.40}'")
    return int(text)


def _position(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _token(*place: str) -> str:
    """Write where a list stopped, and the version that it began with."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_token(token: str) -> tuple[str, str, str]:
    try:
        place = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, RecursionError):
        place = None
    match place:
        case [str(namespace), str(name), str(version)] if version.isdecimal():
            return namespace, name, version
    raise RequestError(400, "continue key is not valid")

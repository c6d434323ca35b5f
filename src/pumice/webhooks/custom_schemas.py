"""The schemas of kinds that clients define, as the nodes by which custom resources are checked.

Types, required fields, enumerations, bounds, patterns, keys of lists and defaults are applied, and
unknown fields are pruned; ``oneOf`` and its like and rules in CEL are not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pumice.api.cloning import clone
from pumice.api.kinds import BUILT_IN_NAMES, CUSTOM_KIND, Kind, Manifest
from pumice.api.patterns import PatternError, check_pattern
from pumice.api.schema.build import Node
from pumice.cluster.embedded.custom_kinds import served_versions
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.webhooks.fields import FieldError, Path, invalid, refused, required, unsupported
from pumice.webhooks.names import dns_subdomain, each
from pumice.webhooks.schemas import SchemaContents

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_FORMATS: Final = frozenset({"date-time", "int32", "int64"})
_DEEPEST: Final = 64
_KEPT: Final = "x-kubernetes-preserve-unknown-fields"
_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
}
_OPEN: Final = Node()


def node_of(schema: Any) -> Node:
    """Build the node of a schema that ``faults_of`` finds nothing in."""
    if not isinstance(schema, dict):
        return _OPEN
    listed, values = schema.get("properties"), schema.get("additionalProperties")
    is_open = bool(schema.get(_KEPT)) or values is True
    properties = {str(key): node_of(below) for key, below in (listed or {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        head = {"apiVersion": _OPEN, "kind": _OPEN, "metadata": _OPEN}
        properties = {**head, **properties}
    kind = schema.get("x-kubernetes-list-type")
    text = str(schema.get("format") or "")
    bounds: Any = {ours: schema[word] for word, ours in _BOUNDS.items() if word in schema}
    return Node(
        type="" if is_open and schema.get("type") == "object" else str(schema.get("type") or ""),
        format=text if text in _FORMATS else "",
        properties=properties if listed is not None else None,
        items=node_of(schema["items"]) if "items" in schema else None,
        values=node_of(values) if isinstance(values, dict) else None,
        required=tuple(map(str, schema.get("required") or ())),
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else (),
        unique=kind == "set",
        int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
        has_default="default" in schema,
        default=schema.get("default"),
        pattern=str(schema.get("pattern") or ""),
        enum=tuple(schema.get("enum") or ()),
        **bounds,
    )


def faults_of(schema: Any, path: Path) -> Iterator[FieldError]:
    """Find what keeps a schema from being used."""
    if len(path) > _DEEPEST:
        yield invalid(path, "", f"must have at most {_DEEPEST} levels")
        return
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be an object")
        return
    if schema.get("type") not in (None, "", *_TYPES):
        yield unsupported((*path, "type"), schema["type"], _TYPES)
    yield from _pattern_faults(schema.get("pattern"), path)
    yield from _shape_faults(schema, path)
    properties = schema.get("properties")
    for key, below in (properties if isinstance(properties, dict) else {}).items():
        yield from faults_of(below, (*path, "properties", str(key)))
    for word in ("items", "additionalProperties"):
        below = schema.get(word)
        if below is not None and not isinstance(below, bool):
            yield from faults_of(below, (*path, word))


def _shape_faults(schema: Manifest, path: Path) -> Iterator[FieldError]:
    """Find words of a schema whose values are of the wrong type."""
    wanted = {
        **dict.fromkeys(_BOUNDS, (int | float, "a number")),
        **dict.fromkeys(("required", "enum", "x-kubernetes-list-map-keys"), (list, "a list")),
        "properties": (dict, "an object"),
    }
    for word, (type_, text) in wanted.items():
        value = schema.get(word)
        if value is not None and (not isinstance(value, type_) or isinstance(value, bool)):
            yield invalid((*path, word), value, f"must be {text}")


def _pattern_faults(pattern: Any, path: Path) -> Iterator[FieldError]:
    if not pattern:
        return
    try:
        check_pattern(str(pattern))
    except PatternError as error:
        yield invalid(
            (*path, "pattern"), str(pattern), f"must be a valid regular expression: {error}"
        )


def check_definition(definition: Manifest) -> Iterator[FieldError]:
    """Check a definition whose types are right."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    for path, text in {
        ("spec", "group"): spec.get("group"),
        ("spec", "names", "plural"): names.get("plural"),
        ("spec", "names", "kind"): names.get("kind"),
    }.items():
        if not text:
            yield required(path)
    if spec.get("group"):
        yield from each(dns_subdomain(spec["group"]), ("spec", "group"), spec["group"])
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield unsupported(("spec", "scope"), spec.get("scope") or "", ("Cluster", "Namespaced"))
    name, wanted = definition["metadata"].get("name"), f"{names.get('plural')}.{spec.get('group')}"
    if name != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        yield invalid(("metadata", "name"), name, text)
    versions = spec.get("versions") or []
    if sum(bool(one.get("storage")) for one in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid(("spec", "versions"), len(versions), text)
    for index, version in enumerate(versions):
        yield from _version_faults(version, ("spec", "versions", index))


def _version_faults(version: Manifest, path: Path) -> Iterator[FieldError]:
    if not version.get("name"):
        yield required((*path, "name"))
    schema = version.get("schema") or {}
    place = (*path, "schema", "openAPIV3Schema")
    if not isinstance(schema, dict) or not schema.get("openAPIV3Schema"):
        yield required(place)
    else:
        yield from faults_of(schema["openAPIV3Schema"], place)
    own = version.get("subresources") or {}
    if not isinstance(own, dict) or not isinstance(own.get("scale") or {}, dict):
        yield invalid((*path, "subresources"), own, "must be an object")


class CustomSchemas:
    """The schemas of the kinds that clients defined in a cluster, each built once."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._known: dict[str, tuple[str, Node, SchemaContents]] = {}
        """By the name of their definition, with its version."""

    def of(self, kind: Kind) -> Node | None:
        """Return the schema of a kind, None if no client defined it."""
        found = self._find(kind)
        return None if found is None else found[0]

    def prepared(self, kind: Kind, manifest: Manifest, old: Manifest | None) -> Manifest:
        """Return an object with defaults and without unknown fields.

        Raises:
            RejectedError: it does not fit its schema.
        """
        found = self._find(kind)
        if found is None:
            return manifest
        node, contents = found
        given: Manifest = clone(manifest)
        contents.prepare(given, node)
        faults = contents.faults(given, node, old)
        if faults:
            metadata = given["metadata"]
            place = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
            raise refused((kind.name, *place), faults)
        return given

    def _find(self, kind: Kind) -> tuple[Node, SchemaContents] | None:
        if kind.name in BUILT_IN_NAMES:
            return None
        definition = self._cluster.peek(CUSTOM_KIND, "", kind.resource)
        if definition is None:
            return None
        version = definition["metadata"]["resourceVersion"]
        known = self._known.get(kind.resource)
        if known is None or known[0] != version:
            (first, *_) = served_versions(definition)
            node = _whole(node_of((first.get("schema") or {}).get("openAPIV3Schema")))
            known = self._known[kind.resource] = version, node, SchemaContents()
        return known[1:]


def _whole(node: Node) -> Node:
    """Add the fields that every object has."""
    head = {"apiVersion": _OPEN, "kind": _OPEN, "metadata": _OPEN}
    return replace(node, properties={**(node.properties or {}), **head})

"""The OpenAPI documents that kubectl needs to leave validation to the server.

The schemas declare no fields: objects are open.
"""

from typing import Any, Final

from pumice.api.kinds import Kind, Kinds

_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation", "force")
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)


def _root(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def described(kinds: Kinds, version: str, root: str) -> dict[str, Any] | None:
    """Return the document of a version of OpenAPI at an address, None if there is none."""
    if version == "v2" and not root:
        return all_kinds(kinds)
    if version != "v3":
        return None
    return document(kinds, root) if root else index(kinds)


def index(kinds: Kinds) -> dict[str, Any]:
    """Return the address of the document of each version of each group."""
    roots = dict.fromkeys(_root(kind.group, kind.version) for kind in kinds)
    return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}


def document(kinds: Kinds, root: str) -> dict[str, Any] | None:
    """Describe one version of a group, None if it is not served."""
    found = [kind for kind in kinds if _root(kind.group, kind.version) == root]
    if not found:
        return None
    paths, schemas = {}, {}
    for kind in found:
        inside = "namespaces/{namespace}/" if kind.namespaced else ""
        paths[f"/{root}/{inside}{kind.plural}/{{name}}"] = {
            verb: _operation(kind, verb) for verb in ("get", "put", "patch", "delete")
        }
        paths[f"/{root}/{inside}{kind.plural}"] = {"post": _operation(kind, "post")}
        schemas[_schema_name(kind)] = _schema(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Pumice", "version": "v1.32.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def all_kinds(kinds: Kinds) -> dict[str, Any]:
    """Describe everything that is served, in version 2 of OpenAPI."""
    paths: dict[str, Any] = {}
    for kind in kinds:
        root = _root(kind.group, kind.version)
        inside = "namespaces/{namespace}/" if kind.namespaced else ""
        place = f"/{root}/{inside}{kind.plural}"
        paths[f"{place}/{{name}}"] = {
            verb: _old_operation(kind, verb) for verb in ("get", "put", "patch", "delete")
        }
        paths[place] = {"post": _old_operation(kind, "post")}
    return {
        "swagger": "2.0",
        "info": {"title": "Pumice", "version": "v1.32.0"},
        "paths": paths,
        "definitions": {_schema_name(kind): _schema(kind) for kind in kinds},
    }


def _old_operation(kind: Kind, verb: str) -> dict[str, Any]:
    schema = {"$ref": f"#/definitions/{_schema_name(kind)}"}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "type": "string", "uniqueItems": True} for name in _PARAMETERS
    ]
    if verb in ("put", "post", "patch"):
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
    return {
        "operationId": f"{verb}-{kind.version}-{kind.name}",
        "consumes": [*_PATCHES] if verb == "patch" else ["*/*"],
        "produces": ["application/json"],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "schema": schema}},
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _names(kind),
    }


def _schema(kind: Kind) -> dict[str, Any]:
    return {
        "type": "object",
        "x-kubernetes-group-version-kind": [_names(kind)],
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _names(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _schema_name(kind: Kind) -> str:
    return ".".join((*reversed((kind.group or "core").split(".")), kind.version, kind.kind))


def _operation(kind: Kind, verb: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{_schema_name(kind)}"}
    operation: dict[str, Any] = {
        "operationId": f"{verb}-{kind.name}",
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS
        ],
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": schema}}}
        },
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _names(kind),
    }
    if verb in ("put", "post", "patch"):
        types = _PATCHES if verb == "patch" else ("application/json",)
        operation["requestBody"] = {"content": {name: {"schema": schema} for name in types}}
    return operation

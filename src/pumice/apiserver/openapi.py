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
        schemas[_schema_name(kind)] = {
            "type": "object",
            "x-kubernetes-group-version-kind": [_names(kind)],
            "x-kubernetes-preserve-unknown-fields": True,
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Pumice", "version": "v1.32.0"},
        "paths": paths,
        "components": {"schemas": schemas},
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

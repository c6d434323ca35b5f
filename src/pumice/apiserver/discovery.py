"""Discovery documents of a server: groups, versions, resources; in both forms of discovery."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pumice.api.kinds import EMBEDDED_BUILD, Kind, Kinds, Manifest
from pumice.apiserver import openapi
from pumice.apiserver.reviews import REVIEWS, is_review

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ALL: Final = frozenset(
    {"Pod", "Service", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "Job.batch"}
)
"""Kinds that `kubectl get all` shows."""
VERSION: Final = {
    "major": "1",
    "minor": "32",
    "gitVersion": f"v1.32.0{EMBEDDED_BUILD}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "python",
    "platform": "linux/amd64",
}
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_PATHS: Final = [
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
]

Resource = dict[str, Any]
_Sub = tuple[str, str, str, str, tuple[str, ...]]
_STATUS_VERBS: Final = ("get", "patch", "update")


def _subresources(kind: Kind) -> list[_Sub]:
    """Return name, group, version, kind and verbs of the subresources of an object."""
    found: list[_Sub] = []
    if kind.has_status:
        found.append(("status", kind.group, kind.version, kind.kind, _STATUS_VERBS))
    if kind.name == "Pod":
        found.append(("binding", "", "v1", "Binding", ("create",)))
        found.append(("eviction", "policy", "v1", "Eviction", ("create",)))
    if kind.has_scale:
        found.append(("scale", "autoscaling", "v1", "Scale", _STATUS_VERBS))
    return found


def _verbs(kind: Kind) -> list[str]:
    return ["create"] if is_review(kind) else [*VERBS]


def _of_group(kinds: Iterable[Kind], group: str, version: str) -> list[Kind]:
    listed = (*kinds, *REVIEWS)
    return [kind for kind in listed if (kind.group, kind.version) == (group, version)]


def _categories(kind: Kind) -> list[str]:
    return ["all"] if kind.name in _ALL else [*kind.categories]


def api_versions() -> Resource:
    """Return the versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _groups(kinds: Iterable[Kind]) -> dict[str, list[str]]:
    """Return the versions of each named group, in the order they are known."""
    groups: dict[str, list[str]] = {}
    for kind in (*kinds, *REVIEWS):
        versions = groups.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    groups.pop("", None)
    return groups


def _group(name: str, versions: list[str]) -> Resource:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def api_groups(kinds: Kinds) -> Resource:
    """List the named groups."""
    groups = [_group(name, versions) for name, versions in _groups(kinds).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: Kinds, name: str) -> Resource | None:
    """Describe one group, None if it is not served."""
    versions = _groups(kinds).get(name)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def api_resources(kinds: Kinds, group: str, version: str) -> Resource | None:
    """List the resources of one version of a group, None if there are none."""
    found = _of_group(kinds, group, version)
    if not found:
        return None
    resources: list[Resource] = []
    for kind in found:
        whole = {"namespaced": kind.namespaced}
        resources.append(
            {
                "name": kind.plural,
                "singularName": kind.singular,
                **whole,
                "kind": kind.kind,
                "verbs": _verbs(kind),
                "shortNames": list(kind.short_names),
                "categories": _categories(kind),
            }
        )
        for name, its_group, its_version, its_kind, verbs in _subresources(kind):
            place = {"group": its_group, "version": its_version} if its_group != group else {}
            resources.append(
                {
                    "name": f"{kind.plural}/{name}",
                    "singularName": "",
                    **whole,
                    **place,
                    "kind": its_kind,
                    "verbs": list(verbs),
                }
            )
    version_text = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version_text,
        "resources": resources,
    }


def aggregated(kinds: Kinds, *, core: bool) -> Resource:
    """Describe all groups at once, or the core group."""
    groups = {"": ["v1"]} if core else _groups(kinds)
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {},
            "versions": [
                {
                    "version": version,
                    "resources": _aggregated_resources(kinds, name, version),
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for name, versions in groups.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_resources(kinds: Kinds, group: str, version: str) -> list[Resource]:
    return [
        {
            "resource": kind.plural,
            "responseKind": {"group": group, "version": version, "kind": kind.kind},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": _verbs(kind),
            "shortNames": list(kind.short_names),
            "categories": _categories(kind),
            "subresources": [
                {
                    "subresource": name,
                    "responseKind": {"group": its_group, "version": its_version, "kind": its_kind},
                    "verbs": list(verbs),
                }
                for name, its_group, its_version, its_kind, verbs in _subresources(kind)
            ],
        }
        for kind in _of_group(kinds, group, version)
    ]


def document(kinds: Kinds, parts: Sequence[str], accept: str) -> Manifest | None:
    """Return the document at an address, None if there is none."""
    match [*parts]:
        case []:
            return {"paths": _PATHS}
        case ["version"]:
            return dict(VERSION)
        case ["api" | "apis" as root] if _all_at_once(accept):
            return aggregated(kinds, core=root == "api")
        case ["api" | "apis" as root, *rest]:
            return _core(kinds, rest) if root == "api" else _named(kinds, rest)
        case ["openapi", version, *rest]:
            return openapi.described(kinds, version, "/".join(rest))
    return None


def _all_at_once(accept: str) -> bool:
    choices = [choice.replace(" ", "").split(";") for choice in accept.split(",")]
    return any({"as=APIGroupDiscoveryList", "v=v2"} <= {*choice} for choice in choices)


def _core(kinds: Kinds, rest: Sequence[str]) -> Manifest | None:
    if not rest:
        return api_versions()
    return api_resources(kinds, "", rest[0]) if len(rest) == 1 else None


def _named(kinds: Kinds, rest: Sequence[str]) -> Manifest | None:
    if not rest:
        return api_groups(kinds)
    if len(rest) == 1:
        return api_group(kinds, rest[0])
    return api_resources(kinds, rest[0], rest[1]) if len(rest) == 2 else None

"""Which document lies at an address that names no objects: version, discovery, OpenAPI."""

from collections.abc import Sequence

from pumice.api.kinds import Kinds, Manifest
from pumice.apiserver import discovery, openapi

_PATHS = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]


def document(kinds: Kinds, parts: Sequence[str], accept: str) -> Manifest | None:
    """Return the document at an address, None if there is none."""
    match [*parts]:
        case []:
            return {"paths": _PATHS}
        case ["version"]:
            return dict(discovery.VERSION)
        case ["api" | "apis" as root] if _all_at_once(accept):
            return discovery.aggregated(kinds, core=root == "api")
        case ["api" | "apis" as root, *rest]:
            return _core(kinds, rest) if root == "api" else _named(kinds, rest)
        case ["openapi", "v3", *rest]:
            return openapi.document(kinds, "/".join(rest)) if rest else openapi.index(kinds)
    return None


def _all_at_once(accept: str) -> bool:
    choices = [choice.replace(" ", "").split(";") for choice in accept.split(",")]
    return any({"as=APIGroupDiscoveryList", "v=v2"} <= {*choice} for choice in choices)


def _core(kinds: Kinds, rest: Sequence[str]) -> Manifest | None:
    if not rest:
        return discovery.api_versions()
    return discovery.api_resources(kinds, "", rest[0]) if len(rest) == 1 else None


def _named(kinds: Kinds, rest: Sequence[str]) -> Manifest | None:
    if not rest:
        return discovery.api_groups(kinds)
    if len(rest) == 1:
        return discovery.api_group(kinds, rest[0])
    return discovery.api_resources(kinds, rest[0], rest[1]) if len(rest) == 2 else None

"""Questions about rights and identity, which an API server answers and does not store.

The embedded cluster has one user, who may do everything.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pumice.api.kinds import Kind, Manifest

_RIGHTS: Final = "authorization.k8s.io"
_IDENTITY: Final = "authentication.k8s.io"
_USER: Final = {"username": "pumice", "groups": ["system:masters", "system:authenticated"]}


def _review(group: str, kind: str, *, namespaced: bool = False) -> Kind:
    return Kind(group, "v1", kind, f"{kind.lower()}s", namespaced=namespaced)


REVIEWS: Final = (
    _review(_RIGHTS, "LocalSubjectAccessReview", namespaced=True),
    _review(_RIGHTS, "SelfSubjectAccessReview"),
    _review(_RIGHTS, "SelfSubjectRulesReview"),
    _review(_RIGHTS, "SubjectAccessReview"),
    _review(_IDENTITY, "SelfSubjectReview"),
    _review(_IDENTITY, "TokenReview"),
)
"""The kinds of questions; clients can only create them."""
_BY_PLACE: Final[Mapping[tuple[str, str, str], Kind]] = MappingProxyType(
    {(kind.group, kind.version, kind.plural): kind for kind in REVIEWS}
)
_ALLOWED: Final = {"allowed": True, "reason": "an embedded cluster has one user"}
_RULES: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_STATUS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "SelfSubjectRulesReview": _RULES,
        "SelfSubjectReview": {"userInfo": _USER},
        "TokenReview": {"authenticated": True, "user": _USER},
    }
)


def review_at(group: str, version: str, plural: str) -> Kind | None:
    """Return the kind of the questions that are asked at an address, None if none are."""
    return _BY_PLACE.get((group, version, plural))


def is_review(kind: Kind) -> bool:
    """Return whether objects of a kind are questions."""
    return kind.group in (_RIGHTS, _IDENTITY)


def answered(kind: Kind, question: Manifest) -> Manifest:
    """Return a question with its answer."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"creationTimestamp": None},
        "spec": question.get("spec") or {},
        "status": _STATUS.get(kind.kind, _ALLOWED),
    }

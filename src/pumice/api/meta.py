"""What all Kubernetes objects share: metadata, label selectors, conditions, times.

The other modules of pumice.api build on it. Absent fields stay absent: None, or empty where
Kubernetes does not tell the two apart; nothing is defaulted here.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, dataclass_transform

import msgspec

from pumice.api.quantity import Quantity
from pumice.errors import InputError

ResourceList: TypeAlias = dict[str, Quantity]
"""Resource name to amount, as written."""

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class _PartMeta(msgspec.StructMeta):
    """Makes every Part immutable and built by keyword, which msgspec does not inherit."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        """Create the class with the options that all parts share."""
        options |= {"kw_only": True, "frozen": True, "gc": False, "rename": "camel"}
        return super().__new__(cls, name, bases, namespace, omit_defaults=True, **options)


class Part(msgspec.Struct, metaclass=_PartMeta):
    """A piece of an object: immutable, camelCase outside, unknown fields ignored."""


class OwnerReference(Part):
    """Who created an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Part):
    """Name, place, age and marks of an object."""

    name: Name
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    def __post_init__(self) -> None:
        check_time(self.creation_timestamp, "creationTimestamp")
        check_time(self.deletion_timestamp, "deletionTimestamp")


class KubeObject(Part):
    """A whole object; each subclass names the API it is served under."""

    API_VERSION: ClassVar[str]

    metadata: ObjectMeta


class LabelSelectorRequirement(Part):
    """One condition on a label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(Part):
    """Conditions on labels that must all hold; without any, everything matches."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Part):
    """One observed fact about an object."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    transition_id: str = msgspec.field(name="transitionID", default="")

    def __post_init__(self) -> None:
        check_time(self.last_transition_time, "lastTransitionTime")


@lru_cache(maxsize=1 << 16)
def epoch(text: str) -> float:
    """Read an RFC 3339 time ("2026-01-15T10:00:19Z") as seconds since 1970.

    Raises:
        InputError: not such a time, or one without an offset.
    """
    wanted = 'an RFC 3339 time such as "2026-01-15T10:00:19Z"'
    if _RFC3339.fullmatch(text) is None:  # fromisoformat alone takes much more than that
        raise InputError(wanted=wanted, found=text)
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        raise InputError(wanted=wanted, found=text, hint="no such day or hour") from None


def check_time(text: str, field: str) -> None:
    """Refuse a time that is present but not RFC 3339, naming ``field``."""
    if not text:
        return
    try:
        epoch(text)
    except InputError as error:
        raise InputError(wanted=error.wanted, found=text, field=field, hint=error.hint) from None


def is_true(text: str) -> bool:
    """Read the boolean of a mark as Go does; anything unreadable is False."""
    return text in _TRUE

"""Parts that all Kubernetes objects share: metadata, label selectors, conditions.

The other modules of pumice.api build on it. Absent fields stay absent: None, or empty where
Kubernetes does not distinguish the two; nothing is defaulted here.
"""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, dataclass_transform

import msgspec
from msgspec.structs import replace

from pumice.api.quantity import Quantity
from pumice.api.times import check_time

ResourceList: TypeAlias = dict[str, Quantity]
"""Resource name to amount, as written."""

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

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
    """The creator of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Part):
    """Name, namespace, age, labels and annotations of an object."""

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
        if self.creation_timestamp:
            check_time(self.creation_timestamp, "creationTimestamp")
        if self.deletion_timestamp:
            check_time(self.deletion_timestamp, "deletionTimestamp")


class KubeObject(Part):
    """A whole object; each subclass names the API it is served under."""

    API_VERSION: ClassVar[str]

    metadata: ObjectMeta


def key_of(thing: KubeObject) -> str:
    """Name an object: ``namespace/name``, or the name alone."""
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def keyed(things: Iterable[KubeObject]) -> dict[str, KubeObject]:
    """Return objects by their names, in their order."""
    parts = ((thing.metadata, thing) for thing in things)
    return {
        f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name: thing
        for meta, thing in parts
    }


def is_touch(before: KubeObject, after: KubeObject) -> bool:
    """Return whether nothing that is read of an object has changed, as with a heartbeat."""
    return _plain(before) == _plain(after)


def _plain(thing: KubeObject) -> KubeObject:
    return replace(thing, metadata=replace(thing.metadata, resource_version="", generation=None))


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
    last_transition_time: str | None = ""
    """Null where a client of an API server gave none."""
    transition_id: str = msgspec.field(name="transitionID", default="")

    def __post_init__(self) -> None:
        if self.last_transition_time:
            check_time(self.last_transition_time, "lastTransitionTime")


def is_true(text: str) -> bool:
    """Read the boolean of an annotation as Go does; anything unreadable is False."""
    return text in _TRUE


class ConfigMap(KubeObject):
    """Texts by key; other values are ignored."""

    API_VERSION: ClassVar[str] = "v1"

    data: dict[str, Any] = {}

    def text(self, key: str) -> str:
        """Return the text under a key, empty if there is none."""
        found = self.data.get(key, "")
        return found if isinstance(found, str) else ""

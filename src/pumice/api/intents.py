"""All a session can ask the cluster for, in the order it decided."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bind:
    """Run a pod on a node."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Evict:
    """End a pod so that its room can be used otherwise."""

    pod: str
    action: str
    beneficiary: str = ""


@dataclass(frozen=True, slots=True)
class Annotate:
    """Write annotations on a pod together with its Bind, which comes right after."""

    pod: str
    annotations: Mapping[str, str]


Intent = Bind | Evict | Annotate

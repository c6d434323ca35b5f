"""Edits of a world that remedies try, each with a sentence that says what it does.

An edit makes another world and leaves the first as it was.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pumice.api.kinds import Manifest
from pumice.diagnosis.changes import Change
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of


@dataclass(frozen=True)
class Edit:
    """One change; ``text`` is an order, such as "add 2 nodes like node-a"."""

    text: str
    edit: Callable[[ClusterState], ClusterState]

    def __call__(self, world: ClusterState) -> ClusterState:
        """Make the changed world."""
        return self.edit(world)


def chain(changes: Iterable[Edit | Change]) -> Edit:
    """Make one change of several."""
    steps = list(changes)

    def edit(world: ClusterState) -> ClusterState:
        for step in steps:
            world = step(world)
        return world

    return Edit(" and ".join(step.text for step in steps), edit)


@dataclass(frozen=True)
class Remedy:
    """A family of changes from small (1) to large; most have one size."""

    make: Callable[[int], Edit | Change]
    largest: int = 1
    group: str = ""
    """Of remedies with the same group the first that works is enough."""


def fixed(text: str, edit: Callable[[ClusterState], ClusterState], group: str = "") -> Remedy:
    """Make a remedy of one size."""
    return Remedy(lambda _: Edit(text, edit), group=group)


def replaced(
    kind: str, key: str, make: Callable[[Manifest], Manifest | None]
) -> Callable[[ClusterState], ClusterState]:
    """Make an edit of one object."""
    return lambda world: world.edited(
        lambda one: make(one) if one["kind"] == kind and key_of(one) == key else one
    )


def of_pods(
    job: str, make: Callable[[Manifest], Manifest | None]
) -> Callable[[ClusterState], ClusterState]:
    """Make an edit of all pods of a job."""
    return lambda world: world.edited(
        lambda one: make(one) if one["kind"] == "Pod" and group_of(one) == job else one
    )


def with_spec(manifest: Manifest, **fields: Any) -> Manifest:
    """Give a copy with other fields in its spec; None takes one out."""
    spec = {**(manifest.get("spec") or {}), **fields}
    return {**manifest, "spec": {name: value for name, value in spec.items() if value is not None}}

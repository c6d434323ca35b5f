"""Several changes as one: the instruction in words, and operations that do not undo each other."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.cluster.embedded.patches import apply_patch
from pumice.diagnosis.changes import (
    OWNED,
    Add,
    Change,
    Operation,
    Patch,
    Remove,
    adding,
    counted_nodes,
)
from pumice.errors import RejectedError


def chain(changes: Iterable[Change]) -> Change:
    """Join several changes to one."""
    steps = list(changes)
    ops = tuple(op for step in steps for op in step.ops)
    return Change(_joined_text(steps), tuple(_joined(ops)))


def _joined_text(steps: Sequence[Change]) -> str:
    """Join instructions; nodes are named in one of them, those of one kind together."""
    kinds = Counter(step.kind_of_nodes for step in steps if step.kind_of_nodes for _ in step.ops)
    nodes = f"add {' and '.join(counted_nodes(n, kind) for kind, n in kinds.items())}"
    return " and ".join(dict.fromkeys(nodes if s.kind_of_nodes else s.text for s in steps))


def _joined(ops: Iterable[Operation]) -> Iterable[Operation]:
    """Return operations none of which changes or removes what an earlier one adds."""
    kept: list[Operation] = []
    for op in ops:
        at = next((i for i, one in enumerate(kept) if _adds(one, op)), None)
        if isinstance(op, Remove) and op.kind in OWNED and any(map(_adds_job, kept)):
            continue  # it would be there for a job that is added in another form only
        if at is None:
            kept.append(op)
        elif isinstance(op, Patch):
            new = _merged(_object(kept[at]), op.patch)
            if new is None:
                kept.append(op)
            else:
                kept[at] = Add(object=new)
        else:
            kept.pop(at)
    return kept


def _merged(added: Manifest, patch: Sequence[Mapping[str, Any]]) -> Manifest | None:
    """Patch an object before it is added; None if that can be done only once it is stored.

    The patch may be meant for the stored object, in which admission has set fields that are not
    there yet: what it replaces may have to be added.
    """
    for some in ([dict(step) for step in patch], [adding(step) for step in patch]):
        with suppress(RejectedError):
            merged: Manifest = apply_patch(clone(added), some, "json")
            return merged
    return None


def _adds_job(op: Operation) -> bool:
    return isinstance(op, Add) and op.object.get("kind") == "Job"


def _object(op: Operation) -> Manifest:
    return op.object if isinstance(op, Add) else {}


def _adds(one: Operation, op: Operation) -> bool:
    """Return whether an operation adds the object that another changes or removes."""
    if not isinstance(one, Add) or not isinstance(op, Patch | Remove):
        return False
    meta = one.object["metadata"]
    place = (one.object["kind"], str(meta.get("namespace") or ""), meta["name"])
    return place == (op.kind, op.namespace, op.name)

"""Effects carried out on a cluster: one by one, or those that do not depend on each other together.

The only part of the controllers that writes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, cast

from pumice.api.annotations import JOB_NAME, TASK_SPEC
from pumice.api.kinds import Manifest, kind_of
from pumice.cluster.base import Cluster, Propagation
from pumice.controllers.base import (
    Create,
    Delete,
    Effect,
    Patch,
    Plan,
    Record,
    Update,
    UpdateStatus,
)
from pumice.errors import NamespaceTerminatingError, NotFoundError, QuotaExceededError

_NEW_POD: Final = (Create, "Pod")


def carry_out_all(cluster: Cluster, effects: Iterable[Effect]) -> None:
    """Carry effects out in turn, up to one that fails.

    A pod that a quota refuses keeps no other pod from being created: a smaller one may have room.

    Raises:
        ClusterError: of the first that failed.
    """
    refused: QuotaExceededError | None = None
    attempt = Attempt(cluster)
    for effect in effects:
        if refused is not None and _likeness(effect) != _NEW_POD:
            raise refused
        try:
            attempt.carry_out(effect)
        except QuotaExceededError as error:
            if not isinstance(effect, Create):
                raise
            refused = refused or error
    if refused is not None:
        raise refused


def carry_out_if_refused(
    cluster: Cluster, plan: Plan, errors: Sequence[Exception]
) -> Manifest | None:
    """Do what a plan has to do if a quota refuses a pod, where that is among the errors.

    Return the object after it.  A failure is left to the next attempt, which follows anyway.
    """
    found = None
    if any(isinstance(each, QuotaExceededError) for each in errors):
        with suppress(Exception):
            for effect in plan.if_refused:
                found = carry_out(cluster, effect)
    return found


class Attempt:
    """One attempt at a plan; its effects may be carried out by several threads.

    Pods of a task ask for the same: once a quota refuses one, the others are not tried.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._refused: set[tuple[str, str]] = set()

    def carry_out(self, effect: Effect) -> Manifest | None:
        """Do as ``carry_out``, or nothing for a pod like one that was refused."""
        if not isinstance(effect, Create):
            return carry_out(self._cluster, effect)
        if self._refused and _task(effect.manifest) in self._refused:
            return None
        try:
            return carry_out(self._cluster, effect)
        except QuotaExceededError:
            self._refused.add(_task(effect.manifest))
            raise


def one_of_each_task_first(batch: list[Effect]) -> list[list[Effect]]:
    """Cut new pods into the first of each task, which tell what a quota refuses, and the rest."""
    if _likeness(batch[0]) != _NEW_POD:
        return [batch]
    seen: set[tuple[str, str]] = set()
    firsts, rest = list[Effect](), list[Effect]()
    for effect in batch:
        task = _task(effect.manifest) if isinstance(effect, Create) else ("", "")
        (rest if task in seen else firsts).append(effect)
        seen.add(task)
    return [firsts, rest] if rest else [firsts]


def _task(manifest: Manifest) -> tuple[str, str]:
    """Name the task of a pod by its job, and itself where there is none."""
    meta = manifest["metadata"]
    marks = meta.get("annotations") or {}
    return str(marks.get(JOB_NAME) or meta.get("name")), str(marks.get(TASK_SPEC) or "")


def carry_out(cluster: Cluster, effect: Effect) -> Manifest | None:
    """Carry an effect out; return the object after it, where the cluster returns one."""
    match effect:
        case Create(manifest):
            return cluster.create(manifest)
        case Update(manifest):
            return cluster.update(manifest)
        case UpdateStatus(manifest):
            return cluster.update_status(manifest)
        case Patch(key, changes, subresource):
            return cluster.patch(
                key.kind, key.namespace, key.name, changes, subresource=subresource
            )
        case Delete():
            _delete(cluster, effect)
        case Record(about, event_type, reason, message, source):
            with suppress(NamespaceTerminatingError):  # the object of the event is gone
                cluster.record(about, event_type, reason, message, source)
    return None


def _delete(cluster: Cluster, effect: Delete) -> None:
    key = effect.key
    try:
        cluster.delete(
            key.kind,
            key.namespace,
            key.name,
            grace_s=effect.grace_s,
            propagation=cast("Propagation", effect.propagation),
            uid=effect.uid,
        )
    except NotFoundError:  # what was wanted
        return


def batches(effects: Sequence[Effect]) -> Iterator[list[Effect]]:
    """Cut effects into runs, in order, whose members may be carried out in parallel.

    Such are creations of objects of one kind, deletions of objects of one kind, and events.
    """
    batch: list[Effect] = []
    for effect in effects:
        if batch and (_likeness(effect) is None or _likeness(effect) != _likeness(batch[-1])):
            yield batch
            batch = []
        batch.append(effect)
    if batch:
        yield batch


def _likeness(effect: Effect) -> tuple[type[Effect], str] | None:
    """Return the key that parallel effects share, None for an effect that must run alone."""
    match effect:
        case Create(manifest):
            return Create, kind_of(manifest)
        case Delete(key):
            return Delete, key.kind
        case Record():
            return Record, ""
    return None

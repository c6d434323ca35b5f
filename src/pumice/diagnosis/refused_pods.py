"""Pods that a job is still to get and that a resource quota would refuse.

A scheduler sees no pod that an API server refused, so an answer about pods yet to be made takes
them as made.  These notes say where that is too much.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.wording import counted, part_of_its
from pumice.cluster.embedded.quotas import QUOTAS, PodQuotas
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.expected import is_expected
from pumice.errors import ForbiddenError

_NAMED: Final = 3


def refused_pods(world: ClusterState, jobs: Iterable[str] | None = None) -> list[str]:
    """Describe which pods of jobs (pod groups; unless stated, all) quotas would refuse."""
    if not world.of_kind(QUOTAS):
        return []
    quotas, found = PodQuotas(_Stored(world)), []
    for job in world.pods_by_group if jobs is None else jobs:
        pods = [pod for pod in world.pods_by_group.get(job, ()) if is_expected(pod)]
        why = [text for pod in pods if (text := _refusal(quotas, pod))]
        if why:
            part = part_of_its(len(why), len(pods), "missing pod")
            found.append(f"{world.title(job)}: the cluster would refuse {part}: {why[0]}")
    more = len(found) - _NAMED
    rest = [f"quotas refuse pods of {counted(more, 'more job')}"] if more > 0 else []
    return found[:_NAMED] + rest


def _refusal(quotas: PodQuotas, pod: Manifest) -> str:
    """Return why a pod is refused; one that is not counts for the next."""
    try:
        quotas.check(pod)
    except ForbiddenError as error:
        return error.problem
    quotas.count(pod)
    return ""


class _Stored:
    """What a cluster has of a world; the status of quotas is kept here."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world
        self._quotas = dict(world.of_kind(QUOTAS))

    def list(self, kind: str, namespace: str = "") -> tuple[list[Manifest], str]:
        """Return all objects of a kind in a namespace."""
        known = self._quotas if kind == QUOTAS else self._world.of_kind(kind)
        home = f"{namespace}/"
        found = [_placed(one, namespace) for key, one in known.items() if key.startswith(home)]
        return [one for one in found if not is_expected(one)], ""

    def merge_status(
        self, kind: str, namespace: str, name: str, changes: Mapping[str, Any]
    ) -> None:
        """Replace fields of the status of a quota."""
        del kind  # it is that of quotas
        key = f"{namespace}/{name}"
        old = self._quotas[key]
        self._quotas[key] = {**old, "status": {**(old.get("status") or {}), **changes}}


def _placed(manifest: Manifest, namespace: str) -> Manifest:
    """Return an object that states its namespace; a file may leave ``default`` out."""
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}

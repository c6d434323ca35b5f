"""Which pods that are still to be made resource quotas would refuse, as an API server does.

A job gets its pods once it is admitted to its queue.  So the pods of admitted jobs take the room of
quotas first, the oldest job first, then those of jobs that wait for admission, by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pumice.api.kinds import Manifest
from pumice.api.pod_resources import Amounts, limits_pods
from pumice.api.quantity import Amount, amount_or_nothing
from pumice.cluster.embedded.quotas import QuotaRefusal, QuotaRoom, refusals
from pumice.controllers.expected import NOT_BEGUN, is_expected

Usage = Callable[[Manifest], Amounts]
"""Returns what a pod uses of quotas."""
Elsewhere = Mapping[str, Mapping[str, Amount]]
"""Quota, by its key, to what it counts besides the pods that are known."""


@dataclass(frozen=True)
class RefusedPod:
    """A pod that would be refused, and why: every quota that refuses it."""

    pod: Manifest
    usage: Amounts
    why: tuple[QuotaRefusal, ...]


@dataclass(frozen=True)
class QuotaLeft:
    """A quota after the pods of a job were tried."""

    quota: Manifest
    hard: Amounts
    used: Amounts


@dataclass(frozen=True)
class Refusals:
    """The pods of one job that quotas would refuse."""

    pods: tuple[RefusedPod, ...]
    quotas: tuple[QuotaLeft, ...]
    """The quotas of its namespace."""


class QuotaHeadroom:
    """The resource quotas of some objects, with the pods that exist counted."""

    def __init__(
        self,
        quotas: Iterable[Manifest],
        pods: Iterable[Manifest],
        usage: Usage,
        elsewhere: Elsewhere | None = None,
        *,
        demands: bool = True,
    ) -> None:
        """Make them; unless it ``demands`` so, pods may leave out what quotas count."""
        self._demands = demands
        self._usage, self._elsewhere = usage, elsewhere or {}
        by_home: dict[str, list[Manifest]] = {}
        for quota in sorted(quotas, key=lambda one: str(one["metadata"]["name"])):
            by_home.setdefault(_home(quota), []).append(quota)
        existing: dict[str, list[Manifest]] = {home: [] for home in by_home}
        for pod in pods:
            if _home(pod) in existing and not is_expected(pod):
                existing[_home(pod)].append(pod)
        self._rooms = {
            home: [self._room(one, existing[home]) for one in some]
            for home, some in by_home.items()
        }

    def _room(self, quota: Manifest, pods: list[Manifest]) -> QuotaRoom:
        stated = (quota.get("spec") or {}).get("hard") or {}
        hard = {name: each for name, each in stated.items() if limits_pods(name)}
        room = QuotaRoom(quota, hard, dict.fromkeys(hard, 0), demands=self._demands)
        room.add(dict(self._elsewhere.get(key_of_quota(quota), {})))
        for pod in pods:
            if room.covers(pod):
                room.add(self._usage(pod))
        return room

    def __iter__(self) -> Iterator[QuotaRoom]:
        for rooms in self._rooms.values():
            yield from rooms

    def why_refused(self, pod: Manifest) -> str:
        """Return how an API server would refuse a new pod; empty if it would not."""
        found = [room for room in self._rooms.get(_home(pod), ()) if room.covers(pod)]
        why = refusals(found, pod, self._usage(pod))
        return why[0].problem if why else ""

    def refusals(
        self, by_group: Mapping[str, list[Manifest]], groups: Mapping[str, Manifest]
    ) -> dict[str, Refusals]:
        """Return the pods still to be made that are refused, by the key of their pod group."""
        waiting = [key for key in by_group if key.partition("/")[0] in self._rooms]
        waiting.sort(key=lambda key: _turn(key, groups.get(key) or {}))
        found = {}
        for key in waiting:
            pods = [pod for pod in by_group[key] if is_expected(pod)]
            refused = [each for pod in pods if (each := self._tried(pod)) is not None]
            if refused:
                found[key] = Refusals(tuple(refused), self._left(key.partition("/")[0]))
        return found

    def _tried(self, pod: Manifest) -> RefusedPod | None:
        """Count a pod, or return why it is refused."""
        rooms = [room for room in self._rooms[_home(pod)] if room.covers(pod)]
        if not rooms:
            return None
        usage = self._usage(pod)
        why = refusals(rooms, pod, usage)
        if why:
            return RefusedPod(pod, usage, tuple(why))
        for room in rooms:
            room.add(usage)
        return None

    def _left(self, home: str) -> tuple[QuotaLeft, ...]:
        return tuple(QuotaLeft(each.quota, each.hard, each.used) for each in self._rooms[home])


def counted_elsewhere(
    quotas: Iterable[Manifest], pods: Iterable[Manifest], usage: Usage
) -> dict[str, dict[str, Amount]]:
    """Return what quotas state as used beyond what the pods that are known use.

    Input may lack pods that a cluster counts.
    """
    found = {}
    counted = [one for one in quotas if (one.get("status") or {}).get("used")]
    for room in QuotaHeadroom(counted, pods, usage) if counted else ():
        stated = room.quota["status"]["used"]
        beyond = {
            name: Amount(more, amount.form)
            for name, used in room.used.items()
            if name in stated
            for amount in (amount_or_nothing(stated[name]),)
            if (more := amount.nano - used.nano) > 0
        }
        if beyond:
            found[key_of_quota(room.quota)] = beyond
    return found


def key_of_quota(quota: Manifest) -> str:
    """Name a quota: "namespace/name"."""
    return f"{_home(quota)}/{quota['metadata']['name']}"


def _home(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace") or "default")


def _turn(key: str, group: Manifest) -> tuple[bool, str, str]:
    """Return by what jobs get their pods in turn; those admitted together are taken by name."""
    if str((group.get("status") or {}).get("phase") or "") in NOT_BEGUN:
        return True, "", key
    return False, str(group["metadata"].get("creationTimestamp") or ""), key

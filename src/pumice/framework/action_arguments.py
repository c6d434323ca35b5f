"""Arguments of actions (``configurations`` in the scheduler's file), declared like a plugin's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pumice.framework.arguments import arg, bind_arguments

_ERROR_CACHE = "skip a node for a role that it refused before"


@dataclass(kw_only=True)
class AllocateArguments:
    """Arguments of allocate."""

    remember_errors: bool = arg("predicateErrorCacheEnable", default=True, doc=_ERROR_CACHE)


@dataclass(kw_only=True)
class PreemptArguments:
    """Arguments of preempt."""

    remember_errors: bool = arg("predicateErrorCacheEnable", default=True, doc=_ERROR_CACHE)
    by_dry_run: bool = arg(
        "enableTopologyAwarePreemption",
        default=False,
        doc="compare nodes by their victims instead of by their scores",
    )
    percentage: int = arg(
        "minCandidateNodesPercentage",
        default=10,
        doc="share of nodes with victims to compare, in percent; only without scores",
    )
    at_least: int = arg("minCandidateNodesAbsolute", default=1, doc="least number of them")
    at_most: int = arg("maxCandidateNodesAbsolute", default=100, doc="greatest number of them")
    workers: int = arg(
        "topologyAwarePreemptWorkerNum",
        default=16,
        doc="accepted and without effect: nodes are compared all at once",
    )


@dataclass(kw_only=True)
class ForgetfulArguments:
    """Arguments of backfill and reclaim.

    Volcano: both make a new cache for each task, so it is always empty.
    """

    remember_errors: bool = arg(
        "predicateErrorCacheEnable",
        default=True,
        doc="accepted and without effect: each task asks all nodes again",
    )


@dataclass(kw_only=True)
class GangEvictionArguments:
    """Arguments of gangpreempt and gangreclaim."""

    max_domains: int = arg("maxDomains", default=8, minimum=1, doc="network domains to try")
    take_whole: bool = arg(
        "allowWholeBundle", default=True, doc="whether a gang may be evicted below its minMember"
    )


@dataclass(kw_only=True)
class NoArguments:
    """An action without arguments."""


ACTION_ARGUMENTS: dict[str, type] = {
    "allocate": AllocateArguments,
    "backfill": ForgetfulArguments,
    "preempt": PreemptArguments,
    "reclaim": ForgetfulArguments,
    "gangpreempt": GangEvictionArguments,
    "gangreclaim": GangEvictionArguments,
}

_T = TypeVar("_T")


def arguments_of(configured: Mapping[str, Any], action: str, cls: type[_T]) -> _T:
    """Read an action's arguments; an unusable value leaves the default."""
    given = configured.get(action)
    return cls(**bind_arguments(cls, given)[0]) if given else cls()

"""What answers of hooks must look like, so that a wrong one is told and never stops a session.

Used by the guard around every hook.  A contract gives what was wanted, nothing if the answer will
do; it may raise on an answer that cannot even be looked at.  Plugins of Pumice itself are held to
the cheap part only: the tests hold them to the rest.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pumice.core.views import ALL
from pumice.framework.plugin import Plugin, Reason

Contract = Callable[[Any, tuple[Any, ...], Plugin], str]
_NUMBERS: Final = "biuf"
_CODES: Final = "biu"
_NUMBER: Final = (int, float, np.number)
_YES_NO: Final = (bool, int, np.bool_, np.integer)
_SEVERAL: Final = (list, tuple, set, np.ndarray)


def contract_of(plugin: Plugin, hook: str) -> Contract | None:
    """Give what a hook of a plugin is held to."""
    if type(plugin).__module__.startswith("pumice.plugins."):
        return _CHEAP.get(hook)
    return _STRICT.get(hook)


# Nodes


def _codes(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    if found is None:
        return ""
    n = len(args[1])
    return "" if getattr(found, "shape", None) == (n,) else f"{n} answers"


def _known_codes(found: Any, args: tuple[Any, ...], plugin: Plugin) -> str:
    if found is None or _codes(found, args, plugin):
        return _codes(found, args, plugin)
    kind, n = found.dtype.kind, len(plugin.reasons)
    if kind not in _CODES:
        return "an array of true or false, or of codes"
    if kind != "b" and len(found) and (found.min() < 0 or found.max() > n):
        return f"codes from 0 to {n}, the number of its reasons"
    return ""


def _scores(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    """Look at the numbers only where all nodes are asked: that is seldom."""
    if found is None:
        return ""
    n = len(args[1])
    if getattr(found, "shape", None) != (n,):
        return f"{n} scores"
    odd = args[1].rows is ALL and not np.isfinite(found).all()
    return f"{n} finite numbers" if odd else ""


def _finite_scores(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    if found is None:
        return ""
    n = len(args[1])
    if getattr(found, "shape", None) != (n,):
        return f"{n} scores"
    return "" if _is_finite(found) else f"{n} finite numbers"


def _is_finite(found: Any) -> bool:
    return found.dtype.kind in _NUMBERS and math.isfinite(found.sum())


def _reason(found: Any, *_: Any) -> str:
    return "" if found is None or isinstance(found, Reason) else "a Reason or None"


def _candidate(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    if found is None:
        return ""
    whole = isinstance(found, int | np.integer) and not isinstance(found, bool)
    return "" if whole and found in args[1].index else "the row of one of the nodes, or None"


# Orders


def _keys(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    n = len(args[0])
    return "" if np.shape(found)[-1:] == (n,) else f"{n} keys"


def _finite_keys(found: Any, args: tuple[Any, ...], plugin: Plugin) -> str:
    wanted = _keys(found, args, plugin)
    if wanted:
        return wanted
    column = np.asarray(found)
    good = column.dtype.kind in _NUMBERS and not np.isnan(column).any()
    return "" if good else f"{len(args[0])} keys that are numbers"


def _number(found: Any, *_: Any) -> str:
    good = isinstance(found, _NUMBER) and not math.isnan(found)
    return "" if good else "a number"


# Votes and victims


def _yes_or_no(found: Any, *_: Any) -> str:
    return "" if isinstance(found, _YES_NO) else "true or false"


def _text(found: Any, *_: Any) -> str:
    return "" if found is None or isinstance(found, str) else "a text, empty if all is well"


def _mask(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    n = len(args[1])
    return "" if found is None or len(found) == n else f"a mask of {n}"


def _true_mask(found: Any, args: tuple[Any, ...], plugin: Plugin) -> str:
    wanted = _mask(found, args, plugin)
    if wanted or found is None or not len(found):
        return wanted
    return "" if np.asarray(found).dtype.kind in _CODES else "a mask of true and false"


def _rows(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    whole = isinstance(found, _SEVERAL) and all(isinstance(x, int | np.integer) for x in found)
    good = whole and set(args[0]).issuperset(found)
    return "" if good else "a list of some of the tasks"


# Network domains


def _levels(found: Any, *_: Any) -> str:
    good = isinstance(found, list | tuple) and all(
        isinstance(level, list | tuple) and all(hasattr(each, "rows") for each in level)
        for level in found
    )
    return "" if good else "lists of domains, level by level"


def _domain_scores(found: Any, args: tuple[Any, ...], _: Plugin) -> str:
    n = len(args[1])
    good = found is None or (getattr(found, "shape", None) == (n,) and _is_finite(found))
    return "" if good else f"{n} finite numbers, or None"


_CHEAP: Final[Mapping[str, Contract]] = MappingProxyType(
    {
        **dict.fromkeys(("filter_shape", "filter_nodes"), _codes),
        **dict.fromkeys(("score_shape", "score_nodes", "rank_nodes"), _scores),
        **dict.fromkeys(("order_queues", "order_jobs", "order_tasks"), _keys),
        **dict.fromkeys(("preemptable", "reclaimable", "gang_evictable"), _mask),
    }
)
_STRICT: Final[Mapping[str, Contract]] = MappingProxyType(
    {
        "filter_task": _reason,
        **dict.fromkeys(("filter_shape", "filter_nodes"), _known_codes),
        **dict.fromkeys(("score_shape", "score_nodes", "rank_nodes"), _finite_scores),
        "best_node": _candidate,
        **dict.fromkeys(("order_queues", "order_jobs", "order_tasks"), _finite_keys),
        **dict.fromkeys(("compare_queues", "compare_victim_queues", "order_subgroups"), _number),
        "job_valid": _text,
        **dict.fromkeys(("job_enqueueable", "job_pipelined", "subgroup_pipelined"), _number),
        **dict.fromkeys(("job_ready", "job_starving", "subgroup_ready"), _yes_or_no),
        **dict.fromkeys(("overused", "allocatable", "preemptive"), _yes_or_no),
        **dict.fromkeys(("preemptable", "reclaimable", "gang_evictable"), _true_mask),
        "victims": _rows,
        "domain_levels": _levels,
        **dict.fromkeys(("score_domains", "rank_domains"), _domain_scores),
    }
)

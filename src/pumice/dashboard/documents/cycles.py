"""Cycles: what the scheduler just did."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from pumice.dashboard.documents.overview import evicted_in
from pumice.dashboard.documents.shared import Document, View, seconds
from pumice.dashboard.feed import CycleRecord

_LISTED: Final = 500
"""Binds of one cycle that are listed; a page shows how many more there are."""


def cycles(view: View, records: Sequence[CycleRecord], moments: Collection[int]) -> Document:
    """Write the last cycles, the latest first, each in a line."""
    return {
        "actions": list(view.picture.actions),
        "cycles": [_line(each, moments) for each in reversed(records)],
    }


def _line(record: CycleRecord, moments: Collection[int]) -> Document:
    decided = record.decisions
    return {
        "number": record.number,
        "at": record.at,
        "took": seconds(record.took_s),
        "actions": [[name, seconds(took)] for name, took in record.actions],
        "binds": len(decided.binds),
        "evictions": len(decided.evictions),
        "promised": len(decided.pipelined),
        "moment": record.number in moments,
        "trouble": bool(record.failed or decided.failures or record.dropped),
    }


def cycle(view: View, record: CycleRecord, moments: Collection[int]) -> Document:
    """Write one cycle with all its decisions."""
    decided, sees = record.decisions, view.scope.sees
    binds = {pod: node for pod, node in decided.binds.items() if sees(pod)}
    return {
        **_line(record, moments),
        "plugins": [
            [name, seconds(took)] for name, took in sorted(record.plugins, key=lambda p: -p[1])
        ],
        "started": _started(binds, record.jobs),
        "bound": [{"pod": pod, "node": node} for pod, node in list(binds.items())[:_LISTED]],
        "moreBound": max(0, len(binds) - _LISTED),
        "evicted": [each for each in evicted_in(record) if sees(each["pod"])],
        "left": [
            {"job": record.jobs.get(key, key), "text": text}
            for key, text in decided.explanations.items()
            if sees(key)
        ],
        "dropped": record.dropped,
        "failed": list(record.failed),
        "failures": list(decided.failures),
    }


def _started(binds: dict[str, str], jobs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Count by job the pods that got a node."""
    counted = Counter(jobs.get(pod, "") for pod in binds)
    return [{"job": job, "pods": pods} for job, pods in counted.most_common()]

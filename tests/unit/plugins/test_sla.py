"""sla: deadlines order jobs, and an overdue job is admitted and keeps its place."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.times import epoch
from pumice.framework.arguments import Duration
from pumice.plugins.sla import Sla
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

T0 = "2026-01-15T10:00:00Z"
T1 = "2026-01-15T10:00:01Z"
OWN, OLD = "volcano.sh/sla-waiting-time", "sla-waiting-time"


def group(name: Any, marks: Any = None, created: Any = T0, **more: Any) -> Any:
    return pod_group(name, annotations=marks or {}, created=created, **more)


def decide(
    objects: Any,
    *,
    after: Any = 60.0,
    argument: str = "",
    actions: str = "allocate",
    tail: str = "",
) -> Any:
    conf = f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: sla\n'
    if argument:
        conf += f"    arguments:\n      sla-waiting-time: {argument}\n"
    world = [queue("default"), node("n1", cpu=1), *objects]
    return Scheduler(parse_conf(conf + tail)).cycle(world, epoch(T0) + after)


def winner(one: Any, two: Any, **options: Any) -> Any:
    """Return which of two jobs gets the one free cpu."""
    pods = [pod("one-0", group="one", cpu=1), pod("two-0", group="two", cpu=1)]
    binds = decide([one, two, *pods], **options).binds
    return [key.removeprefix("default/").removesuffix("-0") for key in binds]


@pytest.mark.parametrize(
    ("marks", "argument"),
    [
        ({OWN: "5m"}, "24h"),
        ({OLD: "5m"}, "24h"),
        ({OWN: "5m", OLD: "100h"}, "24h"),
        ({OWN: "soon", OLD: "5m"}, "24h"),
        ({OWN: "-5m", OLD: "5m"}, "24h"),
        ({OWN: "0s", OLD: "5m"}, "24h"),
    ],
)
def test_the_first_usable_source_counts(marks: Any, argument: str) -> None:
    """Own annotation, then the old one, then the argument; unusable values are ignored."""
    rival = group("one", {OWN: "6m"})
    assert winner(rival, group("two", marks, created=T1), argument=argument) == ["two"]
    late = group("one", {OWN: "4m"}, created=T1)
    assert winner(late, group("two", marks), argument=argument) == ["one"]


@pytest.mark.parametrize("argument", ['"0s"', '"-1h"', "3600", "later"])
def test_an_unusable_argument_sets_no_deadline(argument: str) -> None:
    assert winner(group("one"), group("two", {OWN: "99h"}, created=T1), argument=argument) == [
        "two"
    ]


REFUSING = "- plugins:\n  - name: overcommit\n"


@pytest.mark.parametrize(
    ("after", "phase"), [(299.0, "Pending"), (300.0, "Inqueue"), (301.0, "Inqueue")]
)
def test_an_overdue_job_is_admitted_although_a_later_tier_would_refuse(
    after: float, phase: str
) -> None:
    """Overdue from the very moment on."""
    huge = group("one", min_resources={"cpu": 100})
    decisions = decide([huge], after=after, argument="5m", actions="enqueue", tail=REFUSING)
    assert decisions.pod_groups["default/one"].phase == phase


@pytest.mark.parametrize(("after", "pipelined"), [(299.0, {}), (300.0, {"default/one-0": "n1"})])
def test_an_overdue_job_keeps_its_place_although_gang_would_drop_it(
    after: float, pipelined: Any
) -> None:
    """One of two members fits on the cpu that is being freed."""
    leaving = pod("old", cpu=1, node="n1")
    leaving["metadata"]["deletionTimestamp"] = T0
    objects = [
        leaving,
        group("one", min_member=2),
        *(pod(f"one-{i}", group="one", cpu=1, created=time) for i, time in enumerate((T0, T1))),
    ]
    decisions = decide(objects, after=after, argument="5m", tail="- plugins:\n  - name: gang\n")
    assert decisions.pipelined == pipelined


@pytest.mark.parametrize(
    ("after", "change"), [(299.0, 300.0), (300.0, 600.0), (599.0, 600.0), (600.0, None)]
)
def test_the_next_change_is_the_next_deadline(after: float, change: float | None) -> None:
    groups = [group("one"), group("two", {OWN: "10m"}), group("three", {OWN: "bad"})]
    plugin = Sla(waiting_time=Duration(300.0))
    ssn = open_session([queue("default"), *groups], [plugin], now=epoch(T0) + after)
    assert plugin.changes_at(ssn) == (None if change is None else epoch(T0) + change)

"""tdm: nodes lent by the hour, and how few pods at a time leave when the hour is over."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.times import epoch
from pumice.framework.arguments import Duration
from pumice.plugins.tdm import Tdm
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

ZONE = "volcano.sh/revocable-zone"
MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
REVOCABLE = {ZONE: "*"}


def make(
    actions: str = "allocate", window: str = "10:00-21:00", extra: str = "", **zones: Any
) -> Any:
    zones = zones or {"rz1": window}
    lines = [f'actions: "{actions}"', "tiers:", "- plugins:", "  - name: tdm", "    arguments:"]
    lines += [f'      tdm.revocable-zone.{zone}: "{hours}"' for zone, hours in zones.items()]
    return Scheduler(parse_conf("\n".join([*lines, extra])))


def at(clock: Any) -> Any:
    return epoch(f"2026-01-15T{clock}Z")


def lent(name: str = "lent", zone: str = "rz1", **more: Any) -> Any:
    return node(name, labels={ZONE: zone}, **more)


def one_pod(**facts: Any) -> Any:
    return [queue("default"), pod_group("g"), pod("p", group="g", cpu=1, **facts)]


def is_lent(clock: Any, window: Any, annotations: Any = REVOCABLE) -> Any:
    """Return whether a pod gets the only node, which is in a zone with that window."""
    objects = [*one_pod(annotations=annotations), lent()]
    return bool(make(window=window).cycle(objects, at(clock)).binds)


@pytest.mark.parametrize(
    ("clock", "window", "is_open"),
    [
        ("10:00:00", "10:00-21:00", True),
        ("21:00:00", "10:00-21:00", True),
        ("20:00:00", "20:00-11:00", True),
        ("23:59:59", "20:00-11:00", True),
        ("09:30:00", "9:00-10:00", True),
        ("12:00:00", "12:00-12:00", True),
        ("12:00:00", " 10:00-21:00 ", True),
        ("09:59:59", "10:00-21:00", False),
        ("21:00:01", "10:00-21:00", False),
        ("10:00:00", "20:00-11:00", False),  # the window starts today, not yesterday
        ("11:59:59", "12:00-12:00", False),
        ("12:00:00", "10:00", False),
        ("12:00:00", "10:00 - 21:00", False),
        ("12:00:00", "10:00-24:00", False),
        ("12:00:00", "10:0-21:00", False),
        ("12:00:00", "all day", False),
    ],
)
def test_a_zone_is_open_in_its_window_both_ends_included_if_it_can_be_read(
    clock: str, window: str, is_open: bool
) -> None:
    assert is_lent(clock, window) is is_open


@pytest.mark.parametrize("hours", ["", "10:00", "10-21", "25:00-26:00", "10:00-21:60"])
def test_a_check_tells_of_hours_that_cannot_be_read(hours: str) -> None:
    (fault,) = Tdm(windows={"good": "9:30-8:00", "rz1": hours}).faults()
    assert (fault.key, fault.found) == ("tdm.revocable-zone.rz1", hours)


@pytest.mark.parametrize(
    ("annotations", "welcome"),
    [
        (REVOCABLE, True),
        ({"volcano.sh/preemptable": "true"}, True),
        ({}, False),
        ({ZONE: "rz1"}, False),
        ({ZONE: "rz1", "volcano.sh/preemptable": "true"}, False),
        ({"volcano.sh/preemptable": "yes"}, False),
    ],
)
def test_only_revocable_pods_may_use_a_lent_node(annotations: Any, welcome: bool) -> None:
    assert is_lent("12:00:00", "10:00-21:00", annotations) == welcome


def running(total: Any, marks: Any = None, waiting: Any = 0, finished: Any = 0) -> Any:
    """A group with pods on a lent node."""
    return [
        queue("default"),
        lent(cpu=64),
        pod_group("g", annotations=marks or {}),
        *(pod(f"r-{i}", group="g", cpu=1, node="lent") for i in range(total)),
        *(pod(f"w-{i}", group="g", cpu=1) for i in range(waiting)),
        *(pod(f"f-{i}", group="g", node="lent", phase="Failed") for i in range(finished)),
    ]


@pytest.mark.parametrize(
    ("marks", "counts", "evicted"),
    [
        ({}, {"total": 4}, 1),
        ({MIN: "1"}, {"total": 4}, 3),
        ({MIN: "4"}, {"total": 4}, 0),
        ({MIN: "5"}, {"total": 4}, 1),
        ({MIN: "50%"}, {"total": 5}, 2),
        ({MAX: "3"}, {"total": 4}, 3),
        ({MAX: "3"}, {"total": 4, "waiting": 2}, 1),
        ({MAX: "3"}, {"total": 4, "waiting": 4}, 0),
        ({MAX: "3"}, {"total": 4, "finished": 2}, 3),
        ({MAX: "30%"}, {"total": 4}, 2),
        ({MIN: "3", MAX: "4"}, {"total": 4}, 1),
        ({MIN: "", MAX: "4"}, {"total": 4}, 1),
        ({MIN: "some"}, {"total": 4}, 4),
    ],
)
def test_a_closed_zone_gives_up_what_the_jobs_budget_allows(
    marks: Any, counts: Any, evicted: int
) -> None:
    """Least available, else most unavailable, else one; percentages round up."""
    decisions = make("shuffle").cycle(running(**counts, marks=marks), at("22:00:00"))
    assert len(decisions.evictions) == evicted


def test_pods_that_are_not_preemptable_stay_and_so_do_those_of_zones_without_a_window() -> None:
    objects = [
        queue("default"),
        lent("a"),
        lent("b", zone="unknown"),
        node("c"),
        *(pod_group(name) for name in ("x", "y", "z")),
        pod("x-0", group="x", cpu=1, node="a", preemptable=False),
        pod("y-0", group="y", cpu=1, node="b"),
        pod("z-0", group="z", cpu=1, node="c"),
    ]
    assert make("shuffle").cycle(objects, at("22:00:00")).evictions == []


@pytest.mark.parametrize(
    ("extra", "seconds", "evicted"),
    [("", 59, 0), ("", 60, 1), ('      tdm.evict.period: "10m"', 60, 0)],
)
def test_evictions_keep_their_period(extra: str, seconds: int, evicted: int) -> None:
    scheduler = make("shuffle", extra=extra)
    first, second = (
        scheduler.cycle(running(4), at("22:00:00") + later).evictions for later in (0, seconds)
    )
    assert (len(first), len(second)) == (1, evicted)


def crowd(*, group_marks: Any = None, **preemptor: Any) -> Any:
    """Two full nodes, one lent; a pod without room."""
    return [
        queue("default"),
        node("n1", cpu=2),
        lent(cpu=2),
        pod_group("low", phase="Running"),
        *(pod(f"n1-{i}", group="low", cpu=1, node="n1") for i in range(2)),
        *(pod(f"lent-{i}", group="low", cpu=1, node="lent") for i in range(2)),
        pod_group("high", phase="Inqueue", annotations=group_marks or {}),
        pod("high-0", group="high", cpu=1, **preemptor),
    ]


def test_a_pod_that_must_stay_evicts_revocable_work_from_ordinary_nodes_only() -> None:
    decisions = make("preempt").cycle(crowd(preemptable=False), at("12:00:00"))
    assert [key[:10] for key in decisions.evictions] == ["default/n1"]
    assert decisions.pipelined == {"default/high-0": "n1"}


@pytest.mark.parametrize("preemptor", [{}, {"preemptable": True}, {"annotations": REVOCABLE}])
def test_a_pod_that_may_be_preempted_itself_evicts_nobody(preemptor: Any) -> None:
    assert make("preempt").cycle(crowd(**preemptor), at("12:00:00")).evictions == []


def test_a_group_that_may_be_preempted_is_never_starving() -> None:
    objects = crowd(preemptable=False, group_marks={"volcano.sh/preemptable": "true"})
    assert make("preempt").cycle(objects, at("12:00:00")).evictions == []


@pytest.mark.parametrize(("allowed", "gone"), [("1", 1), ("2", 2), ("9", 3)])
def test_several_victims_of_a_job_share_its_budget(allowed: str, gone: int) -> None:
    """The hook is asked once about three pods of one job, on an ordinary node."""
    budget = {MAX: allowed}
    asker = pod("asker", group="h", cpu=1, preemptable=False)
    objects = [
        queue("default"),
        node("n", cpu=4),
        pod_group("h", phase="Inqueue"),
        pod_group("g", phase="Running", annotations=budget, min_member=0),
        asker,
        *(
            pod(f"p{i}", group="g", cpu=1, node="n", preemptable=True, annotations=budget)
            for i in range(3)
        ),
    ]
    ssn = open_session(objects, [Tdm()])
    tasks = ssn.snapshot.tasks
    rows = [tasks.row_of[f"default/p{i}"] for i in range(3)]
    found = ssn.policy.preemptable(ssn.task(tasks.row_of["default/asker"]), rows)
    assert len(found) == gone


# Reasons, times


def texts(now: str, **windows: str) -> list[str]:
    """Return why a revocable pod does not get each of three lent nodes."""
    nodes = [lent(f"n{i}", zone=zone) for i, zone in enumerate(("rz1", "rz2", "rz3"))]
    objects = [*one_pod(annotations=REVOCABLE), *nodes, node("own")]
    ssn = open_session(objects, [Tdm(windows=windows)], now=at(now))
    placing = ssn.placing
    verdict = placing.fit(ssn.task(ssn.snapshot.tasks.row_of["default/p"])).verdict
    return [placing.reasons[code].text for code in verdict.tolist()]


def test_a_closed_zone_is_named_with_its_hours() -> None:
    assert texts("22:00:00", rz1="10:00-21:00", rz2="10:00-23:00") == [
        "current time beyond revocable zone rz1:10:00-21:00",
        "fits",
        "revocable zone rz3 not support",
        "fits",
    ]


def test_a_pod_that_must_stay_is_refused_by_an_open_zone_with_another_reason() -> None:
    ssn = open_session(
        [*one_pod(), lent()], [Tdm(windows={"rz1": "10:00-21:00"})], now=at("12:00:00")
    )
    fit = ssn.placing.fit(ssn.task(ssn.snapshot.tasks.row_of["default/p"]))
    (code,) = fit.verdict.tolist()
    assert ssn.placing.reasons[code].text == "not allow to dispatch to revocable node"
    assert ssn.placing.incurable(fit).all()


@pytest.mark.parametrize(
    ("now", "windows", "change"),
    [
        ("09:00:00", ["10:00-21:00"], "10:00:00"),
        ("10:00:00", ["10:00-21:00"], "21:00:01"),
        ("21:00:00", ["10:00-21:00"], "21:00:01"),
        ("21:00:01", ["10:00-21:00"], "24:00:00"),
        ("12:00:00", ["10:00-21:00", "11:00-13:00"], "13:00:01"),
        ("09:00:00", ["10:20-21:07"], "10:20:00"),
        ("10:20:00", ["10:20-21:07"], "21:07:01"),
        ("12:00:00", ["20:00-11:00"], "20:00:00"),
        ("21:00:00", ["20:00-11:00"], "24:00:00"),
        ("12:00:00", ["never"], None),
        ("12:00:00", [], None),
    ],
)
def test_the_next_change_is_a_bound_of_a_window_or_midnight(
    now: str, windows: list[str], change: str | None
) -> None:
    plugin = Tdm(windows={f"z{i}": hours for i, hours in enumerate(windows)})
    ssn = open_session([*one_pod(), lent()], [plugin], now=at(now))
    midnight = at("00:00:00")
    hours = None if change is None else [int(part) for part in change.split(":")]
    want = None if hours is None else midnight + hours[0] * 3600 + hours[1] * 60 + hours[2]
    assert plugin.changes_at(ssn) == want


def test_while_pods_wait_for_their_turn_the_next_eviction_is_a_change() -> None:
    plugin = Tdm(windows={"rz1": "10:00-21:00"}, evict_period=Duration(60.5))
    ssn = open_session(running(4), [plugin], now=at("22:00:00"))
    rows = [ssn.snapshot.tasks.row_of[f"default/r-{i}"] for i in range(4)]
    ssn.memory["tdm"] = ssn.now - 20.0
    assert plugin.victims(rows) == []
    assert plugin.changes_at(ssn) == ssn.now + 41.0
    ssn.memory["tdm"] = ssn.now - 60.5
    assert len(plugin.victims(rows)) == 1
    assert ssn.memory["tdm"] == ssn.now


def test_without_a_pod_that_may_go_nothing_waits_for_its_turn() -> None:
    plugin = Tdm(windows={"rz1": "10:00-21:00"})
    ssn = open_session(running(0), [plugin], now=at("22:00:00"))
    ssn.memory["tdm"] = ssn.now - 20.0
    assert plugin.victims([]) == []
    assert plugin.changes_at(ssn) == at("00:00:00") + 86400


@pytest.mark.parametrize(
    ("period", "last", "now", "moved"),
    [
        (60.0, 1000.0, 1060.0, 1000.0),
        (60.0, 1000.0, 1061.0, 1060.0),
        (60.0, 1000.0, 1200.0, 1180.0),
        (60.0, 1000.0, 999.0, 1000.0),
        (0.5, 1000.0, 1010.0, 1009.0),
        (59.5, 1000.0, 1121.0, 1120.0),
    ],
)
def test_runs_that_were_passed_over_count_as_run(
    period: float, last: float, now: float, moved: float
) -> None:
    memory = {"tdm": last}
    Tdm(evict_period=Duration(period)).passed_over(memory, now)
    assert memory == {"tdm": moved}


@pytest.mark.parametrize(
    ("least", "promised", "kept"), [(2, 0, True), (3, 0, False), (3, 1, True), (4, 1, False)]
)
def test_a_job_keeps_its_promises_with_enough_placed_and_promised(
    least: int, promised: int, kept: bool
) -> None:
    """One runs, one requests nothing, two wait."""
    objects = [
        queue("default"),
        node("n"),
        pod_group("g", min_member=least),
        pod("r", group="g", cpu=1, node="n"),
        pod("be", group="g"),
        *(pod(f"w{i}", group="g", cpu=1) for i in range(2)),
    ]
    ssn = open_session(objects, [Tdm()])
    for i in range(promised):
        ssn.statement().pipeline(ssn.snapshot.tasks.row_of[f"default/w{i}"], 0)
    assert ssn.policy.job_pipelined(ssn.snapshot.jobs.row_of["default/g"]) is kept


def test_only_a_job_with_pending_tasks_starves() -> None:
    def starves(*pods: Any) -> bool:
        ssn = open_session([queue("default"), node("n"), pod_group("g"), *pods], [Tdm()])
        return bool(ssn.policy.job_starving(ssn.snapshot.jobs.row_of["default/g"]))

    assert not starves(pod("r", group="g", cpu=1, node="n"))
    assert starves(pod("r", group="g", cpu=1, node="n"), pod("w", group="g", cpu=1))

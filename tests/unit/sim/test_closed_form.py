"""Figures against results that are known in closed form, each to the digit."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.objects import KubeObject
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import Outcome
from pumice.sim.measure import Measures
from pumice.sim.options import Evicted
from pumice.sim.output import JOB_COLUMNS, jobs
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, priority_class, queue
from tests.unit.sim.made import kube_objects

SPECS = PodSpecs()
FIRST_COME = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""
SHARING = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: proportion}, {name: predicates}]
"""
PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}]
"""


def gang(
    name: str,
    at: float,
    seconds: float,
    *,
    request: dict[str, str] | None = None,
    pods: int = 1,
    needed: int | None = None,
    queue: str = "default",
    priority: str = "",
) -> JobSpec:
    spec = SPECS.spec(request or {"cpu": "1"})
    least = pods if needed is None else needed
    return JobSpec(
        name, at, (TaskSpec(spec, pods, seconds),), least, queue=queue, priority_class=priority
    )


def run(
    jobs: Sequence[JobSpec],
    cluster: Sequence[KubeObject],
    conf: str = DEFAULT_CONF,
    *,
    period: float = 1.0,
    evicted: Evicted = "requeue",
) -> Outcome:
    workload = Workload(name="made", format="test", jobs=in_order(jobs))
    engine = Engine(workload, cluster, parse_conf(conf), period=period, evicted=evicted)
    return engine.run()


def table(measures: Measures) -> dict[str, dict[str, object]]:
    """Return the table of jobs, by their name."""
    rows = [dict(zip(JOB_COLUMNS, row, strict=True)) for row in jobs(measures)]
    return {str(row["job"]).removeprefix("default/"): row for row in rows}


# One server, fixed service time, random arrivals


def queue_of_one(
    n: int, *, mean_gap: float, service: float, period: float = 0.001
) -> tuple[Measures, list[float]]:
    gaps = np.random.default_rng(5).exponential(mean_gap, n)
    gaps = gaps.round(3) if period else gaps
    arrivals = np.concatenate([[0.0], gaps.cumsum()[:-1]])
    arrivals = arrivals.round(3) if period else arrivals
    made = [gang(f"j{i:05d}", float(at), service) for i, at in enumerate(arrivals)]
    measures = Measures("", run(made, kube_objects(node("n", cpu="1")), FIRST_COME, period=period))
    lindley = [0.0]
    for gap in np.diff(arrivals):
        lindley.append(max(0.0, lindley[-1] + service - float(gap)))
    return measures, lindley


@pytest.mark.parametrize("period", [0.001, 0.0])
def test_every_wait_of_an_md1_queue_is_lindleys(period: float) -> None:
    """By event, waits are exact whenever jobs arrive; on a grid only if they arrive on it."""
    measures, lindley = queue_of_one(150, mean_gap=12.5, service=10.0, period=period)
    waits = [each.started - each.spec.arrival for each in measures.outcome.runs]
    assert waits == pytest.approx(lindley, abs=1e-6)
    assert max(waits) > 20


def test_the_mean_wait_of_a_long_md1_queue_is_pollaczeks_and_khinchines() -> None:
    """Within 10 %: the mean of 400 waits, which depend on each other, is that uncertain."""
    measures, lindley = queue_of_one(400, mean_gap=20.0, service=10.0)
    load = 10.0 / 20.0
    assert measures.waits().mean() == pytest.approx(load * 10.0 / (2 * (1 - load)), rel=0.1)
    assert measures.waits().mean() == pytest.approx(np.mean(lindley), abs=1e-6)
    assert measures.mean_use[0] == pytest.approx(400 * 10.0 / measures.makespan)


def test_on_a_coarser_grid_a_wait_lasts_to_the_next_cycle() -> None:
    cluster = kube_objects(node("n", cpu="1"))
    made = [gang("a", 0.0, 3.0), gang("b", 0.25, 3.0)]
    found = table(Measures("", run(made, cluster, period=2.0)))
    assert (found["a"]["wait"], found["b"]["wait"]) == (0, 3.75)  # free at 3, seen at 4


# Shares


def two_queues(weights: Sequence[int], counts: Sequence[int]) -> Measures:
    cluster = kube_objects(
        node("n", cpu="8"), *(queue(name, weight=w) for name, w in zip("ab", weights, strict=True))
    )
    made = [
        gang(f"{name}{i:02d}", 0.0, 10.0, queue=name)
        for name, n in zip("ab", counts, strict=True)
        for i in range(n)
    ]
    return Measures("", run(made, cluster, SHARING))


def test_queues_that_want_everything_share_by_weight() -> None:
    summary = two_queues((3, 1), (60, 20)).summary()
    shares = {name: facts["share"]["cpu"] for name, facts in summary["queues"].items()}
    assert shares == {"a": 0.75, "b": 0.25}
    assert summary["utilisation"]["cpu"] == 1.0
    assert summary["makespan"] == 100
    assert summary["fairness"] == {"mean": 1.0, "least": 1.0}


def test_what_one_queue_leaves_goes_to_the_other() -> None:
    """While both ask (20 s of 40) it is 6 to 2, then b has all: 6 * 20 and 2 * 20 + 8 * 20."""
    summary = two_queues((3, 1), (12, 20)).summary()
    shares = {name: facts["share"]["cpu"] for name, facts in summary["queues"].items()}
    assert shares == {"a": 120 / 320, "b": 200 / 320}
    assert summary["fairness"]["mean"] == 1.0


def test_the_example_of_the_drf_paper() -> None:
    """9 CPUs and 18 GB; A asks for <1, 4>, B for <3, 1>: 3 and 2 tasks, dominant shares equal."""
    conf = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: drf}, {name: predicates}]
"""
    made = [
        gang("a", 0.0, 10.0, request={"cpu": "1", "memory": "4Gi"}, pods=18, needed=1),
        gang("b", 0.0, 10.0, request={"cpu": "3", "memory": "1Gi"}, pods=18, needed=1),
    ]
    outcome = run(made, kube_objects(node("n", cpu="9", memory="18Gi")), conf)
    log = outcome.log
    first = (log.kind == EventKind.BIND) & (log.time == 0)
    count = Counter(outcome.runs[number].spec.name for number in log.job[first].tolist())
    assert count == {"a": 3, "b": 2}
    assert 3 * 4 / 18 == 2 * 3 / 9  # the dominant shares


# Gangs and evictions


def test_gangs_that_do_not_divide_a_node_leave_a_third_of_it_idle() -> None:
    """A node of 3 CPUs takes one pod of 2: four nodes run two gangs of two at a time."""
    cluster = kube_objects(*(node(f"n{i}", cpu="3") for i in range(4)))
    made = [gang(f"g{i}", 0.0, 10.0, request={"cpu": "2"}, pods=2) for i in range(6)]
    summary = (measures := Measures("", run(made, cluster))).summary()
    assert measures.waits().tolist() == [0, 0, 10, 10, 20, 20]
    assert summary["makespan"] == 30
    assert summary["utilisation"]["cpu"] == round(2 / 3, 6)


def preempted(evicted: Evicted) -> Measures:
    cluster = kube_objects(
        node("n", cpu="4"), priority_class("high", value=100), priority_class("low", value=1)
    )
    made = [
        gang("low", 0.0, 100.0, request={"cpu": "4"}, priority="low"),
        gang("high", 40.0, 30.0, request={"cpu": "4"}, priority="high"),
    ]
    return Measures("", run(made, cluster, PREEMPTING, evicted=evicted))


def test_a_preempted_job_starts_anew_and_its_time_without_a_node_is_no_run_time() -> None:
    """Evicted at 40, the place is taken at 41 and free again at 71; it then runs all its 100 s."""
    found, summary = table(measures := preempted("requeue")), measures.summary()
    assert {name: found["low"][name] for name in ("start", "wait", "end", "run", "evictions")} == {
        "start": 0, "wait": 0, "end": 171, "run": 140, "evictions": 1,
    }  # fmt: skip
    assert (found["high"]["start"], found["high"]["wait"], found["high"]["run"]) == (41, 1, 30)
    assert (summary["makespan"], summary["evictions"], summary["lost"]) == (171, 1, 0)
    assert summary["utilisation"]["cpu"] == round(170 / 171, 6)
    assert summary["wasted"]["cpu"] == round(40 / 171, 6)
    assert summary["storm"] is None


def test_a_lost_job_neither_finishes_nor_stretches_the_time() -> None:
    """It would have ended at 100; the other one ends at 71, and nothing happens after that."""
    found, summary = table(measures := preempted("lose")), measures.summary()
    assert (summary["jobs"], summary["finished"], summary["lost"]) == (2, 1, 1)
    assert (summary["makespan"], measures.end, measures.bins.edges[-1]) == (71, 71, 71)
    assert (found["low"]["end"], found["low"]["run"]) == ("", 40)
    assert found["low"]["reason"] == "its only pod was lost by evictions"
    assert [each["job"] for each in summary["unfinished"]] == ["default/low"]
    assert measures.queue_lengths[0, -60:].tolist() == [0.0] * 60


def test_a_job_that_waits_for_ever_does_not_stretch_the_time() -> None:
    """A plugin that looks at the clock is asked for a week more; that is no time of the job's."""
    conf = DEFAULT_CONF.replace("- name: gang", "- name: gang\n  - name: sla")
    made = [gang("fits", 0.0, 10.0), gang("huge", 0.0, 10.0, request={"cpu": "64"})]
    measures = Measures("", run(made, kube_objects(node("n", cpu="1")), conf))
    assert measures.summary()["finished"] == 1
    assert measures.end == measures.makespan == 10


# Comparisons, storms, nothing


def test_figures_do_not_depend_on_what_a_configuration_is_compared_with() -> None:
    outcome = two_queues((3, 1), (12, 20)).outcome
    alone, compared = Measures("x", outcome), Measures("x", outcome, end=1000.0)
    assert compared.bins.edges[-1] == 1000.0
    assert compared.summary() == alone.summary()


def test_shares_of_queues_add_up_to_what_is_in_use() -> None:
    summary = preempted("requeue").summary()
    shares = [facts["share"]["cpu"] for facts in summary["queues"].values()]
    assert math.fsum(shares) == pytest.approx(summary["utilisation"]["cpu"], abs=2e-6)


def test_jobs_that_evict_each_other_without_end_are_a_storm() -> None:
    """Each queue is within its due of memory and beyond its due of CPU: both may reclaim."""
    conf = """
actions: "enqueue, allocate, gangreclaim"
tiers:
- plugins: [{name: gang}, {name: conformance}, {name: capacity}]
- plugins: [{name: predicates}]
"""
    due = {"cpu": "1", "memory": "64Gi"}
    cluster = kube_objects(
        node("n", cpu="4", memory="64Gi"), *(queue(name, deserved=due) for name in "ab")
    )
    made = [
        gang(f"{name}{i}", 0.0, 30.0, request={"cpu": "2", "memory": "1Gi"}, queue=name)
        for name, i in itertools.product("ab", range(2))
    ]
    storm = Measures("", run(made, cluster, conf)).summary()["storm"]
    assert storm["jobs"] >= 2
    assert storm["evictions"] > 10 * storm["jobs"]
    assert storm["text"].startswith(f"storm of evictions: pods of {storm['jobs']} jobs")


def test_pods_that_ask_for_nothing_are_counted_by_the_places_they_take() -> None:
    made = [
        JobSpec(f"j{i}", 0.0, (TaskSpec(SPECS.spec({}), 1, 10.0),), 1, queue=name)
        for i, name in enumerate("abb")
    ]
    summary = Measures("", run(made, kube_objects(node("n", cpu="1", pods=4)))).summary()
    assert summary["utilisation"] == {"pods": 0.75}
    assert {name: facts["share"] for name, facts in summary["queues"].items()} == {
        "a": {"pods": 0.25}, "b": {"pods": 0.5},
    }  # fmt: skip

"""Figures of queues and jobs are those of the session that was just decided."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest, in_namespace
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.metrics import Metrics
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.cycle_metrics import QueueMetrics
from pumice.testing import node, pod, pod_group, queue

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: %s}, {name: nodeorder}]
"""


class World:
    """A cluster of two nodes with eight cpus, and the figures of its cycles."""

    def __init__(self, policy: Any, *objects: Any, every_s: Any = 5.0) -> None:
        self.ingest = Ingest(Snapshot())
        nodes = [node(name, cpu=4, memory="8Gi") for name in ("n1", "n2")]
        things = [from_manifest(in_namespace(one)) for one in (*nodes, *objects)]
        self.snapshot = self.ingest.load(things)
        self.scheduler = Scheduler(parse_conf(CONF % policy))
        self.metrics = Metrics()
        self.meter = QueueMetrics(self.metrics, every_s=every_s)

    def cycle(self, now: Any = 0.0) -> Any:
        self.scheduler.decide(self.snapshot, now, observer=self.meter)
        lines = (line.rpartition(" ") for line in self.metrics.text().splitlines())
        return {name: value for name, _, value in lines}


def gang(name: Any, size: Any, queue_name: str = "q", cpu: Any = 1) -> Any:
    pods = [pod(f"{name}-{i}", group=name, cpu=cpu) for i in range(size)]
    return [pod_group(name, min_member=size, queue=queue_name, phase="Inqueue"), *pods]


@pytest.mark.parametrize("policy", ["proportion", "capacity"])
def test_a_queue_is_reported_with_what_it_holds_and_asks_for(policy: str) -> None:
    world = World(policy, queue("q", weight=3, capability={"cpu": 6}), *gang("a", 2), *gang("b", 9))
    series = world.cycle()
    where = '{queue_name="q"}'
    assert series[f"volcano_queue_allocated_milli_cpu{where}"] == "2000"
    assert series[f"volcano_queue_request_milli_cpu{where}"] == "11000"
    assert series[f"volcano_queue_capacity_milli_cpu{where}"] == "6000"
    assert series[f"volcano_queue_real_capacity_milli_cpu{where}"] == "6000"
    assert series[f"volcano_queue_weight{where}"] == "3"


def test_what_is_deserved_by_weight_is_reported() -> None:
    objects = [*gang("a", 8, "one"), *gang("b", 8, "two")]
    world = World("proportion", queue("one", weight=1), queue("two", weight=3), *objects)
    series = world.cycle()
    assert series['volcano_queue_deserved_milli_cpu{queue_name="one"}'] == "2000"
    assert series['volcano_queue_deserved_milli_cpu{queue_name="two"}'] == "6000"


def test_stated_amounts_are_reported_before_parts_by_weight() -> None:
    reported = queue("q", deserved={"cpu": 3})
    series = World("proportion}, {name: capacity", reported, *gang("a", 8)).cycle()
    assert series['volcano_queue_deserved_milli_cpu{queue_name="q"}'] == "3000"


def test_without_limits_nothing_is_reported_of_queues() -> None:
    series = World("binpack", queue("q"), *gang("a", 2)).cycle()
    assert not [name for name in series if "queue_name" in name and "deserved" in name]


def test_in_a_tree_a_queue_counts_with_all_under_it() -> None:
    world = World(
        "capacity, enableHierarchy: true",
        queue("root"),
        queue("top", parent="root", deserved={"cpu": 6}),
        queue("q", parent="top", deserved={"cpu": 4}),
        *gang("a", 2),
    )
    series = world.cycle()
    assert series['volcano_queue_allocated_milli_cpu{queue_name="q"}'] == "2000"
    assert series['volcano_queue_allocated_milli_cpu{queue_name="top"}'] == "2000"
    assert series['volcano_queue_share{queue_name="q"}'] == "0.5"


def test_under_capacity_a_queue_that_deserves_nothing_has_a_share_of_one() -> None:
    series = World("capacity", queue("q"), queue("idle"), *gang("a", 2)).cycle()
    for name in ("q", "idle"):
        assert series[f'volcano_queue_share{{queue_name="{name}"}}'] == "1"
        assert series[f'volcano_queue_overused{{queue_name="{name}"}}'] == "0"


@pytest.mark.parametrize(("deserved", "overused"), [(1, "1"), (2, "0"), (3, "0")])
def test_under_capacity_a_queue_is_overused_above_a_share_of_one(
    deserved: int, overused: str
) -> None:
    series = World("capacity", queue("q", deserved={"cpu": deserved}), *gang("a", 2)).cycle()
    assert series['volcano_queue_overused{queue_name="q"}'] == overused


def capacities(series: Any, figure: str) -> dict[str, str]:
    start = f'volcano_queue_{figure}_milli_cpu{{queue_name="'
    found = {name: value for name, value in series.items() if name.startswith(start)}
    return {name.removeprefix(start).removesuffix('"}'): value for name, value in found.items()}


def test_a_child_shows_the_capability_it_has_from_above_and_an_unlimited_root_none() -> None:
    series = World(
        "capacity, enableHierarchy: true",
        queue("root"),
        queue("top", parent="root", capability={"cpu": 6}),
        queue("q", parent="top"),
        queue("free", parent="root"),
        *gang("a", 2),
    ).cycle()
    assert capacities(series, "capacity") == {"top": "6000", "q": "6000"}
    assert capacities(series, "real_capacity") == {"top": "6000", "q": "6000"}


def test_jobs_that_found_no_place_are_reported_with_what_they_miss() -> None:
    world = World("proportion", queue("q"), *gang("a", 2), *gang("b", 9))
    series = world.cycle()
    assert series["volcano_unschedule_job_count"] == "1"
    found = 6  # places for tasks of b: they were given up with the gang
    assert series['volcano_unschedule_task_count{job_id="b"}'] == str(9 - found)


def test_shares_of_jobs_are_reported() -> None:
    world = World("proportion", queue("q"), *gang("a", 2))
    assert world.cycle()['volcano_job_share{job_id="a",job_ns="default"}'] == "0.25"


def test_shares_of_jobs_are_reported_under_drf_alone() -> None:
    world = World("proportion", queue("q"), *gang("a", 2))
    world.scheduler = Scheduler(parse_conf(CONF.replace("{name: drf}, ", "") % "proportion"))
    assert not any(name.startswith("volcano_job_share") for name in world.cycle())


def test_a_job_that_is_gone_is_reported_no_more() -> None:
    things = gang("a", 2)
    world = World("proportion", queue("q"), *things)
    world.cycle(0.0)
    for manifest in reversed(things):
        world.ingest.delete(from_manifest(in_namespace(manifest)))
    world.ingest.settle()
    assert not [name for name in world.cycle(10.0) if 'job_id="a"' in name]


def test_figures_of_queues_are_worked_out_only_now_and_then() -> None:
    world = World("proportion", queue("q"), *gang("a", 2))
    name = 'volcano_queue_allocated_milli_cpu{queue_name="q"}'
    assert world.cycle(100.0)[name] == "2000"
    world.metrics.queue_amounts("q", "allocated", 1, 1, {})
    assert world.cycle(104.0)[name] == "1"
    assert world.cycle(105.0)[name] == "2000"

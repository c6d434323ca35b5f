"""What a cycle is measured by: its decisions, writes, times and losses."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions, PodGroupState
from pumice.api.objects import from_manifest, in_namespace
from pumice.binder.write_results import WriteResult, WriteResults
from pumice.cache.ingest import Ingest
from pumice.cluster.embedded.node_operations import add_node
from pumice.core.snapshot import Snapshot
from pumice.errors import ConflictError
from pumice.metrics import Metrics
from pumice.scheduler import Observer, Scheduler
from pumice.serve.scheduler.cycle_metrics import CycleMetrics, QueueMetrics
from pumice.serve.scheduler.live_scheduler import Cycle
from pumice.testing import node, pod, pod_group, queue
from tests.unit.serve.scheduler.test_loop import Cluster, ended_after, job, looping


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def test_figures_are_counted(cluster: Any) -> None:
    job(cluster)
    metrics = Metrics()
    loop, stop, _ = ended_after(cluster, 3, metrics=metrics)
    loop.run(stop)
    text = metrics.text()
    for line in (
        'volcano_schedule_attempts_total{result="scheduled"} 1',
        'pumice_writes_total{result="ok",verb="bind"} 1',
        'volcano_action_scheduling_latency_milliseconds_count{action="allocate"} 3',
        "volcano_e2e_scheduling_latency_milliseconds_count 3",
        'pumice_cache_objects{kind="Pod"} 1',
        'volcano_scheduling_stage_duration_milliseconds_count{stage="Bind"} 1',
        'volcano_e2e_job_scheduling_duration{job_name="g"',
    ):
        assert line in text


class Recorded:
    """Cycles that are recorded as if they had been, on the tables of a loop."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.loop = looping(cluster)
        self.metrics = Metrics()
        self.figures = CycleMetrics(self.metrics, cluster.now, Observer())
        self.refresh()

    def refresh(self) -> None:
        self.loop._turn()

    def record(self, *results: Any, at: Any = 9.0, dropped: bool = False, **decided: Any) -> Any:
        cycle = Cycle(at, Decisions(**decided), WriteResults(list(results)), dropped)
        self.figures.record(cycle, self.loop._live, {"Node": "away"})
        return self.series()

    def series(self) -> Any:
        lines = self.metrics.text().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")


@pytest.fixture
def recorded(cluster: Any) -> Recorded:
    cluster.clock.advance(2.0)
    job(cluster)
    return Recorded(cluster)


def attempts(series: Any) -> dict[str, float]:
    stem = "volcano_schedule_attempts_total"
    results = ("scheduled", "unschedulable", "error")
    return {each: float(series.get(f'{stem}{{result="{each}"}}', 0)) for each in results}


def test_a_cycle_that_was_dropped_scheduled_nothing(recorded: Recorded) -> None:
    decided: Any = {
        "binds": {"default/g-0": "n", "default/x": "n"},
        "unschedulable": {"g": "m"},
        "evictions": ["a", "b"],
        "evicted_by": {"a": "preempt", "b": "preempt"},
        "pod_groups": {"default/g": PodGroupState("Running")},
    }
    failed = WriteResult("bind", "default/x", error=ConflictError())
    series = recorded.record(failed, dropped=True, **decided)
    assert attempts(series) == {"scheduled": 0, "unschedulable": 1, "error": 1}
    assert recorded.figures._jobs == {}
    assert float(series.get("volcano_total_preemption_attempts", 0)) == 0
    series = recorded.record(failed, **decided)
    assert attempts(series) == {"scheduled": 2, "unschedulable": 2, "error": 2}
    assert float(series["volcano_total_preemption_attempts"]) == 1
    assert float(series["volcano_pod_preemption_victims"]) == 2
    recorded.figures.record_failure()
    assert attempts(recorded.series())["error"] == 3


def test_writes_are_counted_by_what_they_were(recorded: Recorded) -> None:
    series = recorded.record(
        WriteResult("bind", "default/g-0", took_s=0.25),
        WriteResult("bind", "default/gone", took_s=0.5),
        WriteResult("bind", "default/x", error=ConflictError(), took_s=9.0),
        WriteResult("evict", "default/y", took_s=9.0),
        at=7.0,
    )
    assert series['pumice_writes_total{result="ok",verb="bind"}'] == "2"
    assert series['pumice_writes_total{result="ok",verb="evict"}'] == "1"
    stage = "volcano_scheduling_stage_duration_milliseconds"
    assert float(series[f'{stage}_sum{{stage="Bind"}}']) == 750
    tasks = [each for each in series if "Bound" in each and "_sum" in each]
    assert [float(series[each]) for each in tasks] == [5000]
    failed = [
        each for each in series if each.startswith("pumice_writes_total") and "ok" not in each
    ]
    assert [(series[each], 'verb="bind"' in each) for each in failed] == [("1", True)]


def test_kinds_and_bad_objects_are_counted(recorded: Recorded) -> None:
    skipped = recorded.loop._live.informer.skipped
    counts, series = [], dict[str, str]()
    for second, count in enumerate((2, 2, 5, 1, 1)):
        skipped.clear()
        skipped["Pod"] = count
        series = recorded.record(at=float(second))
        (name,) = (each for each in series if each.startswith("pumice_bad_objects_total"))
        counts.append(float(series[name]))
    assert counts == [2, 2, 5, 6, 6]
    watched = {each: series[each] for each in series if "watch" in each and "Pod" in each}
    assert set(watched.values()) == {"1"}
    troubled = {each: series[each] for each in series if "watch" in each and '"Node"' in each}
    assert set(troubled.values()) == {"0"}


def test_a_gang_is_counted_when_it_first_runs_and_forgotten_when_it_is_gone(
    recorded: Recorded, cluster: Any
) -> None:
    def gangs() -> list[str]:
        stem = "volcano_e2e_job_scheduling_duration{"
        return [each for each in recorded.series() if each.startswith(stem)]

    for phase, counted in (("Pending", 0), ("Running", 1), ("Running", 1)):
        recorded.record(pod_groups={"default/g": PodGroupState(phase)}, at=5.0)
        assert len(gangs()) == counted
    recorded.record(pod_groups={"default/unknown": PodGroupState("Running")})
    (gang,) = gangs()
    assert float(recorded.series()[gang]) == 3000
    cluster.delete("PodGroup.scheduling.volcano.sh", "default", "g")
    cluster.delete("Pod", "default", "g-0", grace_s=0)
    recorded.refresh()
    for number in range(5, 65):
        recorded.record()
        assert len(gangs()) == (number < 64)


def test_a_cycle_takes_the_time_from_its_start_to_its_end() -> None:
    times = iter([100.0, 101.0, 103.5])
    metrics = Metrics()
    with CycleMetrics(metrics, lambda: next(times), Observer()).timed():
        pass
    assert "volcano_e2e_scheduling_latency_milliseconds_sum 3500" in metrics.text()


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


def test_shares_of_jobs_are_reported_under_drf_alone() -> None:
    world = World("proportion", queue("q"), *gang("a", 2))
    assert world.cycle()['volcano_job_share{job_id="a",job_ns="default"}'] == "0.25"
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

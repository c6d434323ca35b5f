"""A simulation that keeps answers and plugins between cycles decides as one that does not."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pytest

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.kinds import Manifest
from pumice.api.pods import PodSpec
from pumice.core.views import Nodes, Task
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.registry import KeptPlugins
from pumice.scheduler import Scheduler
from pumice.sim.direct_cycle import DirectCycle, DirectDecisions
from pumice.sim.engine import Engine, simulated_scheduler
from pumice.sim.job_run import Outcome
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, pod_group, queue
from tests.unit.sim.made import kube_objects

EVICTING = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf, enablePreemptable: false}, {name: predicates},
    {name: proportion}, {name: nodeorder}]
"""
PACKING = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: binpack}, {name: nodeorder}]
"""
UNADMITTED = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}, {name: resource-strategy-fit}]
"""
POLICIES = {"default": DEFAULT_CONF, "evict": EVICTING, "pack": PACKING, "admit all": UNADMITTED}
CLASSES = ("low", "high")
Generator = np.random.Generator
T = TypeVar("T")


def one(rng: Generator, these: Sequence[T]) -> T:
    """Draw one."""
    return these[int(rng.integers(len(these)))]


def priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def cluster(rng: Generator) -> list[Manifest]:
    """A few machines that differ, some of them marked, and queues of different weight."""
    machines = [
        node(
            f"n{i}",
            cpu=one(rng, (4, 8, 16)),
            memory=f"{one(rng, (16, 32))}Gi",
            labels={"zone": one(rng, "ab")},
        )
        for i in range(rng.integers(3, 40))
    ]
    queues = [queue(name, weight=weight) for name, weight in (("q1", 1), ("q2", 3), ("q3", 1))]
    return [*machines, *queues, priority_class("low", 1), priority_class("high", 100)]


def pod_specs(rng: Generator) -> list[PodSpec]:
    """Requests of different size, one of nothing, one for a zone."""
    made = PodSpecs()
    cpus = rng.permutation(["250m", "500m", "1", "2", "3"])[:3].tolist()
    found = [made.spec({"cpu": cpu, "memory": "1Gi"}) for cpu in cpus]
    return [*found, made.spec({}), made.spec({"cpu": "1"}, node_selector={"zone": "a"})]


def workload(rng: Generator, *, late_pods: bool) -> Workload:
    specs, at, jobs = pod_specs(rng), 0.0, []
    for number in range(rng.integers(15, 30)):
        at += one(rng, (0.0, 0.0, 0.4, 1.0, 7.0))
        size = one(rng, (1, 1, 1, 2, 4, 9))
        parts = [TaskSpec(one(rng, specs), size, one(rng, (5.0, 20.0, 33.3)))]
        if rng.random() < 0.2:
            parts.append(TaskSpec(one(rng, specs), 2, 12.0, role="other"))
        jobs.append(
            JobSpec(
                f"job-{number}",
                at,
                tuple(parts),
                one(rng, (1, size)),
                queue=one(rng, ("q1", "q2", "q3")),
                priority_class=one(rng, CLASSES),
                late_pods=late_pods,
            )
        )
    return Workload(name="drawn", format="test", jobs=in_order(jobs))


def reported(outcome: Outcome) -> list[tuple[Any, ...]]:
    """Everything that happened, with the nodes, in order; and why jobs waited."""
    log = outcome.log
    columns = (log.time, log.kind, log.job, log.task, log.node)
    events = list(zip(*(column.tolist() for column in columns), strict=True))
    return [*events, *((run.spec.name, run.reason) for run in outcome.runs)]


def forgetful(conf: SchedulerConf, **options: Any) -> Scheduler:
    """Return a scheduler that makes its plugins for every cycle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeptPlugins, "of", lambda _: None)
        scheduler = Scheduler(conf, **options)
    assert scheduler.kept_hooks is None
    return scheduler


def without_fits(conf: SchedulerConf, scheduler: Scheduler) -> Shortcuts:
    return replace(Shortcuts.of(conf.actions, scheduler.tiers()), keep_placing=False)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_kept_changes_nothing(policy: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *policy.encode()])
    jobs, machines = workload(rng, late_pods=seed == 1), kube_objects(*cluster(rng))
    conf = parse_conf(POLICIES[policy])
    keeping = Engine(jobs, machines, conf, scheduler=simulated_scheduler(conf, seed=seed)).run()
    scheduler = forgetful(conf, seed=seed)
    fresh = Engine(
        jobs, machines, conf, scheduler=scheduler, shortcuts=without_fits(conf, scheduler)
    ).run()
    assert reported(keeping) == reported(fresh)


@dataclass(kw_only=True)
class Counting(Plugin, name="counting"):
    """Answers by what it has noted since it was made, which is nothing when a cycle begins."""

    simulator = SimulatorAssumptions()
    seen: list[str] = field(default_factory=list)

    def on_open(self, ssn: PluginSession) -> None:
        self.seen.append("opened")
        assert self.seen == ["opened"]

    def score_nodes(self, task: Task, nodes: Nodes) -> Any:
        self.seen.append("asked")
        return nodes.index * float(len(self.seen))


def test_plugins_begin_every_cycle_as_they_were_made() -> None:
    rng = np.random.default_rng(3)
    jobs, machines = workload(rng, late_pods=False), kube_objects(*cluster(rng))
    conf = parse_conf(
        'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, '
        "{name: counting}]"
    )
    plugins = {"counting": Counting}
    assert not Shortcuts.of(conf.actions, Scheduler(conf, plugins=plugins).tiers()).keep_placing
    keeping = Engine(jobs, machines, conf, scheduler=simulated_scheduler(conf, plugins=plugins))
    fresh = Engine(jobs, machines, conf, scheduler=forgetful(conf, plugins=plugins))
    kept = keeping.run()
    assert kept.failures == ()
    assert reported(kept) == reported(fresh.run())


def noted_cycles(monkeypatch: pytest.MonkeyPatch) -> list[DirectDecisions]:
    """Note what cycles without a session decide."""
    noted: list[DirectDecisions] = []
    decide = DirectCycle.decide

    def noting(cycle: DirectCycle, *args: Any) -> DirectDecisions | None:
        found = decide(cycle, *args)
        noted.extend([] if found is None else [found])
        return found

    monkeypatch.setattr(DirectCycle, "decide", noting)
    return noted


PLAIN = "{name: predicates}, {name: nodeorder}"
DIRECT = {
    "default": DEFAULT_CONF,
    "no overcommit": f"""
actions: "enqueue, allocate"
tiers:
- plugins: [{{name: gang}}, {{name: proportion}}, {{name: drf}}, {PLAIN}]
""",
    "queues by age": f"""
actions: "enqueue, allocate"
tiers:
- plugins: [{{name: gang}}, {{name: overcommit}}]
- plugins: [{{name: proportion, enableQueueOrder: false}}, {PLAIN}]
""",
    "no queue limits": f"""
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: gang}}, {{name: overcommit}}, {PLAIN}]
""",
}


def crowded_jobs(rng: Generator, *, several_classes: bool) -> Workload:
    """Gangs that arrive faster than the cluster serves them, some at the same moment."""
    made, at, jobs = PodSpecs(), 0.0, []
    specs = [made.spec({"cpu": cpu, "memory": "1Gi"}) for cpu in ("500m", "1", "3")]
    for number in range(90):
        at += one(rng, (0.0, 0.0, 0.4, 1.0, 2.0))
        size = one(rng, (1, 1, 2, 3, 5, 9))
        part = TaskSpec(one(rng, specs), size, one(rng, (1.0, 20.0, 33.3, 60.0)))
        jobs.append(
            JobSpec(
                f"job-{rng.integers(100)}-{number}",
                at,
                (part,),
                size,
                queue=one(rng, ("q1", "q2", "q3")),
                priority_class=one(rng, CLASSES) if several_classes else "low",
            )
        )
    return Workload(name="drawn", format="test", jobs=in_order(jobs))


def crowded_cluster(rng: Generator) -> list[Manifest]:
    """A cluster that is soon full, with limits on some queues."""
    machines = [node(f"n{i}", cpu=one(rng, (4, 8)), memory="32Gi") for i in range(4)]
    queues = [
        queue("q1", weight=1, capability={"cpu": "12"}),
        queue("q2", weight=3, priority=one(rng, (0, 7))),
        queue("q3", weight=2, guarantee={"cpu": "4"}),
    ]
    return [*machines, *queues, priority_class("low", 1), priority_class("high", 100)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("policy", DIRECT)
def test_jobs_of_full_queues_are_admitted_and_start_as_in_a_session(
    policy: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([seed, *policy.encode()])
    jobs = crowded_jobs(rng, several_classes=seed == 2)
    machines, conf = kube_objects(*crowded_cluster(rng)), parse_conf(DIRECT[policy])
    direct = noted_cycles(monkeypatch)
    keeping = Engine(jobs, machines, conf, scheduler=simulated_scheduler(conf, seed=seed)).run()
    assert sum(len(each.started) for each in direct) >= (5 if seed == 2 else 20)
    if seed != 2:  # else sessions decide between priorities
        assert any(len(each.started) > 1 for each in direct)
        assert any({*each.admitted} - {*each.started} for each in direct)
    fresh = Engine(jobs, machines, conf, scheduler=forgetful(conf, seed=seed)).run()
    assert reported(keeping) == reported(fresh)
    assert keeping.cost.cycles == fresh.cost.cycles
    assert keeping.cost.decisions == fresh.cost.decisions


def test_pod_groups_of_the_cluster_reserve_as_in_a_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group without pods reserves 6 of 8 CPUs: jobs of 2 CPUs are admitted one at a time."""
    noted = noted_cycles(monkeypatch)
    group = pod_group("left", min_member=5, phase="Inqueue")
    group["spec"]["minResources"] = {"cpu": "6"}
    things = [node("n", cpu=8, memory="32Gi"), queue("default"), group]
    spec = PodSpecs().spec({"cpu": "1", "memory": "1Gi"})
    jobs = [JobSpec(f"j{i}", float(i), (TaskSpec(spec, 2, 20.0),), 2) for i in range(4)]
    factor = "{name: overcommit, arguments: {overcommit-factor: 1.0}}"
    conf = parse_conf(
        'actions: "enqueue, allocate"\n'
        f"tiers:\n- plugins: [{{name: priority}}, {{name: gang}}, {factor}, {{name: predicates}}]\n"
    )
    load = Workload(name="drawn", format="test", jobs=in_order(jobs))
    outcome = Engine(load, kube_objects(*things), conf).run()
    starts = [run.started for run in outcome.runs]
    assert [start - starts[0] for start in starts] == [0.0, 20.0, 40.0, 60.0]
    assert not [one for one in noted if one.started]

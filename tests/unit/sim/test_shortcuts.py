"""What the simulator leaves out follows from what plugins declare, and changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.api.kinds import Manifest
from pumice.api.meta import ResourceList
from pumice.api.objects import from_manifest, in_namespace
from pumice.api.pods import Container, PodSpec, ResourceRequirements
from pumice.core.resources import Column
from pumice.core.views import Job
from pumice.framework.columns import Jobs
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.plugins import builtin_plugins
from pumice.plugins.gang import Gang
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventKind
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, queue


@dataclass(kw_only=True)
class Stranger(Plugin, name="stranger"):
    """Refuses, and declares nothing about it."""

    def job_valid(self, job: Job) -> str:
        return ""


@dataclass(kw_only=True)
class Newest(Plugin, name="newest"):
    """Puts the job first that came last, and declares nothing."""

    def order_jobs(self, jobs: Jobs) -> Column:
        return -jobs.created


@dataclass(kw_only=True)
class Orderly(Plugin, name="orderly"):
    """Declares that it does not change its mind."""

    simulator = SimulatorAssumptions()

    def job_valid(self, job: Job) -> str:
        return ""


@dataclass(kw_only=True)
class InLine(Plugin, name="in-line"):
    """Declares that it looks at all jobs that wait."""

    simulator = SimulatorAssumptions(all_jobs=True)


def scheduler(plugins: Iterable[str]) -> Scheduler:
    entries = "".join(f"- plugins: [{tier}]\n" for tier in plugins)
    conf = parse_conf(f'actions: "enqueue, allocate"\ntiers:\n{entries}')
    own = (Stranger, Newest, Orderly, InLine)
    return Scheduler(conf, plugins={each.name: each for each in own})


def shortcuts(*plugins: str) -> Shortcuts:
    made = scheduler(plugins)
    return Shortcuts.of(made.conf.actions, made.tiers())


@pytest.mark.parametrize("plugin", builtin_plugins().values(), ids=lambda plugin: plugin.name)
def test_every_built_in_plugin_declares_what_may_be_assumed(plugin: type[Plugin]) -> None:
    assert (plugin.simulator is None) == (plugin.name == "extender")


def test_a_subclass_does_not_inherit_a_declaration() -> None:
    class Choosy(Gang, name="choosy"):
        """May do anything."""

    assert Gang.simulator is not None
    assert Choosy.simulator is None


def test_an_order_that_nobody_knows_decides_among_equal_jobs() -> None:
    jobs = [(0, 10, 3), (1, 10, 3), (2, 10, 3)]
    assert starts("newest", jobs) == [0.0, 20.0, 10.0]


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("orderly", True),
        ("stranger", False),
        ("in-line", False),
        *((name, False) for name in ("extender", "rescheduling", "sla", "tdm")),
    ],
)
def test_jobs_are_left_out_unless_a_plugin_acts_on_its_own_or_says_nothing(
    name: str, left_out: bool
) -> None:
    assert shortcuts(f"{{name: gang}}, {{name: {name}}}").leave_jobs_out is left_out


def job(name: str = "a", cpu: str = "1") -> JobSpec:
    task = TaskSpec(PodSpecs().spec({"cpu": cpu, "memory": "1Gi"}), 1, 10.0)
    return JobSpec(name, 0.0, (task,), 1, queue="q")


TEN = node("n", cpu=10, memory="100Gi")


# The same story, whoever takes part

Story = list[tuple[float, str, str]]
"""EventKind happened when to which job."""


def numa(name: str, *, cpus: int = 8) -> Manifest:
    """A machine of two NUMA nodes, with the kubelet's strictest policy."""
    places = {
        str(i): {"numa": 2 * i // cpus, "socket": 2 * i // cpus, "core": i} for i in range(cpus)
    }
    policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": {
            "policies": policies,
            "numares": {"cpu": {"allocatable": f"0-{cpus - 1}", "capacity": cpus}},
            "cpuDetail": places,
        },
    }


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "all", "namespace": "default"},
    "status": {"hard": {"cpu": "4"}, "used": {}},
}
NUMA = {"volcano.sh/numa-topology-policy": "single-numa-node"}


def story(
    made: Scheduler,
    jobs: list[JobSpec],
    objects: list[Manifest],
    shortcuts: Shortcuts | None = None,
) -> tuple[Story, int]:
    """The events with their pods and times, and the number of cycles."""
    workload = Workload(name="tiny", format="test", jobs=in_order(jobs))
    things = [from_manifest(in_namespace(each)) for each in objects]
    outcome = Engine(workload, things, made.conf, scheduler=made, shortcuts=shortcuts).run()
    log, runs = outcome.log, outcome.runs
    rows = zip(log.time.tolist(), log.kind.tolist(), log.job.tolist(), strict=True)
    reported = [(time, EventKind(what).name, runs[job].spec.name) for time, what, job in rows]
    return sorted(reported), outcome.cost.cycles


def both_ways(
    made: Scheduler, jobs: list[JobSpec], objects: list[Manifest]
) -> tuple[tuple[Story, int], tuple[Story, int]]:
    """Return the story with shortcuts, and with every job in every cycle."""
    found = Shortcuts.of(made.conf.actions, made.tiers())
    slow = replace(
        found, leave_jobs_out=False, await_events=False, refusals_last=False, keep_placing=False
    )
    return story(made, jobs, objects), story(made, jobs, objects, shortcuts=slow)


def numa_spec(cpus: int) -> PodSpec:
    amounts: ResourceList = {"cpu": cpus, "memory": "1Gi"}
    resources = ResourceRequirements(requests=amounts, limits=amounts)
    containers = (Container(name="main", resources=resources),)
    return PodSpec(scheduler_name="volcano", containers=containers)


def test_numa_simulations_take_the_fast_path_to_the_same_end() -> None:
    """Cpus stay taken while their pods run: who was refused for them waits until one ends."""
    made = scheduler(["{name: gang}", "{name: predicates}, {name: proportion}, {name: numa-aware}"])
    assert Shortcuts.of(made.conf.actions, made.tiers()).leave_jobs_out
    tasks = [TaskSpec(numa_spec(cpus), 1, 30.0, annotations=NUMA) for cpus in (1, 3)]
    jobs = [
        JobSpec(f"job-{n:02d}", float(n // 12), (tasks[n % 2],), 1, queue="q") for n in range(40)
    ]
    machines = [node(name, cpu=8, memory="64Gi") for name in ("n1", "n2")]
    objects = [*machines, numa("n1"), numa("n2"), queue("q")]
    (fast, n_fast), (slow, n_slow) = both_ways(made, jobs, objects)
    assert fast == slow
    assert [what for _, what, _ in fast].count("FINISH") == len(jobs)
    assert n_fast < n_slow
    binds = {time for time, what, _ in fast if what == "BIND"}
    assert not any(time + 1.0 in binds for time in binds)  # no job succeeds in the next cycle


def test_a_quota_forgets_who_was_admitted_in_the_cycle_before() -> None:
    made = scheduler(["{name: gang}, {name: resourcequota}", "{name: predicates}"])
    jobs = [job(cpu="3", name=f"job-{number}") for number in range(3)]
    (fast, _), (slow, _) = both_ways(made, jobs, [TEN, queue("q"), QUOTA])
    assert fast == slow
    assert [time for time, what, _ in fast if what == "ENQUEUE"] == [0.0, 1.0, 2.0]


def starts(plugin: str, jobs: Iterable[tuple[float, float, int]]) -> list[float]:
    """Run jobs (arrival, seconds, pods) on three CPUs; return when each starts."""
    spec = PodSpecs().spec({"cpu": "1"})
    made = [
        JobSpec(f"job-{n}", arrival, (TaskSpec(spec, pods, run),), pods)
        for n, (arrival, run, pods) in enumerate(jobs)
    ]
    chosen = scheduler([f"{{name: {plugin}}}, {{name: gang}}, {{name: predicates}}"])
    workload = Workload(name="made", format="rows", jobs=in_order(made))
    cluster = [from_manifest(node(f"node-{n}", cpu="1")) for n in range(3)]
    outcome = Engine(workload, cluster, chosen.conf, scheduler=chosen).run()
    return [run.started for run in outcome.runs]


def test_pods_that_end_between_two_looks_free_room_at_once() -> None:
    jobs = [(0.0, 4.0, 3), (1.0, 4.0, 3)]
    assert starts("stranger", jobs) == starts("orderly", jobs) == [0.0, 4.0]


def test_a_moment_that_misses_a_tick_by_rounding_is_that_tick() -> None:
    """Thirds add up to a little less than a whole second."""
    jobs = [(0.0, 6.0, 3), (1 / 3, 1.0, 1), (1 / 3 + 17 / 3 - 1e-15, 1.0, 2)]
    assert starts("stranger", jobs) == starts("orderly", jobs) == [0.0, 6.0, 6.0]


@pytest.mark.parametrize("seed", range(12))
def test_a_plugin_without_a_declaration_starts_jobs_at_the_same_times(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = [
        (int(rng.integers(30)) / int(rng.choice([1, 3])), int(rng.integers(1, 12)), int(pods))
        for pods in rng.integers(1, 4, size=6)
    ]
    assert starts("stranger", jobs) == starts("orderly", jobs)


def test_a_cycle_runs_at_the_time_that_a_plugin_states() -> None:
    """Nothing happens meanwhile: the job is admitted when it has waited as long as it may."""
    sla = "{name: sla, arguments: {sla-waiting-time: 100s}}"
    made = scheduler([sla, "{name: overcommit}, {name: predicates}"])
    tasks = (TaskSpec(PodSpecs().spec({"cpu": "10", "memory": "1Gi"}), 1, 1000.0),)
    jobs = [JobSpec(f"job-{n}", float(n), tasks, 1, queue="q") for n in range(2)]
    found, cycles = story(made, jobs, [TEN, queue("q")])
    assert [time for time, what, _ in found if what == "ENQUEUE"] == [0.0, 101.0]
    assert cycles < 10

"""Cycles in which nobody can be evicted are cheaper, and decide the same."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import Outcome
from pumice.sim.options import Evicted
from pumice.sim.quiet_cycles import Outlook
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.waiting_jobs import WaitingJobs
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, priority_class, queue
from tests.unit.sim.made import kube_objects

OFF = "{name: gang, enablePreemptable: false, enableReclaimable: false}"
NODES = "{name: predicates}, {name: nodeorder}, {name: binpack}"


def conf(actions: str, *tiers: str) -> str:
    return f'actions: "{actions}"\ntiers:\n' + "".join(f"- plugins: [{tier}]\n" for tier in tiers)


CONFS = {
    "gangs": conf(
        "enqueue, allocate, gangpreempt, gangreclaim, backfill",
        "{name: priority}, {name: gang}, {name: conformance}, {name: capacity}",
        NODES,
    ),
    "preempt": conf(
        "enqueue, allocate, preempt, backfill",
        f"{{name: priority}}, {OFF}, {{name: conformance}}",
        f"{{name: overcommit}}, {NODES}",
    ),
    "surplus": conf(
        "enqueue, allocate, preempt",
        "{name: priority}, {name: gang}",
        f"{{name: proportion}}, {NODES}",
    ),
    "shares": conf(
        "enqueue, allocate, preempt, reclaim, backfill",
        "{name: priority}, {name: gang}, {name: conformance}",
        f"{{name: overcommit}}, {{name: drf}}, {{name: proportion}}, {NODES}",
    ),
    "reclaim": conf(
        "allocate, reclaim, preempt",
        f"{{name: priority}}, {OFF}",
        f"{{name: capacity}}, {NODES}",
    ),
}


def jobs(rng: np.random.Generator, *, single: bool) -> list[JobSpec]:
    """Draw gangs, some of which may start in part, of a few priorities, queues and requests."""
    book, second, found = PodSpecs(), 0, []
    for number in range(int(rng.integers(10, 22))):
        second += int(rng.choice([0, 0, 1, 2, 7]))
        size = 1 if single else int(rng.choice([1, 1, 2, 3, 6]))
        spec = book.spec({"cpu": str(rng.choice([1, 1, 2])), "memory": "1Gi"})
        found.append(
            JobSpec(
                f"job-{number:03d}",
                float(second),
                (TaskSpec(spec, size, float(rng.integers(2, 25))),),
                min_member=size if rng.random() < 0.85 else int(rng.integers(1, size + 1)),
                queue=str(rng.choice(["blue", "red", "green"])),
                priority_class=str(rng.choice(["", "", "low", "high"])),
            )
        )
    return found


def cluster(rng: np.random.Generator) -> list[Any]:
    n = int(rng.integers(1, 5))
    due: dict[str, str | int | float] = {
        "cpu": int(rng.integers(0, 2 * n + 1)),
        "memory": f"{4 * n}Gi",
    }
    return [
        *(node(f"n{i}", cpu=4, memory="32Gi") for i in range(n)),
        queue("blue", weight=2, deserved=due),
        queue("red", deserved={"cpu": n}, capability={"cpu": 3 * n}),
        queue("green", reclaimable=bool(rng.integers(2))),
        priority_class("low", value=10),
        priority_class("high", value=1000),
    ]


def run(made: Sequence[JobSpec], objects: Any, text: str, evicted: Evicted, **change: Any) -> Any:
    """Return everything that is known in the end, of a simulation with changed shortcuts."""
    found = parse_conf(text)
    shortcuts = replace(Shortcuts.of(found.actions, Scheduler(found).tiers()), **change)
    workload = Workload(name="drawn", format="test", jobs=in_order(made))
    engine = Engine(
        workload, kube_objects(*objects), found, seed=3, evicted=evicted, shortcuts=shortcuts
    )
    outcome = engine.run()
    return told(outcome), outcome


def told(outcome: Outcome) -> Any:
    log = outcome.log
    columns = [c.tolist() for c in (log.time, log.kind, log.job, log.task, log.node)]
    reasons = [run.reason for run in outcome.runs]
    return columns, outcome.cost.cycles, outcome.cost.decisions, outcome.cost.events, reasons


@pytest.fixture
def outlooks(monkeypatch: pytest.MonkeyPatch) -> Counter[Outlook]:
    """Count what cycles were expected to decide."""
    counts: Counter[Outlook] = Counter()
    ask = WaitingJobs.outlook

    def counted(waiting: WaitingJobs) -> Outlook:
        found = ask(waiting)
        counts[found] += 1
        return found

    monkeypatch.setattr(WaitingJobs, "outlook", counted)
    return counts


SEEDS = dict.fromkeys(CONFS, (0, 1, 2, 3)) | {"shares": (0, 2, 3), "reclaim": (1, 2, 3)}
"""Two draws are left out in which jobs evict each other for hundreds of cycles."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CONFS)
def test_every_event_is_that_of_whole_sessions(name: str, outlooks: Counter[Outlook]) -> None:
    evictions = 0
    for seed in SEEDS[name]:
        evicted: Evicted = "restart" if seed % 2 else "requeue"
        rng = np.random.default_rng([seed, len(name)])
        made, objects = jobs(rng, single=seed > 1), cluster(rng)
        plain, _ = run(made, objects, CONFS[name], evicted, evictions=None)
        found, outcome = run(made, objects, CONFS[name], evicted)
        assert found == plain, seed
        evictions += outcome.log.kind.tolist().count(EventKind.EVICT)
    assert evictions
    assert outlooks[Outlook.NOTHING] > 0 or name not in ("gangs", "preempt")
    assert outlooks[Outlook.NO_EVICTIONS] > 0

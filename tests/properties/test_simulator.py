"""The simulator under random workloads: it does what a control plane does, and keeps the rules."""

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import SchedulerConf, parse_conf
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import State
from pumice.sim.shortcuts import Shortcuts
from tests.properties.planes import CONFS, by_engine, by_plane, clusters, things, workloads


def shortcuts(conf: SchedulerConf) -> Shortcuts:
    return Shortcuts.of(conf.actions, Scheduler(conf).tiers())


@pytest.mark.parametrize("name", CONFS)
@settings(max_examples=6)
@given(st.data())
def test_the_engine_tells_the_story_of_a_whole_control_plane(name: Any, data: Any) -> None:
    """Same pods on the same nodes at the same seconds, same evictions, same ends."""
    conf = parse_conf(CONFS[name])
    workload, cluster = data.draw(workloads()), data.draw(clusters(tree=name == "tree"))
    assert by_engine(workload, cluster, conf) == by_plane(workload, cluster, conf)


@pytest.mark.parametrize("name", CONFS)
@settings(max_examples=3)
@given(st.data())
def test_leaving_out_who_cannot_win_changes_nothing(name: Any, data: Any) -> None:
    """With more jobs, many of them alike: as if every job took part in every cycle."""
    conf = parse_conf(CONFS[name])
    workload = data.draw(workloads(max_jobs=30))
    cluster = data.draw(clusters(tree=name == "tree"))
    all_take_part = replace(shortcuts(conf), leave_jobs_out=False, refusals_last=False)
    plain = by_engine(workload, cluster, conf, shortcuts=all_take_part)
    assert by_engine(workload, cluster, conf) == plain


@pytest.mark.parametrize("name", CONFS)
@settings(max_examples=5)
@given(st.data())
def test_what_must_hold_after_every_event(name: Any, data: Any) -> None:
    """No node or queue beyond its limit, no gang in part, and an end to every job."""
    conf = parse_conf(CONFS[name])
    workload, cluster = data.draw(workloads()), data.draw(clusters(tree=name == "tree"))
    engine = Engine(workload, things(cluster), conf)
    watch = Watch(engine, cluster, shortcuts(conf))
    while engine.now < 2000 and engine.step():
        watch.look()
    engine.run()
    for run in engine.runs:
        assert math.isnan(run.ended) != (run.tally[State.DONE] == run.kind.size)
        assert not math.isnan(run.ended) or run.reason


class Watch:
    """Observes a simulation from outside: its log, and what the manifests allow."""

    def __init__(self, engine: Any, cluster: Any, shortcuts: Shortcuts) -> None:
        self._engine = engine
        self._shortcuts = shortcuts
        self._seen = 0
        self._nodes = {m["metadata"]["name"]: m for m in cluster if m["kind"] == "Node"}
        self._queues = {m["metadata"]["name"]: m for m in cluster if m["kind"] == "Queue"}
        self._held: Any = defaultdict(float)
        self._used: Any = defaultdict(float)

    def look(self) -> None:
        self._read_log()
        for name, manifest in self._nodes.items():
            row = self._engine.snapshot.nodes.row_of[name]
            assert 0 <= self._held[row] <= int(manifest["status"]["allocatable"]["cpu"])
        for name, manifest in self._queues.items():
            limit = (manifest["spec"].get("capability") or {}).get("cpu")
            assert not (limit and self._shortcuts.limiting) or self._used[name] <= float(limit)
        for run in self._engine.runs:
            holding = run.tally[State.RUNNING] + run.tally[State.DONE]
            assert self._shortcuts.evicts or holding == 0 or holding >= run.spec.min_member

    def _read_log(self) -> None:
        """Add up what is held on nodes, and in queues and all above them."""
        log = self._engine.log
        for i in range(self._seen, len(log)):
            what = log.kind[i]
            if what in (EventKind.BIND, EventKind.FINISH, EventKind.EVICT):
                run = self._engine.runs[log.job[i]]
                spec = run.kind.specs[run.kind.places[log.task[i]][0]]
                cpus = float(spec.containers[0].resources.requests["cpu"])
                cpus = cpus if what == EventKind.BIND else -cpus
                self._held[int(log.node[i])] += cpus
                queue = run.spec.queue
                while queue:
                    self._used[queue] += cpus
                    queue = self._queues.get(queue, {"spec": {}})["spec"].get("parent")
        self._seen = len(log)


@settings(max_examples=5)
@given(workloads(), clusters(tree=False), st.integers(0, 3))
def test_one_seed_gives_one_log(workload: Any, cluster: Any, seed: Any) -> None:
    conf = parse_conf(CONFS["default"])
    logs = []
    for _ in range(2):
        outcome = Engine(workload, things(cluster), conf, seed=seed).run()
        log = outcome.log
        logs.append([c.tolist() for c in (log.time, log.kind, log.job, log.task, log.node)])
    assert logs[0] == logs[1]

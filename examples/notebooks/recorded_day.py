"""Records 90 minutes of a small cluster in virtual time, for the notebook of a recorded day."""

from pathlib import Path

import numpy as np

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.recording import Recording
from pumice.testing import pod, pod_group, priority_class, queue

START = 1_767_225_600.0
MINUTES = 90
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.0
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def record_a_day(folder: str, seed: int = 7) -> None:
    """Play jobs that come, wait and run, with a scheduler that records them."""
    rng, clock = np.random.default_rng(seed), VirtualClock(START)
    cluster = EmbeddedCluster(clock)
    recording = Recording(Path(folder), clock.now, conf=lambda: (CONF, "a day"), beside=cluster)
    plane = EmbeddedControlPlane(
        parse_conf(CONF),
        cluster=cluster,
        observed=recording.observed,
        write_causes=True,
        idle_period_s=60.0,
    )
    recording.recorder.settings({"startedAt": None})
    plane.on_cycle += [recording.finished, lambda _: recording.recorder.flush()]
    for number in range(4):
        add_node(cluster, f"n{number}", {"cpu": "8", "memory": "32Gi"})
    for name, cpu in (("a", 8), ("b", 24)):
        cluster.create(queue(name, deserved={"cpu": cpu}))
    for name, value in (("high", 100), ("low", 1)):
        cluster.create(priority_class(name, value=value))
    number = 0
    while clock.now() < START + 60 * MINUTES:
        number += 1
        _submit(cluster, rng, f"j{number}")
        plane.run(clock.now() + float(rng.integers(20, 200)))
    recording.close()


def _submit(cluster: EmbeddedCluster, rng: np.random.Generator, name: str) -> None:
    """Create a job of one to four pods."""
    size, cpu = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    priority = "low" if rng.random() < 0.7 else "high"
    where = "ab"[int(rng.integers(2))]
    cluster.create(pod_group(name, min_member=size, queue=where, priority_class=priority))
    marks = {"pumice.dev/run-seconds": str(int(rng.integers(60, 900)))}
    for task in range(size):
        one = pod(f"{name}-{task}", group=name, cpu=cpu, annotations=marks, priority_class=priority)
        cluster.create(one)

"""A simulation ends, whatever plugins wait for."""

import dataclasses

from msgspec.structs import replace

import pumice
from pumice.api.nodes import Node
from pumice.api.objects import from_manifest
from pumice.testing import node

NINE = 1_768_467_600.0
"""2026-01-15T09:00:00Z."""
CONF = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: gang
  - {name: tdm, arguments: {tdm.revocable-zone.rz1: "09:00-11:00"}}
  - name: predicates
"""


def test_windows_of_each_day_do_not_keep_a_job_without_room_waiting_for_ever() -> None:
    jobs = [{"name": "fits", "run": 18_000}, {"name": "wide", "arrival": 1, "run": 10, "pods": 2}]
    drawn = pumice.workload([{"arrival": 0, "pods": 1, **job} for job in jobs])
    revocable = [
        replace(
            job,
            tasks=tuple(
                replace(task, annotations={"volcano.sh/revocable-zone": "*"}) for task in job.tasks
            ),
        )
        for job in drawn.jobs
    ]
    zone = from_manifest(node("n", cpu=1, labels={"volcano.sh/revocable-zone": "rz1"}))
    assert isinstance(zone, Node)
    workload = dataclasses.replace(drawn, jobs=tuple(revocable), start=NINE)
    fits, wide = pumice.simulate(workload, [zone], CONF).jobs
    assert (fits["start"], fits["end"]) == (0, 18_000)
    assert wide["start"] is None
    assert "current time beyond revocable zone" in wide["reason"]

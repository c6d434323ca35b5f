"""Promised starts on a real API server: stated on pod groups, kept over a restart, then kept."""

import json
from typing import Any

import pytest

from pumice.api.annotations import RESERVATION, WALLTIME_SECONDS
from pumice.testing.builders import pod, pod_group
from tests.e2e_kube.servers import conf
from tests.e2e_kube.space import fresh
from tests.e2e_kube.waiting import stays, until

PLUGIN = "reservation"


def create(space: Any, name: str, pods: int, bound: int) -> None:
    marks = {WALLTIME_SECONDS: str(bound)}
    space.kubectl.create(fresh(pod_group(name, min_member=pods, phase=None, annotations=marks)))
    space.kubectl.create(*(fresh(pod(f"{name}-{i}", group=name, cpu=1)) for i in range(pods)))


def stated(space: Any, name: str) -> Any:
    marks = (
        space.kubectl.get(f"podgroups.scheduling.volcano.sh/{name}")["metadata"].get("annotations")
        or {}
    )
    return json.loads(marks[RESERVATION]) if RESERVATION in marks else None


@pytest.mark.parametrize("mode", ["strict", "easy", "conservative"])
def test_a_promise_outlives_the_scheduler_that_made_it(
    space: Any, scheduler: Any, mode: str
) -> None:
    plugin = {"name": PLUGIN, "arguments": {"reservation.mode": mode}}
    given = conf(plugin, "predicates", actions="enqueue, allocate")
    passes = set() if mode == "strict" else {"xshort-0"}
    space.nodes(2, cpu=1)
    create(space, "old", 1, 3600)
    with scheduler(given):
        until("old running", space.running, lambda seen: seen == 1)
        create(space, "wide", 2, 600)
        promise = until("a promise", lambda: stated(space, "wide"))
        assert len(promise["nodes"]) == 2
        create(space, "xlong", 1, 9000)  # names in the order of creation: times are whole seconds
        create(space, "xshort", 1, 300)
        until(
            "who may, running", lambda: {*space.placed()}, lambda seen: seen == {"old-0"} | passes
        )
    with scheduler(given) as server:
        count = f"pumice_reserved_jobs {1 + (mode == 'conservative')}\n"  # xlong has one, too
        until("promises", lambda: server.get("/metrics")[1], lambda text: count in text)
        stays(
            "those placed and the promise", lambda: ({*space.placed()}, stated(space, "wide")),
            lambda seen: seen == ({"old-0"} | passes, promise), for_s=3,
        )  # fmt: skip
        space.kubectl("delete", "pod", "old-0", *passes, "--grace-period=0")
        until("wide running", lambda: {*space.placed()}, lambda seen: "wide-1" in seen)
        until("no promise", lambda: stated(space, "wide"), lambda seen: seen is None)
        assert {*space.placed()} == {"wide-0", "wide-1"}
        kept = until("an event", lambda: space.events("ReservationKept"))
        for events in (kept, space.events("Reserved")):
            assert [each["involvedObject"]["name"] for each in events].count("wide") == 1

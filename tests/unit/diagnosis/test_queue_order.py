"""The order of queues and jobs: same hooks, named plugins, the difference that decides."""

import json
from typing import Any

from click.testing import CliRunner

from pumice.cli.main import main
from pumice.diagnosis.queue_order import queue_order
from pumice.testing import node, priority_class, queue

NODE = node("n1", cpu=4)


def names(lines: Any) -> Any:
    return [line.name for line in lines]


def test_jobs_stand_in_the_order_of_the_plugins_with_the_deciding_one_named(
    world: Any, job: Any
) -> None:
    objects = [
        NODE,
        queue("default"),
        priority_class("high", value=10),
        *job("old", cpu=1, created="2026-01-15T08:00:00Z"),
        *job("young", cpu=1, created="2026-01-15T09:00:00Z"),
        *job("urgent", cpu=1, created="2026-01-15T09:30:00Z", priority_class="high"),
    ]
    lines = queue_order(world(objects, "priority gang predicates")).jobs["default"]
    assert names(lines) == ["default/urgent", "default/old", "default/young"]
    assert [line.after for line in lines] == ["", "priority: 10 before 0", "younger by 60 min"]
    assert lines[0].keys == {"priority": "10", "gang": "not ready"}
    assert lines[0].values == {"priority": [-10.0], "gang": [0.0]}


def test_queues_stand_by_their_share(world: Any, job: Any) -> None:
    objects = [
        NODE,
        queue("a"),
        queue("b"),
        *job("runs", cpu=1, nodes=["n1"], queue="a"),
        *job("x", cpu=1, queue="a"),
        *job("y", cpu=1, queue="b"),
    ]
    found = queue_order(world(objects, "gang predicates proportion"))
    assert names(found.queues) == ["b", "a"]
    assert found.queues[1].after == "proportion: 0 % of its share before 50 % of its share"


def test_queues_that_are_compared_in_pairs_get_ranks(world: Any, job: Any) -> None:
    objects = [
        NODE,
        queue("root"),
        queue("a", parent="root", deserved={"cpu": 2}),
        queue("b", parent="root", deserved={"cpu": 2}),
        *job("runs", cpu=1, nodes=["n1"], queue="a"),
        *job("x", cpu=1, queue="a"),
        *job("y", cpu=1, queue="b"),
    ]
    there = world(objects, "gang predicates")
    conf = there.conf + "\n  - name: capacity\n    enableHierarchy: true\n"
    found = queue_order(type(there)(objects=there.objects, now=there.now, conf=conf))
    assert names(found.queues) == ["b", "a"]
    assert found.queues[1].after == "capacity: rank 1 before rank 2"


def test_the_outcome_and_the_turn_come_from_the_cycle_itself(world: Any, job: Any) -> None:
    objects = [
        NODE,
        queue("default"),
        *job("fits", cpu=3, created="2026-01-15T08:00:00Z"),
        *job("waits", cpu=3, created="2026-01-15T09:00:00Z"),
    ]
    lines = queue_order(world(objects)).jobs["default"]
    assert [line.turn for line in lines] == [1, 2]
    assert lines[0].outcome == "1 pod bound"
    assert lines[1].outcome.startswith("no node fits default/waits-0")


def test_rules_are_reported_in_the_words_of_the_plugins(world: Any, job: Any) -> None:
    found = queue_order(world([NODE, queue("default"), *job("j", cpu=1)], "priority gang"))
    assert ("jobs", "priority", "Put jobs of high priority first") in found.rules
    assert found.rules[-1] == ("jobs", "", "The older one first, then by name")


def test_nobody_waits_in_an_empty_cluster(world: Any) -> None:
    found = queue_order(world([NODE, queue("default")]))
    assert (found.queues, found.jobs) == ([], {})
    assert json.dumps(found.to_dict())


def test_promised_starts_are_the_same_in_every_answer() -> None:
    def asked(*words: str) -> Any:
        given = ("-f", "tests/staged/would-delay-a-promised-gang.yaml", "-o", "json")
        done = CliRunner().invoke(main, [*words, *given])
        assert done.exit_code == 0, done.output
        return json.loads(done.output)

    promised = asked("explain", "wide", "--no-unblock")["reservation"]
    assert promised.pop("text") == "reserved: 2 nodes from 11:00, 1 of them free now"
    assert promised == {"start": "2026-01-01T11:00:00Z", "in_s": 3600.0, "nodes": ["n1", "n2"]}
    for lines in (asked("explain"), asked("queue", "order")["jobs"]["default"]):
        wide, long = (line["reservation"] for line in lines)
        assert (promised.items() <= wide.items(), long) == (True, None)
    held = asked("explain", "long", "--no-unblock")["causes"][0]
    assert held["text"] == "it would delay default/wide by 40 min"
    assert (held["code"], held["object"]["name"]) == ("WouldDelay", "wide")
    shown = CliRunner().invoke(
        main, ["queue", "order", "-f", "tests/staged/would-delay-a-promised-gang.yaml"]
    )
    assert "in 1 h, reserved" in shown.output

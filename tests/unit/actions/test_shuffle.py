"""shuffle: policies name tasks, the action evicts them and does nothing else."""

from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar

import pytest

from pumice.actions.shuffle import shuffle
from pumice.api.conf import parse_conf
from pumice.api.decisions import Evict
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

WORLD = [
    node("n1", cpu=4),
    queue("default"),
    pod_group("g", min_member=0),
    *(pod(name, group="g", cpu=1, node="n1") for name in ("a", "b", "c")),
    pod("waiting", group="g", cpu=1),
]


class Naming(Plugin):
    """Names the given pods, and counts how often it is asked."""

    wants: ClassVar[tuple[str, ...]] = ()
    asked: ClassVar[list[list[str]]]

    def on_open(self, ssn: Any) -> None:
        self._tasks = ssn.snapshot.tasks

    def victims(self, running: Any) -> Any:
        self.asked.append([self._tasks.keys[row] for row in running])
        return [self._tasks.row_of[f"default/{name}"] for name in self.wants]


@dataclass(kw_only=True)
class Failing(Plugin, name="failing"):
    def victims(self, running: Any) -> Any:
        raise ZeroDivisionError


def naming(name: Any, *wants: Any) -> Any:
    return type(name, (Naming,), {"wants": wants, "asked": []}, name=name)


def decide(*tiers: Any, actions: str = "shuffle", objects: Any = WORLD, switches: str = "") -> Any:
    """Run one cycle with tiers of plugin classes."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        lines += [f"  - name: {plugin.name}{switches}" for plugin in tier]
    known = {plugin.name: plugin for tier in tiers for plugin in tier}
    return Scheduler(parse_conf("\n".join(lines)), plugins=known).cycle(objects, 0.0)


def test_a_task_whose_node_is_gone_is_evicted_and_counts_on_no_other() -> None:
    lost = pod("lost", group="g", cpu=3, node="gone")
    snapshot = Ingest(Snapshot()).load(map(from_manifest, [*WORLD, lost]))
    ssn = Session(snapshot, [[Enabled(naming("one", "lost")(), {})]])
    before = snapshot.nodes.books.copy()
    shuffle(ssn)
    check(snapshot)
    assert [intent.pod for intent in ssn.intents.made if isinstance(intent, Evict)] == [
        "default/lost"
    ]
    assert (snapshot.nodes.books == before).all()
    snapshot.release_session()
    check(snapshot)


def test_what_a_policy_names_is_evicted_and_nothing_else() -> None:
    decisions = decide([naming("one", "b")])
    assert decisions.evictions == ["default/b"]
    assert decisions.binds == {}


def test_without_a_policy_nothing_happens() -> None:
    assert decide([]).evictions == []


def test_policies_of_one_tier_are_joined_and_each_pod_goes_once() -> None:
    decisions = decide([naming("one", "a", "b"), naming("two", "b", "c")])
    assert sorted(decisions.evictions) == ["default/a", "default/b", "default/c"]


def test_a_policy_that_names_a_pod_twice_evicts_it_once() -> None:
    assert decide([naming("one", "a", "a")]).evictions == ["default/a"]


def test_the_first_tier_with_victims_decides_and_later_ones_are_not_asked() -> None:
    first, second = naming("one", "a"), naming("two", "b")
    assert decide([first], [second]).evictions == ["default/a"]
    assert second.asked == []


def test_a_tier_without_victims_leaves_it_to_the_next() -> None:
    assert decide([naming("one")], [naming("two", "b")]).evictions == ["default/b"]


def test_a_policy_that_fails_hurts_only_itself() -> None:
    assert decide([Failing, naming("two", "c")]).evictions == ["default/c"]


def test_a_policy_that_is_switched_off_is_not_asked() -> None:
    one = naming("one", "a")
    assert decide([one], switches="\n    enabledVictim: false").evictions == []
    assert one.asked == []


def test_only_running_pods_of_jobs_in_the_session_are_candidates() -> None:
    one = naming("one")
    objects = [
        *WORLD,
        pod("finished", group="g", node="n1", phase="Succeeded"),
        pod("alone", node="n1", cpu=1),
        pod_group("lost", queue="nowhere"),
        pod("stray", group="lost", node="n1"),
    ]
    decide([one], objects=objects)
    assert sorted(one.asked[0]) == ["default/a", "default/b", "default/c"]


@pytest.mark.parametrize("name", ["waiting", "alone"])
def test_a_pod_that_is_no_candidate_is_left_alone(name: str) -> None:
    objects = [*WORLD, pod("alone", node="n1", cpu=1)]
    assert decide([naming("one", name)], objects=objects).evictions == []


def test_a_later_action_counts_on_the_room_that_evicted_pods_leave() -> None:
    big = [pod_group("big"), pod("big-0", group="big", cpu=4)]
    decisions = decide(
        [naming("one", "a", "b", "c")], actions="shuffle, allocate", objects=[*WORLD, *big]
    )
    assert decisions.pipelined == {"default/big-0": "n1"}
    assert decisions.binds == {}


@pytest.mark.parametrize("turn", range(6))
def test_tasks_are_handed_out_by_the_names_of_jobs_and_then_their_own(turn: int) -> None:
    one = naming("one")
    pods = [
        pod("z", group="g", cpu=1, node="n1", created="2026-01-01T00:00:00Z"),
        pod("a", group="h", cpu=1, node="n1", priority=9),
        pod("m", group="g", cpu=1, node="n1"),
    ]
    groups = [pod_group("h", min_member=0), pod_group("g", min_member=0)]
    decide([one], objects=[*WORLD[:2], *list(permutations(pods))[turn], *groups])
    assert one.asked == [["default/m", "default/z", "default/a"]]

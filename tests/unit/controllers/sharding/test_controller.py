"""Nodes divided among schedulers: each in one shard, by its use, label and number."""

from typing import Any

import pytest

from pumice.api.kinds import NODE_SHARD, kind_of
from pumice.controllers.base import Key
from pumice.controllers.shard_conf import ShardConf, read_shards, shards_of_flags
from pumice.controllers.sharding import SHARDING_CONFIG, ShardingController
from pumice.errors import InputError
from pumice.serve.options import DEFAULT_SHARDS
from pumice.testing import node, pod
from tests.unit.controllers.fakes import FakeView, place

EVERYTHING = Key("ConfigMap", *SHARDING_CONFIG)
FLAGS = ShardConf(shards_of_flags(DEFAULT_SHARDS))
WARM = """
schedulerConfigs:
- name: volcano
  type: volcano
  policies:
  - {name: warmup, weight: 100, arguments: {warmupLabel: example.com/warm, warmupLabelValue: "yes"}}
  - {name: node-limit, arguments: {minNodes: 1, maxNodes: 1}}
- name: agent-scheduler
  type: agent
  policies:
  - {name: node-limit, arguments: {minNodes: 1, maxNodes: 100}}
shardSyncPeriod: 1s
enableNodeEventTrigger: true
"""


class World(FakeView):
    """Objects that the controller hears of when they change."""

    def __init__(self, *manifests: Any) -> None:
        super().__init__()
        self.controller = ShardingController(FLAGS)
        self.change(*manifests)

    def change(self, *manifests: Any, gone: bool = False) -> None:
        """Add or remove objects, then let the controller work as long as something is due."""
        due = set()
        for each in manifests:
            if gone:
                del self.objects[place(each)]
            else:
                self.add(each)
            due |= {*self.controller.concerns(kind_of(each), each, self)}
        self.work(due)

    def work(self, due: Any) -> None:
        while due:
            self.now += 0.3
            for key in [*due]:
                plan = self.controller.reconcile(key, self)
                self.apply(plan)
                due = {*due, *plan.look_at} - {key}

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.work({EVERYTHING})

    @property
    def shards(self) -> dict[str, list[str]]:
        return {
            each["metadata"]["name"]: sorted(each["spec"]["nodesDesired"])
            for each in self.list(NODE_SHARD)
        }


def machine(name: str, **labels: str) -> Any:
    made = node(name, cpu=4, labels={key.replace("_", "/"): value for key, value in labels.items()})
    made["status"]["capacity"] = made["status"]["allocatable"]
    return made


def config_map(text: str) -> Any:
    namespace, name = SHARDING_CONFIG
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name},
        "data": {"sharding.yaml": text},
    }


def test_nodes_go_to_the_shard_of_their_use_and_back() -> None:
    world = World(machine("a"), machine("b"))
    assert world.shards == {"volcano": ["a", "b"], "agent-scheduler": []}
    busy = pod("stress", cpu=3.5, node="a")
    world.change(busy)
    assert world.shards == {"volcano": ["b"], "agent-scheduler": ["a"]}
    world.change(busy, gone=True)
    assert world.shards == {"volcano": ["a", "b"], "agent-scheduler": []}


def test_a_node_between_two_ranges_is_in_no_shard() -> None:
    world = World(machine("a"), machine("b"), pod("gap", cpu=2.6, node="a"))
    world.wait(61.0)
    assert world.shards == {"volcano": ["b"], "agent-scheduler": []}


def test_a_small_change_waits_for_the_period() -> None:
    world = World(machine("a"), pod("first", cpu=2, node="a"))
    world.change(pod("second", cpu=1.5, node="a"))
    assert world.shards["volcano"] == ["a"]
    world.wait(61.0)
    assert world.shards == {"volcano": [], "agent-scheduler": ["a"]}


def test_the_settings_of_the_config_map_count_as_soon_as_they_change() -> None:
    world = World(machine("a"), machine("b", **{"example.com_warm": "yes"}), machine("c"))
    world.change(config_map(WARM))
    assert world.shards == {"volcano": ["b"], "agent-scheduler": ["a", "c"]}


def test_nodes_that_come_and_go_are_assigned_at_once() -> None:
    world = World(machine("a"))
    late = machine("b")
    world.change(late)
    assert world.shards["volcano"] == ["a", "b"]
    world.change(late, gone=True)
    assert world.shards["volcano"] == ["a"]


def test_a_shard_that_was_deleted_is_made_again_and_a_foreign_one_goes() -> None:
    world = World(machine("a"))
    world.change(world.objects[NODE_SHARD, "", "volcano"], gone=True)
    assert world.shards["volcano"] == ["a"]
    stray = {"apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard"}
    world.change({**stray, "metadata": {"name": "stray"}, "spec": {"nodesDesired": ["a"]}})
    assert "stray" not in world.shards


def test_settings_that_cannot_be_used_are_told_and_the_last_are_kept() -> None:
    world = World(machine("a"))
    world.change(config_map("schedulerConfigs: []"))
    assert world.shards["volcano"] == ["a"]
    assert world.events == ["Sharding"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "a mapping"),
        ("schedulerConfigs:\n- type: volcano", "schedulerConfigs[0].name"),
        ("schedulerConfigs:\n- {name: a, policies: [{name: warmpu}]}", "did you mean 'warmup'"),
        (
            "schedulerConfigs:\n- {name: a, cpuUtilizationMin: 0.7, cpuUtilizationMax: 0.5}",
            "between 0 and 1",
        ),
        ("schedulerConfigs:\n- {name: a, minNodes: 3, maxNodes: 1}", "at most maxNodes"),
        ("schedulerConfigs:\n- {name: a}\nshardSyncPeriod: soon", "a duration"),
    ],
)
def test_a_mistake_is_one_clear_sentence(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        read_shards(text, "map", FLAGS)
    assert words in str(error.value)


def test_a_flag_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="name:type"):
        shards_of_flags(["volcano:0.1"])

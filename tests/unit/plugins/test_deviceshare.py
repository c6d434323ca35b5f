"""deviceshare: nodes with cards left, the cards of a pod, and what is written on the pod."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.errors import PluginError
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.deviceshare import DeviceShare
from pumice.scenarios.objects import advance
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
MEMORY, CORES, NUMBER = "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-number"
REGISTER = "volcano.sh/node-vgpu-register"
IDS = "volcano.sh/vgpu-ids-new"
INDEX = "volcano.sh/gpu-index"
NOW = 1_768_471_200.5
FITS, NO_MEMORY, NO_NUMBER, NO_SLICE, LOCKED = range(5)


def annotated(manifest: Any, **marks: Any) -> Any:
    """Write annotations; underscores and capitals are as given in the keys."""
    manifest["metadata"].setdefault("annotations", {}).update(marks)
    return manifest


def gpu_node(name: Any, memory: Any, number: Any, **marks: Any) -> Any:
    return annotated(
        node(name, cpu=64, resources={GPU_MEMORY: memory, GPU_NUMBER: number}), **marks
    )


def card(
    uuid: Any,
    *,
    shares: Any = 10,
    memory: Any = 1000,
    kind: str = "NVIDIA-A100",
    health: str = "true",
    mode: str = "hami-core",
) -> str:
    return f"{uuid},{shares},{memory},{kind},{health},{mode}"


def vgpu_node(name: Any, *cards: Any, **marks: Any) -> Any:
    amounts = {NUMBER: 10 * len(cards), MEMORY: 10_000, CORES: 100 * len(cards)}
    register = "".join(f"{each}:" for each in cards)
    return annotated(node(name, cpu=64, resources=amounts), **{REGISTER: register, **marks})


def asking(
    name: str = "p",
    *,
    labels: Any = None,
    marks: Any = None,
    spec: Any = None,
    on: Any = None,
    **limits: Any,
) -> Any:
    amounts = {key.replace("_", "-"): amount for key, amount in limits.items()}
    named = {f"volcano.sh/{key}": amount for key, amount in amounts.items()}
    return pod(
        name,
        group="g",
        cpu=1,
        limits=named,
        resources=named,
        labels=labels,
        annotations=marks,
        spec=spec,
        node=on,
    )


def opened(objects: Any, **fields: Any) -> Any:
    plugin = DeviceShare(**fields)
    group = [queue("default"), pod_group("g", min_member=0)]
    ssn = Session(snapshot_of([*objects, *group]), [[Enabled(plugin, {})]], now=NOW)
    return plugin, ssn


def task_of(ssn: Any, name: str = "p") -> Any:
    return ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])


def codes(objects: Any, **fields: Any) -> Any:
    plugin, ssn = opened(objects, **fields)
    found = plugin.filter_nodes(task_of(ssn), ssn.nodes())
    return None if found is None else found.tolist()


def reported(objects: Any, name: str = "p", *, where: Any = 0, **fields: Any) -> Any:
    """Place a pod and return what will be written on it."""
    _, ssn = opened(objects, **fields)
    ssn.statement().place(task_of(ssn, name).row, where)
    return dict(ssn.intents.annotations.get(task_of(ssn, name).row, {}))


@pytest.mark.parametrize("way", ["gpu_sharing", "gpu_number", "vgpu"])
def test_a_pod_that_asks_for_no_card_goes_anywhere_and_gets_none(way: str) -> None:
    objects = [gpu_node("cards", 20, 2), node("bare"), pod("p", group="g", cpu=1)]
    chosen: dict[str, Any] = {way: True}
    assert codes(objects, **chosen) in (None, [FITS, FITS])
    assert reported(objects, **chosen) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"gpu_sharing": True, "gpu_number": True},
        {"gpu_sharing": True, "vgpu": True},
        {"gpu_number": True, "vgpu": True},
    ],
)
def test_two_ways_of_sharing_exclude_each_other(fields: Any) -> None:
    with pytest.raises(PluginError, match="exclude each other"):
        DeviceShare(**fields)


def test_without_a_way_of_sharing_nothing_is_tested() -> None:
    assert codes([gpu_node("n", 8, 1), asking(gpu_memory=100)]) is None


# Memory and number of cards


@pytest.mark.parametrize(("wanted", "code"), [(4, FITS), (5, NO_MEMORY)])
def test_a_slice_of_memory_must_fit_on_one_card(wanted: int, code: Any) -> None:
    """Two cards with four each."""
    assert codes([gpu_node("n", 8, 2), asking(gpu_memory=wanted)], gpu_sharing=True) == [code]


def test_the_first_card_with_enough_memory_left_is_taken() -> None:
    objects = [
        gpu_node("n", 8, 2),
        asking("old", gpu_memory=3, on="n", marks={INDEX: "0"}),
        asking(gpu_memory=2),
    ]
    found = reported(objects, gpu_sharing=True)
    assert found == {INDEX: "1", "volcano.sh/predicate-time": "1768471200500000000"}


def test_a_card_that_holds_more_than_it_has_is_full_and_no_more() -> None:
    objects = [
        gpu_node("n", 8, 2),
        asking("old", gpu_memory=9, on="n", marks={INDEX: "0"}),
        asking(gpu_memory=1),
    ]
    assert reported(objects, gpu_sharing=True)[INDEX] == "1"


def test_init_containers_run_before_the_others_and_need_no_more_than_the_larger() -> None:
    amounts = {"limits": {GPU_MEMORY: "4"}}
    spec = {"initContainers": [{"name": "i", "resources": amounts}]}
    objects = [gpu_node("n", 8, 2), asking(gpu_memory=2, spec=spec)]
    assert codes(objects, gpu_sharing=True) == [FITS]
    objects = [gpu_node("n", 6, 2), asking(gpu_memory=2, spec=spec)]
    assert codes(objects, gpu_sharing=True) == [NO_MEMORY]


@pytest.mark.parametrize(("wanted", "code"), [(2, FITS), (3, NO_NUMBER)])
def test_whole_cards_must_be_idle(wanted: int, code: Any) -> None:
    objects = [
        gpu_node("n", 30, 3),
        asking("old", gpu_number=1, on="n", marks={INDEX: "1"}),
        asking(gpu_number=wanted),
    ]
    assert codes(objects, gpu_number=True) == [code]
    if code == FITS:
        assert reported(objects, gpu_number=True)[INDEX] == "0,2"


def test_unhealthy_cards_are_left_out() -> None:
    mark = {"volcano.sh/gpu-unhealthy-ids": "0,x,7"}
    objects = [gpu_node("n", 8, 2, **mark), asking(gpu_memory=1)]
    assert reported(objects, gpu_sharing=True)[INDEX] == "1"


def test_an_index_that_cannot_be_read_holds_nothing() -> None:
    objects = [
        gpu_node("n", 4, 1),
        asking("old", gpu_memory=4, on="n", marks={INDEX: "0,x"}),
        asking(gpu_memory=4),
    ]
    assert codes(objects, gpu_sharing=True) == [FITS]


@pytest.mark.parametrize(
    "bare", [node("n"), gpu_node("n", 8, 0), gpu_node("n", 8, 10**12)], ids=["none", "zero", "lie"]
)
def test_on_a_node_without_believable_cards_the_plain_fit_decides(bare: str) -> None:
    assert codes([bare, asking(gpu_memory=1)], gpu_sharing=True) == [FITS]


def test_cards_are_taken_back_when_a_placement_is_discarded_or_a_pod_evicted() -> None:
    objects = [gpu_node("n", 4, 1), asking("a", gpu_memory=4), asking("b", gpu_memory=4)]
    plugin, ssn = opened(objects, gpu_sharing=True)
    stmt = ssn.statement()
    stmt.pipeline(task_of(ssn, "a").row, 0)
    assert plugin.filter_nodes(task_of(ssn, "b"), ssn.nodes()).tolist() == [NO_MEMORY]
    stmt.unpipeline(task_of(ssn, "a").row)
    assert plugin.filter_nodes(task_of(ssn, "b"), ssn.nodes()).tolist() == [FITS]
    stmt.discard()
    assert plugin._held == {0: ()}
    assert ssn.intents.annotations == {}


# Virtual cards


def test_the_device_plugin_is_reported_the_slices_of_each_container() -> None:
    part = {"resources": {"limits": {NUMBER: "1", MEMORY: "300", CORES: "20"}}}
    spec = {"containers": [{"name": "a", **part}, {"name": "plain"}, {"name": "b", **part}]}
    found = reported([vgpu_node("n", card("g0"), card("g1")), asking(spec=spec)], vgpu=True)
    assert found == {
        IDS: "g1,NVIDIA,300,20:;g1,NVIDIA,300,20:",
        "volcano.sh/devices-to-allocate": "g1,NVIDIA,300,20:;g1,NVIDIA,300,20:",
        "volcano.sh/vgpu-node": "n",
        "volcano.sh/vgpu-time": "1768471200",
        "volcano.sh/bind-time": "1768471200",
        "volcano.sh/bind-phase": "allocating",
    }


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"vgpu_memory": 1000}, FITS),
        ({"vgpu_memory": 1001}, NO_SLICE),
        ({"vgpu_number": 2, "vgpu_memory": 500}, FITS),
        ({"vgpu_number": 3, "vgpu_memory": 1}, NO_SLICE),
        ({"vgpu_number": 1, "vgpu_cores": 100}, FITS),
        ({"vgpu_number": 1, "vgpu_cores": 101}, NO_SLICE),
        ({"vgpu_number": 1, "vgpu_memory_percentage": 100}, FITS),
        ({"vgpu_number": 1, "vgpu_memory_percentage": 102}, NO_SLICE),
    ],
)
def test_every_card_of_a_container_must_have_the_memory_and_cores(limits: Any, code: Any) -> None:
    """Two idle cards with 1000 each."""
    objects = [vgpu_node("n", card("g0"), card("g1")), asking(**limits)]
    assert codes(objects, vgpu=True) == [code]


def holding(name: Any, text: Any) -> Any:
    return asking(name, vgpu_number=1, on="n", marks={IDS: text})


@pytest.mark.parametrize(
    ("held", "limits", "code"),
    [
        ("g0,NVIDIA,600,10:", {"vgpu_memory": 400}, FITS),
        ("g0,NVIDIA,600,10:", {"vgpu_memory": 401}, NO_SLICE),
        ("g0,NVIDIA,600,10:", {"vgpu_memory": 1, "vgpu_cores": 91}, NO_SLICE),
        ("g0,NVIDIA,1,0:", {"vgpu_memory": 1, "vgpu_cores": 100}, NO_SLICE),  # wants it alone
        ("g0,NVIDIA,1,100:", {"vgpu_memory": 1}, NO_SLICE),  # all cores are taken
        ("g0,NVIDIA,1,0:", {"vgpu_number": 1}, NO_SLICE),  # no memory named: all of it
        ("g0[m-1],NVIDIA,1000,0:", {"vgpu_memory": 1}, NO_SLICE),
        ("g9,NVIDIA,1000,0:", {"vgpu_memory": 1}, FITS),  # not a card of this node
        ("g0,NVIDIA,x,0:;,,;g0,NVIDIA,-1,0:", {"vgpu_memory": 1000}, FITS),
    ],
)
def test_what_pods_on_the_node_hold_counts(held: str, limits: Any, code: Any) -> None:
    objects = [vgpu_node("n", card("g0")), holding("old", held), asking(**limits)]
    assert codes(objects, vgpu=True) == [code]


def test_a_card_takes_so_many_pods_as_it_has_shares() -> None:
    objects = [
        vgpu_node("n", card("g0", shares=2)),
        holding("a", "g0,NVIDIA,1,1:"),
        asking(vgpu_memory=1),
    ]
    assert codes(objects, vgpu=True) == [FITS]
    assert codes([*objects, holding("b", "g0,NVIDIA,1,1:")], vgpu=True) == [NO_SLICE]


@pytest.mark.parametrize(
    "bare",
    [
        node("n"),
        vgpu_node("n"),
        vgpu_node("n", "g0,10,1000,NVIDIA,true"),
    ],
    ids=["plain", "no card", "malformed"],
)
def test_a_node_without_cards_is_left_to_the_plain_fit(bare: str) -> None:
    assert codes([bare, asking(vgpu_memory=10**6)], vgpu=True) == [FITS]


def test_a_node_with_unhealthy_cards_alone_is_closed() -> None:
    objects = [vgpu_node("n", card("g0", health="false")), asking(vgpu_memory=1)]
    assert codes(objects, vgpu=True) == [NO_SLICE]
    plugin, ssn = opened(objects, vgpu=True)
    assert plugin.refusal_numbers(task_of(ssn)) == {"cards": {"n": ["has no healthy card"]}}


@pytest.mark.parametrize(
    ("marks", "picked"),
    [
        ({"nvidia.com/use-gputype": "v100"}, "old"),
        ({"nvidia.com/use-gputype": "t4,V100"}, "old"),
        ({"nvidia.com/use-gputype": "t4"}, None),
        ({"nvidia.com/nouse-gputype": "a100"}, "old"),
        ({"volcano.sh/vgpu-use-gpuuuid": " old ,x"}, "old"),
        ({"volcano.sh/vgpu-nouse-gpuuuid": "new"}, "old"),
        ({"volcano.sh/vgpu-nouse-gpuuuid": "new,old"}, None),
        ({"volcano.sh/vgpu-mode": "hami-core"}, "new"),
        ({"volcano.sh/vgpu-mode": "mig"}, None),
        ({}, "new"),
    ],
)
def test_annotations_narrow_the_choice_of_cards(marks: Any, picked: Any) -> None:
    cards = [card("old", kind="NVIDIA-V100"), card("new", kind="NVIDIA-A100")]
    objects = [vgpu_node("n", *cards), asking(vgpu_memory=1, marks=marks)]
    found = reported(objects, vgpu=True).get(IDS, "")
    assert found.partition(",")[0] == (picked or "")
    assert codes(objects, vgpu=True) == [FITS if picked else NO_SLICE]


def test_pods_of_a_group_that_spreads_take_different_cards() -> None:
    mark = {"volcano.sh/vgpu-podgroup-policy": "spread"}
    objects = [vgpu_node("n", card("g0"), card("g1"))]
    objects += [asking(f"p{i}", vgpu_memory=1, marks=mark) for i in range(3)]
    plugin, ssn = opened(objects, vgpu=True)
    stmt = ssn.statement()
    for name in ("p0", "p1"):
        stmt.place(task_of(ssn, name).row, 0)
    assert {grant.card for grant in plugin._held[0]} == {0, 1}
    assert plugin.filter_nodes(task_of(ssn, "p2"), ssn.nodes()).tolist() == [NO_SLICE]


def test_pods_under_one_exclusive_rule_do_not_share_a_card() -> None:
    """Rules that are no labels, or none, are left out."""
    rules = [{}, "gold", {"tier": "gold"}, {"tier": "silver", "app": "x"}]
    objects = [vgpu_node("n", card("g0"))]
    objects += [asking("gold", vgpu_memory=1, labels={"tier": "gold"}, on="n")]
    objects[-1]["metadata"]["annotations"][IDS] = "g0,NVIDIA,1,0:"
    gold = asking(vgpu_memory=1, labels={"tier": "gold", "app": "x"})
    silver = asking(vgpu_memory=1, labels={"tier": "silver", "app": "x"})
    assert codes([*objects, gold], vgpu=True, exclusive=rules) == [NO_SLICE]
    assert codes([*objects, silver], vgpu=True, exclusive=rules) == [FITS]


@pytest.mark.parametrize(
    ("policy", "picked"), [("binpack", "g0"), ("spread", "g1"), ("", "g2"), ("other", "g2")]
)
def test_the_policy_orders_the_cards(policy: str, picked: str) -> None:
    cards = [card("g0"), card("g1"), card("g2")]
    objects = [vgpu_node("n", *cards), holding("a", "g0,NVIDIA,500,1:"), asking(vgpu_memory=1)]
    assert reported(objects, vgpu=True, policy=policy)[IDS].startswith(picked)


def scores(policy: Any, weight: Any = 1) -> Any:
    objects = [
        vgpu_node("busy", card("g0")),
        vgpu_node("idle", card("g1")),
        vgpu_node("full", card("g2", shares=1)),
        node("none"),
        asking("a", vgpu_memory=500, on="busy", marks={IDS: "g0,NVIDIA,500,0:"}),
        asking("b", vgpu_memory=500, on="full", marks={IDS: "g2,NVIDIA,500,0:"}),
        asking(vgpu_memory=246),
    ]
    plugin, ssn = opened(objects, vgpu=True, policy=policy, weight=weight)
    column = plugin.score_nodes(task_of(ssn), ssn.nodes())
    return None if column is None else column.tolist()


def test_binpack_prefers_cards_that_get_full_and_spread_idle_ones() -> None:
    """746 of 1000 rounds to 75."""
    assert scores("binpack", weight=2) == [150, 50, 0, 0]
    assert scores("spread") == [0, 100, 0, 0]


@pytest.mark.parametrize(("policy", "weight"), [("", 5), ("binpack", 0)])
def test_without_policy_or_weight_there_is_no_score(policy: str, weight: int) -> None:
    assert scores(policy, weight) is None


def test_only_whether_cards_are_left_can_be_cured_by_evictions() -> None:
    curable = [reason.curable for reason in DeviceShare.reasons]
    assert curable == [True, True, True, False, True, False]


# Locks


FRESH, STALE = "2026-01-15T09:59:00Z", "2026-01-15T09:54:00Z"


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ({"hamivgpu": FRESH}, LOCKED),
        ({"hamivgpu": STALE}, FITS),  # forgotten after five minutes
        ({"hamivgpu": "when?"}, FITS),
        ({"gpu": FRESH}, FITS),
    ],
)
def test_a_locked_node_is_left_alone(mark: Any, code: Any) -> None:
    objects = [vgpu_node("n", card("g0"), **mark), asking(vgpu_memory=1)]
    assert codes(objects, vgpu=True, node_lock=True) == [code]
    assert codes(objects, vgpu=True) == [FITS]


def test_with_locks_one_pod_at_a_time_gets_devices_of_a_node() -> None:
    objects = [vgpu_node("n", card("g0")), asking("a", vgpu_memory=1), asking(vgpu_memory=1)]
    plugin, ssn = opened(objects, vgpu=True, node_lock=True)
    stmt = ssn.statement()
    stmt.place(task_of(ssn, "a").row, 0)
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [LOCKED]
    stmt.discard()
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [FITS]


# From cycle to cycle

CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
"""


def test_what_a_bound_pod_was_reported_is_held_in_the_next_cycle() -> None:
    objects = [
        vgpu_node("n", card("g0")),
        queue("default"),
        pod_group("g", min_member=1),
        asking("p-0", vgpu_memory=600),
        asking("p-1", vgpu_memory=600),
    ]
    scheduler = Scheduler(parse_conf(CONF))
    first = scheduler.cycle(objects, NOW)
    assert list(first.binds) == list(first.annotations) == ["default/p-0"]
    second = scheduler.cycle(advance(objects, first), NOW + 1)
    assert second.binds == {}


def test_pods_of_one_spec_with_different_wishes_are_reported_apart() -> None:
    """Annotations are no part of a shape; the answers must not be shared."""
    wish = {"volcano.sh/vgpu-use-gpuuuid": "g1"}
    objects = [
        vgpu_node("n0", card("g0")),
        vgpu_node("n1", card("g1")),
        queue("default"),
        pod_group("g", min_member=2),
        asking("p-0", vgpu_memory=1, marks=wish),
        asking("p-1", vgpu_memory=1, marks={"volcano.sh/vgpu-use-gpuuuid": "g0"}),
    ]
    binds = Scheduler(parse_conf(CONF)).cycle(objects, NOW).binds
    assert binds == {"default/p-0": "n1", "default/p-1": "n0"}


# What a refusal names


def numbers(objects: Any, **fields: Any) -> Any:
    plugin, ssn = opened(objects, **fields)
    return plugin.refusal_numbers(task_of(ssn))


def test_a_refusal_names_three_cards_of_three_nodes() -> None:
    cards = [card(f"g{i}", memory=10) for i in range(4)]
    objects = [node("bare"), vgpu_node("roomy", card("g9"))]
    objects += [vgpu_node(f"n{i}", *cards) for i in range(4)]
    found = numbers([*objects, asking(vgpu_memory=11)], vgpu=True)
    texts = [f"card g{i} has 10 of the 11 memory wanted" for i in (3, 2, 1)]
    assert found == {"cards": {f"n{i}": texts for i in range(3)}}


def test_a_refusal_of_a_pod_that_fits_or_asks_for_nothing_names_no_card() -> None:
    assert numbers([vgpu_node("n", card("g")), asking(vgpu_memory=1)], vgpu=True) == {}
    assert numbers([vgpu_node("n", card("g")), pod("p", group="g", cpu=1)], vgpu=True) == {}


def test_a_refusal_names_the_lock_of_a_node() -> None:
    objects = [vgpu_node("n", card("g0"), hamivgpu=FRESH), asking(vgpu_memory=1)]
    found = numbers(objects, vgpu=True, node_lock=True)
    assert found == {"cards": {"n": ["is locked while devices are allocated"]}}


@pytest.mark.parametrize(
    ("since", "code"),
    [
        (None, LOCKED),
        ("", LOCKED),
        (str(int(NOW) - 299), LOCKED),
        (str(int(NOW) - 301), FITS),
        ("when?", FITS),
    ],
)
def test_a_device_plugin_is_waited_for_five_minutes(since: str | None, code: int) -> None:
    old = holding("old", "g0,NVIDIA,1,1:")
    annotated(old, **{"volcano.sh/bind-phase": "allocating"})
    annotated(old, **({} if since is None else {"volcano.sh/bind-time": since}))
    objects = [vgpu_node("n", card("g0")), old, asking(vgpu_memory=1)]
    assert codes(objects, vgpu=True, node_lock=True) == [code]


def test_with_locks_a_placed_pod_locks_its_node() -> None:
    objects = [vgpu_node("n", card("g0")), asking(vgpu_memory=1)]
    for lock, names in ((True, ["hamivgpu"]), (False, [])):
        _, ssn = opened(objects, vgpu=True, node_lock=lock)
        ssn.statement().place(task_of(ssn).row, 0)
        assert [*ssn.intents.node_locks.values()] == [(each,) for each in names]


def test_an_evicted_pod_frees_its_cards_and_other_pods_keep_theirs() -> None:
    objects = [
        vgpu_node("n", card("g0", shares=2)),
        holding("a", "g0,NVIDIA,400,0:"),
        holding("b", "g0,NVIDIA,300,0:"),
        asking(vgpu_memory=700),
    ]
    plugin, ssn = opened(objects, vgpu=True)
    ssn.statement().evict(task_of(ssn, "a").row, "preempt")
    assert [grant.pod for grant in plugin._held[0]] == ["default/b"]
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [FITS]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"vgpu": True}, ["kube-system/volcano-vgpu-device-config"]),
        ({"ascend": True, "config_name": "c", "config_namespace": "n"}, ["n/c"]),
        ({"gpu_sharing": True}, []),
    ],
)
def test_the_configuration_of_devices_is_read_where_it_matters(fields: Any, names: Any) -> None:
    assert [*DeviceShare(**fields).config_maps()] == names


@pytest.mark.parametrize("asked", [False, True])
def test_a_check_tells_of_the_mode_that_is_not_supported(asked: bool) -> None:
    found = [fault.key for fault in DeviceShare(mind_cluster=asked).faults()]
    assert found == ["deviceshare.AscendMindClusterVNPUEnable"] * asked

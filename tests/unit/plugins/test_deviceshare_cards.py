"""deviceshare, card by card: what a request takes, what cards lack for it, and how it scores."""

from typing import Any

import pytest

from pumice.api.nodes import Node
from pumice.api.objects import from_manifest
from pumice.api.pods import Pod
from pumice.plugins.deviceshare.cards import (
    MOST_CARDS,
    Grant,
    Lack,
    MigInstance,
    read_count,
    read_slices,
)
from pumice.plugins.deviceshare.device_config import Geometry, MigProfile, NvidiaConfig
from pumice.plugins.deviceshare.gpushare import GpuCards, GpuSharing, GpuWish
from pumice.plugins.deviceshare.mig import find_instance, memory_of, read_instance
from pumice.plugins.deviceshare.vgpu import (
    MIG,
    Slice,
    VirtualCard,
    VirtualCards,
    VirtualSharing,
    VirtualWish,
)
from pumice.testing import node, pod


def read_pod(**facts: Any) -> Pod:
    found = from_manifest(pod("p", group="g", **facts))
    assert isinstance(found, Pod)
    return found


def read_node(resources: Any, **marks: str) -> Node:
    made = node("n", resources=resources)
    made["metadata"]["annotations"] = marks
    found = from_manifest(made)
    assert isinstance(found, Node)
    return found


# Texts


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("0", 0), ("", 0), ("-1", 0), ("x", 0), ("9" * 18, 10**18 - 1), ("9" * 19, 0)],
)
def test_a_count_is_decimal_and_short(text: str, number: int) -> None:
    assert read_count(text) == number


def test_slices_are_read_entry_by_entry() -> None:
    text = "a,T,1,2:b,T,3:c,T,x,2:d,T,1,y;e,T,4,5,more:"
    assert read_slices(text) == [("a", 1, 2), ("e", 4, 5)]


@pytest.mark.parametrize(
    ("lack", "text"),
    [
        (Lack("g", "memory", 5, 3), "card g has 3 of the 5 memory wanted"),
        (Lack("", "idle cards", 2, 0), "has 0 of the 2 idle cards wanted"),
        (Lack("g", "has no cores left"), "card g has no cores left"),
        (Lack("", "is locked"), "is locked"),
    ],
)
def test_a_lack_is_a_sentence(lack: Lack, text: str) -> None:
    assert str(lack) == text


# Cards by memory, whole cards


MEMORY_OF, WHOLE = GpuSharing(by_memory=True), GpuSharing(by_memory=False)
GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


@pytest.mark.parametrize(
    ("resources", "ids", "memory"),
    [
        ({GPU_MEMORY: 9, GPU_NUMBER: 2}, (0, 1), 4),
        ({GPU_MEMORY: 9, GPU_NUMBER: 1}, (0,), 9),
        ({GPU_MEMORY: 2 * MOST_CARDS, GPU_NUMBER: MOST_CARDS}, tuple(range(MOST_CARDS)), 2),
    ],
)
def test_cards_of_a_node_share_its_memory_evenly(resources: Any, ids: Any, memory: int) -> None:
    assert MEMORY_OF.read_node(read_node(resources)) == GpuCards(ids, memory)


@pytest.mark.parametrize(
    "resources",
    [
        {GPU_MEMORY: 9},
        {GPU_NUMBER: 2},
        {GPU_MEMORY: 9, GPU_NUMBER: 0},
        {GPU_MEMORY: 9, GPU_NUMBER: MOST_CARDS + 1},
    ],
)
def test_a_node_without_believable_cards_has_none(resources: Any) -> None:
    assert MEMORY_OF.read_node(read_node(resources)) is None


def test_numbers_of_unhealthy_cards_are_short() -> None:
    marks = {"volcano.sh/gpu-unhealthy-ids": "1,0000000002,000000000"}
    found = WHOLE.read_node(read_node({GPU_MEMORY: 9, GPU_NUMBER: 3}, **marks))
    assert found is not None
    assert found.ids == (2,)


@pytest.mark.parametrize(
    ("index", "cards"),
    [("0", [0]), ("1,0", [1, 0]), ("3", []), ("", []), ("0,x", []), ("0" * 9, [0]), ("0" * 10, [])],
)
def test_grants_are_read_from_card_numbers(index: str, cards: list[int]) -> None:
    holder = read_pod(limits={GPU_MEMORY: 2}, annotations={"volcano.sh/gpu-index": index})
    held = MEMORY_OF.read_grants(GpuCards((0, 1), 4), holder, "ns/p")
    assert [(each.card, each.pod, each.memory) for each in held] == [(i, "ns/p", 2) for i in cards]


@pytest.mark.parametrize(("limits", "n"), [({GPU_NUMBER: 1}, 1), ({GPU_MEMORY: 1}, 1), ({}, 0)])
def test_a_pod_without_request_holds_no_card(limits: Any, n: int) -> None:
    holder = read_pod(limits=limits, annotations={"volcano.sh/gpu-index": "0"})
    assert len(WHOLE.read_grants(GpuCards((0, 1), 4), holder, "ns/p")) == n


def test_wishes_are_of_the_mode() -> None:
    both = read_pod(limits={GPU_MEMORY: 3, GPU_NUMBER: 2})
    assert MEMORY_OF.read_wish(both) == GpuWish(memory=3)
    assert WHOLE.read_wish(both) == GpuWish(number=2)
    assert WHOLE.read_wish(read_pod(limits={GPU_MEMORY: 3})) is None
    cards, wish = GpuCards((0,), 4), GpuWish(number=2)
    assert (MEMORY_OF.refusal(cards, wish), WHOLE.refusal(cards, wish)) == (1, 2)


def test_what_cards_lack_is_counted() -> None:
    cards, held = GpuCards((0, 2), 4), (Grant(0, "x", memory=3), Grant(0, "y", memory=2))
    assert MEMORY_OF.lacks(cards, GpuWish(memory=5), held) == [
        Lack("0", "memory", 5, -1),
        Lack("2", "memory", 5, 4),
    ]
    assert WHOLE.lacks(cards, GpuWish(number=2), held) == [Lack("", "idle cards", 2, 1)]


# Virtual cards


def virtual(*names: str, shares: int = 2, memory: int = 1000, **more: Any) -> VirtualCards:
    kind = more.pop("kind", "NVIDIA-A100")
    return VirtualCards(tuple(VirtualCard(name, shares, memory, kind, **more) for name in names))


def wish(*slices: Slice, **more: Any) -> VirtualWish:
    return VirtualWish(slices, **more)


def part(number: int = 1, memory: int = 100, percent: int | None = None, cores: int = 10) -> Slice:
    return Slice(number, memory, percent, cores)


BUSY = Grant(0, "x", memory=600, cores=40)
TAKEN = Grant(0, "x", memory=1, cores=100)


@pytest.mark.parametrize(
    ("asked", "held", "lacks"),
    [
        (part(), (BUSY, BUSY), Lack("a", "shares", 3, 2)),
        (part(memory=401), (BUSY,), Lack("a", "memory", 401, 400)),
        (part(percent=41), (BUSY,), Lack("a", "memory", 410, 400)),
        (part(cores=61), (BUSY,), Lack("a", "cores", 61, 60)),
        (
            part(cores=100),
            (Grant(0, "x", memory=1),),
            Lack("a", "has other pods, and all of its cores are wanted"),
        ),
        (part(cores=0), (TAKEN,), Lack("a", "has no cores left")),
        (part(cores=1), (TAKEN,), Lack("a", "cores", 1, 0)),
        (part(memory=400), (BUSY,), None),
        (part(percent=40), (BUSY,), None),
        (part(cores=60), (BUSY,), None),
        (part(cores=0), (BUSY,), None),
        (part(cores=100), (), None),
    ],
)
def test_a_virtual_card_names_the_first_resource_that_is_short(
    asked: Slice, held: Any, lacks: Lack | None
) -> None:
    cards, sharing = virtual("a"), VirtualSharing()
    choice = sharing.choose(cards, wish(asked), held, "p")
    assert (choice is None) is (lacks is not None)
    if lacks is not None:
        assert sharing.lacks(cards, wish(asked), held) == [lacks]
    if choice is not None:
        (grant,) = choice.grants
        assert (grant.card, grant.pod, grant.cores) == (0, "p", asked.cores)
        assert grant.memory == asked.memory_of(cards.cards[0]) == grant.asked


RULED_OUT = "is ruled out by the pod's annotations"


@pytest.mark.parametrize(
    ("more", "held", "why"),
    [
        ({"use_uuids": ("b",)}, (), RULED_OUT),
        ({"avoid_uuids": ("a",)}, (), RULED_OUT),
        ({"use_types": ("V100",)}, (), RULED_OUT),
        ({"use_types": ()}, (), RULED_OUT),
        ({"avoid_types": ("A100",)}, (), RULED_OUT),
        ({"use_types": ("A100",), "avoid_types": ("A100",)}, (), None),
        ({"use_types": ("T4", "A100")}, (), None),
        ({"avoid_types": ("T4",)}, (), None),
        ({"use_uuids": ("b", "a"), "avoid_uuids": ("b",)}, (), None),
        (
            {"rules": frozenset({1, 2})},
            (Grant(0, "x", rules=frozenset({2})),),
            "has a pod of the same exclusive rule",
        ),
        ({"rules": frozenset({1})}, (Grant(0, "x", rules=frozenset({2})),), None),
        (
            {"group": "ns/g", "spread_group": True},
            (Grant(0, "x", group="ns/g"),),
            "has a pod of the same group, which spreads",
        ),
        ({"group": "ns/g", "spread_group": False}, (Grant(0, "x", group="ns/g"),), None),
        ({"group": "", "spread_group": True}, (Grant(0, "x"),), None),
        ({"group": "ns/g", "spread_group": True}, (Grant(0, "x", group="ns/h"),), None),
    ],
)
def test_a_pod_accepts_a_virtual_card_or_not(more: Any, held: Any, why: str | None) -> None:
    cards, asked = virtual("a"), wish(part(), **more)
    assert (VirtualSharing().choose(cards, asked, held, "") is None) is (why is not None)
    if why is not None:
        assert VirtualSharing().lacks(cards, asked, held) == [Lack("a", why)]


def test_a_card_of_another_vendor_is_not_accepted() -> None:
    assert VirtualSharing().choose(virtual("a", kind="MLU-370"), wish(part()), (), "") is None
    assert VirtualSharing().choose(virtual("a", kind="nvidia-t4"), wish(part()), (), "")


def test_what_several_containers_lack_is_that_of_the_first_that_fails() -> None:
    """Two cards: the first container takes both, the second finds too little memory on each."""
    cards = virtual("a", "b")
    asked = wish(part(2, memory=600), part(1, memory=500), part(9))
    assert VirtualSharing().choose(cards, asked, (), "") is None
    assert VirtualSharing().lacks(cards, asked, ()) == [Lack("", "cards with room", 1, 2)]
    more = wish(part(3, memory=600))
    held = (BUSY,)
    assert VirtualSharing().lacks(cards, more, held) == [
        Lack("", "cards with room", 3, 1),
        Lack("a", "memory", 600, 400),
    ]


@pytest.mark.parametrize(("mode", "fits"), [(None, True), ("hami-core", True), ("mig", False)])
def test_a_pod_may_insist_on_a_mode(mode: str | None, fits: bool) -> None:
    cards, asked = virtual("a"), wish(part(), mode=mode)
    assert (VirtualSharing().choose(cards, asked, (), "") is not None) is fits
    if not fits:
        text = "shares its cards by hami-core, the pod wants mig"
        assert VirtualSharing().lacks(cards, asked, ()) == [Lack("", text)]


@pytest.mark.parametrize(
    ("policy", "order", "score"),
    [("binpack", [1, 2, 0], 90 + 50), ("spread", [0, 2, 1], 100.0), ("", [2, 1, 0], 0.0)],
)
def test_cards_are_taken_and_scored_by_policy(policy: str, order: list[int], score: float) -> None:
    """Of a, b and c, b holds 800 and c 400 of 1000; the request is for two cards with 100."""
    cards = virtual("a", "b", "c", shares=5)
    held = (Grant(1, "x", memory=800), Grant(1, "y"), Grant(2, "z", memory=400))
    sharing = VirtualSharing(policy)
    found = sharing.choose(cards, wish(part(3)), held, "")
    assert found is not None
    assert [grant.card for grant in found.grants] == order
    two = sharing.choose(cards, wish(part(2)), held, "")
    assert two is not None
    assert two.score == score


def test_a_virtual_card_without_memory_has_no_score() -> None:
    cards = virtual("a", memory=0)
    found = VirtualSharing("binpack").choose(cards, wish(part(memory=0)), (), "")
    assert found is not None
    assert found.score == 0.0


@pytest.mark.parametrize(("number", "granted"), [(0, 0), (-1, 0), (1, 1), (2, 2)])
def test_a_container_gets_its_number_of_cards(number: int, granted: int) -> None:
    found = VirtualSharing().choose(virtual("a", "b"), wish(part(number), part(1)), (), "p")
    assert found is not None
    assert [each.container for each in found.grants] == [0] * granted + [1]


def test_containers_may_share_a_card_within_its_shares() -> None:
    sharing, cards = VirtualSharing(), virtual("a", shares=2)
    assert sharing.choose(cards, wish(part(), part()), (), "p") is not None
    assert sharing.choose(cards, wish(part(), part(), part()), (), "p") is None


REGISTER = "volcano.sh/node-vgpu-register"
NUMBER, CORES, MEMORY = (f"volcano.sh/vgpu-{name}" for name in ("number", "cores", "memory"))
OFFERS = {NUMBER: 1, CORES: 1, MEMORY: 1}
SOUND = "g0,10,1000,NVIDIA-A100,true,hami-core"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"{SOUND}:", ["g0"]),
        (f"{SOUND},more:", ["g0"]),
        (f"{SOUND}:{SOUND.replace('g0', 'g1')}:", ["g0", "g1"]),
        (f"nothing:{SOUND}:", ["g0"]),
        (f"{SOUND}:a,b:", None),
        (SOUND.replace("true", "T"), ["g0"]),
        (SOUND.replace("true", "1"), ["g0"]),
        (SOUND.replace("true", "yes"), []),
        (f"{SOUND.replace('true', 'no')}:{SOUND.replace('g0', 'g1')}:", ["g1"]),
        ("", None),
        (f"{SOUND}:" * MOST_CARDS, ["g0"] * MOST_CARDS),
        (f"{SOUND}:" * (MOST_CARDS + 1), None),
    ],
)
def test_virtual_cards_are_read_as_registered(text: str, names: Any) -> None:
    found = VirtualSharing().read_node(read_node(OFFERS, **{REGISTER: text}))
    assert (None if found is None else [each.uuid for each in found.cards]) == names


def test_a_registered_card_has_shares_memory_and_kind() -> None:
    found = VirtualSharing().read_node(read_node(OFFERS, **{REGISTER: SOUND}))
    assert found == VirtualCards((VirtualCard("g0", 10, 1000, "NVIDIA-A100"),))


@pytest.mark.parametrize("name", OFFERS)
def test_a_node_must_offer_all_three_resources(name: str) -> None:
    for offered in ({**OFFERS, name: 0}, {k: v for k, v in OFFERS.items() if k != name}):
        assert VirtualSharing().read_node(read_node(offered, **{REGISTER: SOUND})) is None


@pytest.mark.parametrize(
    ("limits", "slices"),
    [
        ({NUMBER: 2, MEMORY: 100, CORES: 5}, [(2, 100, None, 5)]),
        ({NUMBER: 2}, [(2, 0, 100, 0)]),
        ({MEMORY: 100}, [(1, 100, None, 0)]),
        ({NUMBER: 1, f"{MEMORY}-percentage": 30}, [(1, 0, 30, 0)]),
        ({NUMBER: 1, MEMORY: 5, f"{MEMORY}-percentage": 30}, [(1, 5, 30, 0)]),
        ({CORES: 5}, []),
    ],
)
def test_the_limits_of_a_container_are_a_slice(limits: Any, slices: Any) -> None:
    found = VirtualSharing().read_wish(read_pod(limits=limits))
    assert ([] if found is None else [*found.slices]) == [Slice(*each) for each in slices]


def test_annotations_of_a_pod_narrow_its_wish() -> None:
    marks = {
        "nvidia.com/nouse-gputype": "a100,,t4",
        "volcano.sh/vgpu-use-gpuuuid": " a, ,b",
        "volcano.sh/vgpu-podgroup-policy": "spread",
        "volcano.sh/vgpu-mode": "mig",
    }
    rules = ({"app": "x"}, {"app": "x", "tier": "y"})
    found = VirtualSharing(exclusive=rules).read_wish(
        read_pod(limits={NUMBER: 1}, annotations=marks, labels={"app": "x"})
    )
    assert found == VirtualWish(
        (Slice(1, 0, 100, 0),),
        mode="mig",
        avoid_types=("A100", "T4"),
        use_uuids=("a", "b"),
        group="default/g",
        spread_group=True,
        rules=frozenset({0}),
    )


# Cards cut in hardware

HALVES = Geometry(group="halves", geometries=(MigProfile(name="half", memory=20, count=2),))
MIXED = Geometry(
    group="mixed",
    geometries=(
        MigProfile(name="big", memory=20, count=1),
        MigProfile(name="small", memory=10, count=2),
    ),
)


@pytest.mark.parametrize(
    ("used", "memory", "found"),
    [
        ([], 20, ("halves", 0, 20)),
        ([], 21, None),
        ([("halves", 0)], 5, ("halves", 1, 20)),
        ([("halves", 0), ("halves", 1)], 5, None),
        ([("mixed", 1)], 10, ("mixed", 2, 10)),
        ([("mixed", 1)], 11, ("mixed", 0, 20)),
        ([("mixed", 1), ("mixed", 2)], 10, ("mixed", 0, 20)),
        ([("mixed", 0)], 11, None),
        ([("other", 0)], 5, None),
    ],
)
def test_the_smallest_free_instance_of_the_geometry_in_use_is_taken(
    used: Any, memory: int, found: Any
) -> None:
    instances = [MigInstance(*each) for each in used]
    want = None if found is None else (MigInstance(*found[:2]), found[2])
    assert find_instance((HALVES, MIXED), instances, memory) == want


@pytest.mark.parametrize(
    ("group", "position", "memory"),
    [("mixed", 0, 20), ("mixed", 1, 10), ("mixed", 2, 10), ("mixed", 3, None), ("none", 0, None)],
)
def test_an_instance_has_the_memory_of_its_profile(
    group: str, position: int, memory: int | None
) -> None:
    assert memory_of((HALVES, MIXED), MigInstance(group, position)) == memory


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("g[mixed-1]", ("mixed", 1)),
        ("g[a-b-2]", ("a-b", 2)),
        ("g", None),
        ("g[mixed]", None),
        ("g[mixed-x]", None),
        ("g[mixed-123456789]", ("mixed", 123456789)),
        ("g[mixed-1234567890]", None),
    ],
)
def test_an_instance_is_read_from_brackets(text: str, found: Any) -> None:
    assert read_instance(text) == (None if found is None else MigInstance(*found))


CUT = VirtualCards((VirtualCard("a", 9, 40, "NVIDIA", (HALVES, MIXED)),), MIG)


def test_a_cut_card_gives_an_instance_in_units_of_the_configuration() -> None:
    sharing = VirtualSharing(config=NvidiaConfig(gpu_memory_factor=5))
    found = sharing.choose(CUT, wish(part(memory=3), rules=frozenset({1})), (), "p")
    assert found is not None
    (grant,) = found.grants
    assert (grant.memory, grant.asked, grant.rules) == (4, 3, frozenset())
    assert grant.instance == MigInstance("halves", 0)
    text = sharing.annotations(found, CUT, wish(part(memory=3)), "n", 7.9)
    assert text["volcano.sh/vgpu-ids-new"] == "a[halves-0],NVIDIA,3,10:"
    assert text["volcano.sh/vgpu-time"] == "7"


def test_a_cut_card_without_a_free_instance_lacks_one() -> None:
    held = tuple(Grant(0, "x", instance=MigInstance("halves", i)) for i in range(2))
    assert VirtualSharing().choose(CUT, wish(part(memory=3)), held, "") is None
    text = "has no free instance with 3 memory"
    assert VirtualSharing().lacks(CUT, wish(part(memory=3)), held) == [Lack("a", text)]


def test_grants_of_a_cut_card_have_the_memory_of_their_instances() -> None:
    sharing = VirtualSharing(exclusive=({"app": "x"},), config=NvidiaConfig(gpu_memory_factor=2))
    text = "a[mixed-1],NVIDIA,3,1:a[none-7],NVIDIA,4,1:b,NVIDIA,1,1:"
    holder = read_pod(labels={"app": "x"}, annotations={"volcano.sh/vgpu-ids-new": text})
    held = sharing.read_grants(CUT, holder, "k")
    assert [(each.memory, each.asked, each.rules) for each in held] == [
        (5, 3, frozenset()),
        (4, 4, frozenset()),
    ]
    (soft,) = sharing.read_grants(virtual("b"), holder, "k")
    assert (soft.memory, soft.asked, soft.rules, soft.instance) == (1, 1, frozenset({0}), None)


@pytest.mark.parametrize("asked", [{"spread_group": True, "group": "ns/g"}, {"rules": {0}}])
def test_containers_of_a_pod_share_a_card_that_other_pods_must_not(asked: Any) -> None:
    sharing, cards = VirtualSharing(), virtual("a", shares=9)
    both = wish(part(), part(), **asked)
    own = sharing.choose(cards, both, (), "ns/p")
    assert own is not None
    assert [grant.card for grant in own.grants] == [0, 0]
    assert sharing.choose(cards, both, own.grants, "ns/other") is None

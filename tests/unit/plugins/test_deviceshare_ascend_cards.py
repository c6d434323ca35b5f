"""deviceshare on Ascend cards, card by card: templates, shares, networks and what is lacking."""

from typing import Any

import pytest

from pumice.plugins.deviceshare.ascend import (
    AscendCard,
    AscendCards,
    AscendPart,
    AscendSharing,
    AscendWish,
)
from pumice.plugins.deviceshare.cards import MOST_CARDS, Grant, Lack
from pumice.plugins.deviceshare.device_config import AscendChip, AscendTemplate
from pumice.plugins.deviceshare.plugin import DeviceShare
from tests.unit.plugins.test_deviceshare_cards import read_node, read_pod

CHIP = AscendChip(
    common_word="Ascend910X",
    resource_name="h/X",
    resource_memory_name="h/X-memory",
    memory_allocatable=30,
    memory_capacity=32,
    templates=(AscendTemplate(name="t16", memory=16), AscendTemplate(name="t8", memory=8)),
)
PLAIN = AscendChip(
    common_word="Other", resource_name="h/O", memory_allocatable=30, memory_capacity=32
)


def ascend(*networks: int | None, soft: bool = True, **facts: Any) -> AscendCards:
    given = {"count": 4, "devmem": 30, "devcore": 8, **facts}
    cards = [
        AscendCard(id=f"c{i}", custominfo=None if each is None else {"NetworkID": each}, **given)
        for i, each in enumerate(networks)
    ]
    return AscendCards(tuple(cards), soft)


def want(*parts: tuple[int, int, int], soft: bool = False) -> AscendWish:
    return AscendWish(tuple(AscendPart(*each) for each in parts), soft)


def taken(choice: Any) -> Any:
    return None if choice is None else [(each.card, each.memory) for each in choice.grants]


@pytest.mark.parametrize(
    ("number", "memory", "grants"),
    [
        (1, 1, [(0, 8)]),
        (1, 8, [(0, 8)]),
        (1, 9, [(0, 16)]),
        (1, 16, [(0, 16)]),
        (1, 17, [(0, 30)]),
        (1, 32, [(0, 30)]),
        (1, 33, None),
        (1, 0, [(0, 30)]),
        (2, 17, [(0, 30), (1, 30)]),
        (2, 16, None),
        (2, 0, [(0, 30), (1, 30)]),
        (3, 0, None),
        (0, 1, []),
        (-1, 1, []),
    ],
)
def test_a_chip_is_cut_by_its_smallest_template_that_suffices(
    number: int, memory: int, grants: Any
) -> None:
    cards = ascend(None, None)
    assert taken(AscendSharing(CHIP).choose(cards, want((number, memory, 0)), (), "p")) == grants


@pytest.mark.parametrize(
    ("request_", "lacks"),
    [
        ((1, 33, 0), Lack("", "memory on one card", 33, 32)),
        ((2, 16, 0), Lack("", "gives 2 cards only as a whole, not 16 of each")),
    ],
)
def test_what_cannot_be_cut_is_said(request_: Any, lacks: Lack) -> None:
    assert AscendSharing(CHIP).lacks(ascend(None, None), want(request_), ()) == [lacks]


@pytest.mark.parametrize(
    ("asked", "soft", "held", "lack"),
    [
        ((1, 8, 0), False, [(0, 1, 0)] * 4, ("shares", 5, 4)),
        ((1, 8, 0), False, [(0, 1, 0)] * 3, None),
        ((1, 16, 0), False, [(0, 15, 0)], ("memory", 16, 15)),
        ((1, 16, 0), False, [(0, 14, 0)], None),
        ((1, 8, 5), False, [(0, 1, 4)], ("cores", 5, 4)),
        ((1, 8, 4), False, [(0, 1, 4)], None),
        ((1, 8, 5), True, [(0, 1, 96)], ("cores", 5, 4)),
        ((1, 8, 4), True, [(0, 1, 96)], None),
        ((1, 8, 8), False, [(0, 1, 0)], None),
        (
            (1, 8, 100),
            True,
            [(0, 1, 0)],
            ("has other pods, and all of its cores are wanted", 0, 0),
        ),
        ((1, 8, 100), True, [], None),
        ((1, 8, 0), False, [(0, 1, 8)], ("has no cores left", 0, 0)),
        ((1, 8, 0), False, [(0, 1, 7)], None),
        ((1, 8, 0), True, [(0, 1, 100)], ("has no cores left", 0, 0)),
    ],
)
def test_an_ascend_card_names_the_first_resource_that_is_short(
    asked: Any, soft: bool, held: Any, lack: Any
) -> None:
    grants = tuple(Grant(card, "x", memory, cores) for card, memory, cores in held)
    cards, wanted = ascend(None), want(asked, soft=soft)
    choice = AscendSharing(CHIP).choose(cards, wanted, grants, "p")
    assert (choice is None) is (lack is not None)
    found = AscendSharing(CHIP).lacks(cards, wanted, grants)
    assert found == ([] if lack is None else [Lack("c0", *lack)])


def test_cards_without_cores_do_not_run_out_of_them() -> None:
    cards = ascend(None, devcore=0)
    held = (Grant(0, "x", 8),)
    assert AscendSharing(CHIP).choose(cards, want((1, 8, 0)), held, "") is not None


def test_in_software_any_memory_is_given_where_the_node_allows_it() -> None:
    sharing, wanted = AscendSharing(CHIP), want((1, 5, 10), soft=True)
    assert taken(sharing.choose(ascend(None), wanted, (), "")) == [(0, 5)]
    hard = ascend(None, soft=False)
    assert sharing.choose(hard, wanted, (), "") is None
    assert sharing.lacks(hard, wanted, ()) == [Lack("", "does not share its cards by hami-core")]


def test_containers_of_a_pod_share_no_ascend_card() -> None:
    sharing, cards = AscendSharing(CHIP), ascend(None, None)
    assert taken(sharing.choose(cards, want((1, 8, 0), (1, 8, 0)), (), "")) == [(0, 8), (1, 8)]
    three = want((1, 8, 0), (1, 8, 0), (1, 9, 0))
    assert sharing.choose(cards, three, (), "") is None
    assert sharing.lacks(cards, three, ()) == [Lack("", "cards with room", 1, 2)]
    held = (Grant(0, "x", 29),)
    assert sharing.lacks(cards, want((2, 0, 0)), held) == [
        Lack("", "cards with room", 2, 1),
        Lack("c0", "memory", 30, 1),
    ]


@pytest.mark.parametrize(
    ("policy", "order", "score"),
    [("binpack", [1, 2, 0], 80.0), ("spread", [0, 1, 2], 100.0), ("", [0, 1, 2], 0.0)],
)
def test_ascend_cards_are_taken_and_scored_by_policy(
    policy: str, order: list[int], score: float
) -> None:
    """Of 30 each, the second holds 24 and the third 15."""
    held = (Grant(1, "x", 24), Grant(2, "y", 15))
    sharing, cards = AscendSharing(PLAIN, policy), ascend(None, None, None)
    one = sharing.choose(cards, want((1, 1, 0), soft=True), held, "")
    assert one is not None
    assert (one.grants[0].card, one.score) == (order[0], score)
    found = sharing.choose(cards, want((3, 1, 0), soft=True), held, "")
    assert found is not None
    assert [each.card for each in found.grants] == order


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_a_card_without_memory_has_no_score(policy: str) -> None:
    found = AscendSharing(PLAIN, policy).choose(
        ascend(None, devmem=0), want((1, 0, 0), soft=True), (), ""
    )
    assert found is not None
    assert found.score == 0.0


@pytest.mark.parametrize(
    ("networks", "number", "cards", "score"),
    [
        ((1, 2, 2), 2, [1, 2], 10.0),
        ((1, 2, 2), 3, [1, 2, 0], 10.0 * 2 / 3),
        ((2, 1), 1, [0], 10.0),
        ((2, 1, 2, 1), 2, [0, 2], 10.0),
        ((2, None, 1), 1, [0], 0.0),
    ],
)
def test_cards_of_the_largest_network_go_together(
    networks: Any, number: int, cards: list[int], score: float
) -> None:
    found = AscendSharing(CHIP).choose(ascend(*networks), want((number, 0, 0)), (), "")
    assert found is not None
    assert [each.card for each in found.grants] == cards
    assert found.score == pytest.approx(score)


@pytest.mark.parametrize(("policy", "card"), [("spread", 0), ("binpack", 2), ("", 0)])
def test_of_equal_networks_the_one_with_the_best_card_is_taken(policy: str, card: int) -> None:
    sharing, cards = AscendSharing(CHIP, policy), ascend(1, 1, 2, 2)
    found = sharing.choose(cards, want((1, 8, 0)), (Grant(2, "x", memory=8),), "")
    assert taken(found) == [(card, 8)]


@pytest.mark.parametrize(
    ("part", "reason"), [((1, 8, 0), 5), ((9, 0, 0), 5), ((2, 8, 0), 6), ((1, 33, 0), 6)]
)
def test_what_no_card_can_be_cut_into_is_a_reason_of_its_own(
    part: tuple[int, int, int], reason: int
) -> None:
    assert AscendSharing(CHIP).refusal(ascend(1), want(part)) == reason
    assert DeviceShare.reasons[reason - 1].curable is (reason == 5)


def test_a_node_without_healthy_cards_has_none_to_give() -> None:
    assert (
        AscendSharing(CHIP).choose(AscendCards((), in_software=False), want((1, 0, 0)), (), "")
        is None
    )


def test_other_chips_have_no_networks() -> None:
    found = AscendSharing(PLAIN).choose(ascend(1, 2, 2), want((1, 0, 0)), (), "")
    assert found is not None
    assert (found.grants[0].card, found.score) == (0, 0.0)


@pytest.mark.parametrize("info", [{"NetworkID": "1"}, {}, None])
def test_a_network_is_a_number(info: Any) -> None:
    assert AscendCard(id="a", custominfo=info).network is None
    assert AscendCard(id="a", custominfo={"NetworkID": 3.0}).network == 3


LISTED = '[{"id": "a", "count": 1}, {"id": "b", "health": false}, {"id": "c"}]'


@pytest.mark.parametrize(
    ("amount", "text", "names"),
    [
        (1, LISTED, ["a", "c"]),
        (0, LISTED, None),
        (None, LISTED, None),
        (1, "[]", None),
        (1, '[{"id": "b", "health": false}]', []),
        (1, "what?", None),
        (1, "[" + ",".join(['{"id": "a"}'] * MOST_CARDS) + "]", ["a"] * MOST_CARDS),
        (1, "[" + ",".join(['{"id": "a"}'] * (MOST_CARDS + 1)) + "]", None),
    ],
)
def test_ascend_cards_are_read_as_registered(amount: Any, text: str, names: Any) -> None:
    resources = {} if amount is None else {"h/X": amount}
    marks = {"hami.io/node-register-Ascend910X": text}
    found = AscendSharing(CHIP).read_node(read_node(resources, **marks))
    assert (None if found is None else [each.id for each in found.cards]) == names


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize(("stated", "soft"), [("true", True), ("no", False), (None, None)])
def test_a_node_or_the_configuration_allows_sharing_in_software(
    default: bool, stated: str | None, soft: bool | None
) -> None:
    marks = {"hami.io/node-register-Ascend910X": LISTED}
    marks |= {} if stated is None else {"hami-vnpu-core": stated}
    sharing = AscendSharing(CHIP, in_software=default)
    found = sharing.read_node(read_node({"h/X": 1}, **marks))
    assert found is not None
    assert found.in_software is (default if soft is None else soft)


@pytest.mark.parametrize(
    ("limits", "parts"),
    [
        ({"h/X": 2, "h/X-memory": 8, "h/X-core": 3}, [(2, 8, 3)]),
        ({"h/X": 2}, [(2, 0, 0)]),
        ({"h/X-memory": 8}, [(1, 8, 0)]),
        ({"h/X-core": 3}, []),
    ],
)
def test_the_limits_of_a_container_are_a_part(limits: Any, parts: Any) -> None:
    found = AscendSharing(CHIP).read_wish(read_pod(limits=limits))
    assert ([] if found is None else [*found.parts]) == [AscendPart(*each) for each in parts]


@pytest.mark.parametrize(
    ("soft", "runtime"),
    [
        (False, '[{"UUID":"c0","temp":"t8"},{"UUID":"c1"}]'),
        (True, '[{"UUID":"c0","memory":8},{"UUID":"c1","memory":30,"core":5}]'),
    ],
)
def test_the_runtime_is_told_template_or_share(soft: bool, runtime: str) -> None:
    sharing, cards = AscendSharing(CHIP), ascend(None, None)
    wanted = want((1, 8, 0), (1, 30, 5 * soft), soft=soft)
    choice = sharing.choose(cards, wanted, (), "p")
    assert choice is not None
    found = sharing.annotations(choice, cards, wanted, "n", 7.9)
    assert found["huawei.com/Ascend910X"] == runtime
    cores = 5 * soft
    assert found["hami.io/Ascend910X-devices-allocated"] == (
        f"c0,Ascend910X,8,0:;c1,Ascend910X,30,{cores}:;"
    )
    assert (found["predicate-time"], found["hami.io/vgpu-node"]) == ("7", "n")

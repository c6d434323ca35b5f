"""deviceshare on Ascend cards: templates, sharing in software, networks, what is written."""

import json
import textwrap
from typing import Any

import pytest

from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.deviceshare import DeviceShare
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.conformance import check_plugin
from pumice.testing.samples import snapshot_of
from tests.unit.plugins.test_deviceshare import NOW, annotated, card, vgpu_node
from tests.unit.plugins.test_deviceshare_mig import config_map

FITS, LOCKED, NO_CARD, NO_CUT = 0, 4, 5, 6
P310, B4 = "Ascend310P", "Ascend910B4"
CONFIG = """
vnpus:
- chipName: 310P3
  commonWord: Ascend310P
  resourceName: huawei.com/Ascend310P
  resourceMemoryName: huawei.com/Ascend310P-memory
  memoryAllocatable: 21527
  memoryCapacity: 24576
  aiCore: 8
  templates:
  - {name: vir02, memory: 6144}
  - {name: vir01, memory: 3072}
  - {name: vir04, memory: 12288}
- chipName: 910B4
  commonWord: Ascend910B4
  resourceName: huawei.com/Ascend910B4
  resourceMemoryName: huawei.com/Ascend910B4-memory
  memoryAllocatable: 32768
  memoryCapacity: 32768
  templates: [{name: vir05_1c_8g, memory: 8192}, {name: vir10_3c_16g, memory: 16384}]
"""
LISTED = textwrap.indent(CONFIG.partition("vnpus:")[2], "  ")
WRAPPED = f"vnpus:\n  hamiVnpuCore: true\n  configs:{LISTED}"
"""The newer form."""


def chips(*names: str, memory: int = 21527, cores: int = 8, count: int = 7, **more: Any) -> Any:
    return [
        {"id": name, "count": count, "devmem": memory, "devcore": cores, "health": True, **more}
        for name in names
    ]


def npu_node(name: str, cards: Any, kind: str = P310, **marks: str) -> Any:
    made = node(name, cpu=64, resources={f"huawei.com/{kind}": 7 * len(cards)})
    return annotated(made, **{f"hami.io/node-register-{kind}": json.dumps(cards), **marks})


def asking(
    name: str = "p",
    number: int | None = 1,
    memory: int | None = None,
    *,
    kind: str = P310,
    cores: int | None = None,
    marks: Any = None,
    on: Any = None,
    parts: int = 1,
) -> Any:
    amounts = {"": number, "-memory": memory, "-core": cores}
    limits = {f"huawei.com/{kind}{end}": str(n) for end, n in amounts.items() if n is not None}
    containers = [{"name": f"c{i}", "resources": {"limits": limits}} for i in range(parts)]
    return pod(name, group="g", annotations=marks, node=on, spec={"containers": containers})


def opened(*objects: Any, config: str = CONFIG, **fields: Any) -> Any:
    plugin = DeviceShare(ascend=True, **fields)
    given = [config_map(config), queue("default"), pod_group("g", min_member=0), *objects]
    return plugin, Session(snapshot_of(given), [[Enabled(plugin, {})]], now=NOW)


def task_of(ssn: Any, name: str = "p") -> Any:
    return ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])


def codes(*objects: Any, **fields: Any) -> Any:
    plugin, ssn = opened(*objects, **fields)
    found = plugin.filter_nodes(task_of(ssn), ssn.nodes())
    return None if found is None else found.tolist()


def reported(*objects: Any, **fields: Any) -> Any:
    _, ssn = opened(*objects, **fields)
    row = task_of(ssn).row
    ssn.statement().place(row, 0)
    return dict(ssn.intents.annotations.get(row, {}))


def holds(name: str, text: str, kind: str = P310) -> Any:
    return asking(name, kind=kind, on="n", marks={f"hami.io/{kind}-devices-allocated": text})


def test_the_plugin_keeps_its_promises() -> None:
    check_plugin(DeviceShare, ascend=True, policy="binpack", weight=2)


def test_the_device_plugin_and_the_runtime_are_reported() -> None:
    found = reported(npu_node("n", chips("a", "b")), asking(memory=4096))
    assert found == {
        "hami.io/Ascend310P-devices-to-allocate": "a,Ascend310P,6144,0:;",
        "hami.io/Ascend310P-devices-allocated": "a,Ascend310P,6144,0:;",
        "huawei.com/Ascend310P": '[{"UUID":"a","temp":"vir02"}]',
        "predicate-time": "1768471200",
        "hami.io/vgpu-node": "n",
        "hami.io/vgpu-time": "1768471200",
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1768471200",
    }


@pytest.mark.parametrize(
    ("memory", "written"),
    [
        (1, "a,Ascend310P,3072,0:;"),
        (3072, "a,Ascend310P,3072,0:;"),
        (3073, "a,Ascend310P,6144,0:;"),
        (12289, "a,Ascend310P,21527,0:;"),  # more than any template: the whole card
        (None, "a,Ascend310P,21527,0:;"),
        (24577, ""),  # more than a card has
    ],
)
def test_memory_is_rounded_up_to_a_template(memory: Any, written: str) -> None:
    objects = [npu_node("n", chips("a")), asking(memory=memory)]
    found = reported(*objects).get("hami.io/Ascend310P-devices-allocated", "")
    assert found == written
    assert codes(*objects) == [FITS if written else NO_CUT]


@pytest.mark.parametrize(
    ("number", "memory", "code"),
    [(2, None, FITS), (2, 21000, FITS), (2, 4096, NO_CUT), (3, None, NO_CARD)],
)
def test_several_cards_are_given_as_a_whole(number: int, memory: Any, code: int) -> None:
    assert codes(npu_node("n", chips("a", "b")), asking(number=number, memory=memory)) == [code]


@pytest.mark.parametrize(
    ("held", "memory", "code"),
    [
        ("a,Ascend310P,12288,0:;", 9000, NO_CARD),
        ("a,Ascend310P,12288,0:;", 6144, FITS),
        ("a,Ascend310P,12288,0:;a,Ascend310P,6144,0:;", 6144, NO_CARD),  # of both containers
        ("x,Ascend310P,21527,0:;", 9000, FITS),  # not a card of this node
        ("a,Ascend310P,3072,8:;", 3072, NO_CARD),  # all cores
        ("nonsense", 9000, FITS),
    ],
)
def test_what_pods_on_the_node_hold_counts(held: str, memory: int, code: int) -> None:
    assert codes(npu_node("n", chips("a")), holds("old", held), asking(memory=memory)) == [code]


def test_a_card_takes_so_many_pods_as_it_says() -> None:
    objects = [npu_node("n", chips("a", count=1)), holds("old", "a,Ascend310P,3072,0:;")]
    assert codes(*objects, asking(memory=1)) == [NO_CARD]


def test_containers_of_one_pod_share_no_card() -> None:
    found = reported(npu_node("n", chips("a", "b")), asking(memory=1, parts=2))
    listed = "a,Ascend310P,3072,0:;b,Ascend310P,3072,0:;"
    assert found["hami.io/Ascend310P-devices-allocated"] == listed
    assert codes(npu_node("n", chips("a")), asking(memory=1, parts=2)) == [NO_CARD]


def test_memory_and_cores_are_in_no_books_of_nodes() -> None:
    _, ssn = opened(npu_node("n", chips("a")), asking(memory=4096, cores=10))
    assert ssn.snapshot.resources.row("huawei.com/Ascend310P") is not None
    assert ssn.snapshot.resources.row("huawei.com/Ascend310P-memory") is None
    assert ssn.snapshot.resources.row("huawei.com/Ascend310P-core") is None


SOFT = {"huawei.com/vnpu-mode": "hami-core"}


def test_sharing_in_software_cuts_any_memory_and_cores() -> None:
    found = reported(
        npu_node("n", chips("a")), asking(memory=4096, cores=30, marks=SOFT), config=WRAPPED
    )
    assert found["hami.io/Ascend310P-devices-allocated"] == "a,Ascend310P,4096,30:;"
    assert json.loads(found["huawei.com/Ascend310P"]) == [{"UUID": "a", "memory": 4096, "core": 30}]


@pytest.mark.parametrize(
    ("config", "mark", "code"),
    [
        (CONFIG, {}, NO_CARD),
        (CONFIG, {"hami-vnpu-core": "true"}, FITS),
        (WRAPPED, {}, FITS),
        (WRAPPED, {"hami-vnpu-core": "false"}, NO_CARD),
    ],
)
def test_a_node_says_whether_it_shares_in_software(config: str, mark: Any, code: int) -> None:
    mine = asking(memory=4096, cores=10, marks=SOFT)
    assert codes(npu_node("n", chips("a"), **mark), mine, config=config) == [code]


@pytest.mark.parametrize(
    ("held", "cores", "code"),
    [(40, 60, FITS), (40, 61, NO_CARD), (0, 100, NO_CARD), (100, 0, NO_CARD)],
)
def test_cores_in_software_are_of_a_hundred(held: int, cores: int, code: int) -> None:
    old = holds("old", f"a,Ascend310P,1,{held}:;")
    mine = asking(memory=1, cores=cores, marks=SOFT)
    assert codes(npu_node("n", chips("a")), old, mine, config=WRAPPED) == [code]


def test_kinds_of_chips_are_apart() -> None:
    nodes = [npu_node("n", chips("a")), npu_node("m", chips("b", memory=32768), B4)]
    mine = asking(kind=B4, memory=1)
    plugin, ssn = opened(*nodes, holds("old", "a,Ascend310P,21527,0:;"), mine)
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [FITS, FITS]  # n: plain fit
    ssn.statement().place(task_of(ssn).row, 1)
    assert set(ssn.intents.annotations[task_of(ssn).row]) >= {"huawei.com/Ascend910B4"}


def test_beside_virtual_gpus() -> None:
    both = vgpu_node("n", card("g0"))
    both["status"]["allocatable"]["huawei.com/Ascend310P"] = "7"
    annotated(both, **{"hami.io/node-register-Ascend310P": json.dumps(chips("a"))})
    marks = {"volcano.sh/vgpu-ids-new": "g0,NVIDIA,1000,0:"}
    gpu_user = pod("old", group="g", node="n", annotations=marks)
    assert codes(both, gpu_user, asking(memory=4096), vgpu=True) == [FITS]


def networked(*networks: int) -> Any:
    return [
        chip | {"custominfo": {"NetworkID": network}}
        for i, network in enumerate(networks)
        for chip in chips(f"c{i}", memory=32768)
    ]


def test_cards_of_one_network_go_together() -> None:
    cards = networked(0, 1, 0, 1, 1)
    found = reported(npu_node("n", cards, B4), asking(number=3, kind=B4))
    written = found["hami.io/Ascend910B4-devices-allocated"]
    assert [each.partition(",")[0] for each in written.strip(";:").split(":")] == ["c1", "c3", "c4"]


def test_nodes_with_cards_of_one_network_are_preferred() -> None:
    nodes = [npu_node("apart", networked(0, 1), B4), npu_node("near", networked(2, 2), B4)]
    plugin, ssn = opened(*nodes, asking(number=2, kind=B4), weight=3)
    assert plugin.score_nodes(task_of(ssn), ssn.nodes()).tolist() == [15, 30]


@pytest.mark.parametrize(
    ("policy", "picked", "score"), [("binpack", "a", 29), ("spread", "b", 100), ("", "a", 0)]
)
def test_the_policy_orders_cards_and_scores_nodes(policy: str, picked: str, score: int) -> None:
    objects = [
        npu_node("n", chips("a", "b")),
        holds("old", "a,Ascend310P,6144,0:;"),
        asking(memory=1),
    ]
    assert reported(*objects, policy=policy)["hami.io/Ascend310P-devices-allocated"].startswith(
        picked
    )
    plugin, ssn = opened(*objects, policy=policy, weight=1)
    assert plugin.score_nodes(task_of(ssn), ssn.nodes()).tolist() == [score]


@pytest.mark.parametrize(
    "bare",
    [
        node("n"),
        npu_node("n", []),
        npu_node("n", [{"id": 3}]),
        annotated(npu_node("n", chips("a")), **{"hami.io/node-register-Ascend310P": "["}),
    ],
    ids=["plain", "no card", "mistyped", "malformed"],
)
def test_a_node_without_cards_is_left_to_the_plain_fit(bare: Any) -> None:
    assert codes(bare, asking(memory=10**6)) == [FITS]


def test_a_node_with_unhealthy_cards_alone_is_closed() -> None:
    assert codes(npu_node("n", chips("a", health=False)), asking(memory=1)) == [NO_CARD]


def test_a_configuration_may_be_without_chips() -> None:
    assert codes(npu_node("n", chips("a")), asking(memory=30000), config="{}") is None


def test_without_a_configuration_the_310p_is_known() -> None:
    found = codes(npu_node("n", chips("a")), asking(memory=30000), config_name="none")
    assert found == [NO_CUT]


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ({"hami.io/mutex.lock": "2026-01-15T09:59:00Z"}, LOCKED),
        ({"hami.io/mutex.lock": "2026-01-15T09:54:00Z"}, FITS),
        ({"hamivgpu": "2026-01-15T09:59:00Z"}, FITS),
    ],
)
def test_a_locked_node_is_left_alone(mark: Any, code: int) -> None:
    assert codes(npu_node("n", chips("a"), **mark), asking(memory=1), node_lock=True) == [code]


@pytest.mark.parametrize(
    ("objects", "reported_of_n"),
    [
        (
            [holds("old", "a,Ascend310P,12288,0:;"), asking(memory=12000)],
            ["card a has 9239 of the 12288 memory wanted"],
        ),
        ([asking(memory=30000)], ["has 24576 of the 30000 memory on one card wanted"]),
        (
            [asking(number=2, memory=100)],
            ["gives 2 cards only as a whole, not 100 of each"],
        ),
        ([asking(number=2)], ["has 1 of the 2 cards with room wanted"]),
        ([asking(memory=1, marks=SOFT)], ["does not share its cards by hami-core"]),
    ],
)
def test_explain_names_the_card_and_what_it_lacks(objects: Any, reported_of_n: Any) -> None:
    plugin, ssn = opened(npu_node("n", chips("a")), *objects)
    assert plugin.refusal_numbers(task_of(ssn)) == {"cards": {"n": reported_of_n}}

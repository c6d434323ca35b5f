"""deviceshare on cards that are cut in hardware: geometries, instances, what is written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.deviceshare import DeviceShare
from pumice.plugins.deviceshare.cards import MigInstance
from pumice.plugins.deviceshare.device_config import Geometry, MigProfile
from pumice.plugins.deviceshare.mig import find_instance, memory_of, read_instance
from pumice.testing import pod_group, queue
from pumice.testing.samples import snapshot_of
from tests.unit.plugins.test_deviceshare import FITS, IDS, NO_SLICE, NOW, asking, card, vgpu_node

A100 = "NVIDIA-A100-PCIE-40GB"
CONFIG = """
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  knownMigGeometries:
  - models: [A30]
    allowedGeometries:
    - group: whole
      geometries: [{name: 4g.24gb, memory: 24576, count: 1}]
  - models: [A100-SXM4-40GB, A100-PCIE-40GB]
    allowedGeometries:
    - group: group1
      geometries: [{name: 1g.5gb, memory: 5120, count: 7}]
    - group: group2
      geometries: [{name: 2g.10gb, memory: 10240, count: 3}, {name: 1g.5gb, memory: 5120, count: 1}]
    - group: group3
      geometries: [{name: 3g.20gb, memory: 20480, count: 2}]
"""


def config_map(text: str = CONFIG) -> Any:
    metadata = {"name": "volcano-vgpu-device-config", "namespace": "kube-system"}
    data = {"device-config.yaml": text}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def mig_card(uuid: str = "g0", kind: str = A100, **more: Any) -> str:
    return card(uuid, memory=40960, kind=kind, mode="mig", **more)


def opened(*objects: Any, config: Any = None, **fields: Any) -> Any:
    plugin = DeviceShare(vgpu=True, **fields)
    given = [config or config_map(), queue("default"), pod_group("g", min_member=0), *objects]
    return plugin, Session(snapshot_of(given), [[Enabled(plugin, {})]], now=NOW)


def task_of(ssn: Any, name: str = "p") -> Any:
    return ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])


def codes(*objects: Any, **fields: Any) -> Any:
    plugin, ssn = opened(*objects, **fields)
    return plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist()


def ids(*objects: Any, **fields: Any) -> Any:
    """Place a pod and return what is written of its cards."""
    _, ssn = opened(*objects, **fields)
    row = task_of(ssn).row
    ssn.statement().place(row, 0)
    return ssn.intents.annotations.get(row, {}).get(IDS)


def holds(name: str, text: str) -> Any:
    return asking(name, vgpu_number=1, on="n", marks={IDS: text})


@pytest.mark.parametrize(
    ("memory", "written"),
    [
        (3000, "g0[group1-0],NVIDIA,3000,0:"),
        (5120, "g0[group1-0],NVIDIA,5120,0:"),
        (8000, "g0[group2-0],NVIDIA,8000,0:"),
        (10241, "g0[group3-0],NVIDIA,10241,0:"),
        (20481, None),
    ],
)
def test_an_idle_card_is_cut_by_the_first_geometry_with_an_instance_that_is_large_enough(
    memory: int, written: Any
) -> None:
    objects = [vgpu_node("n", mig_card()), asking(vgpu_memory=memory)]
    assert ids(*objects) == written
    assert codes(*objects) == [FITS if written else NO_SLICE]


def test_a_card_in_use_keeps_its_geometry() -> None:
    node = vgpu_node("n", mig_card())
    small = holds("old", "g0[group1-0],NVIDIA,3000,0:")
    assert ids(node, small, asking(vgpu_memory=4000)) == "g0[group1-1],NVIDIA,4000,0:"
    assert codes(node, small, asking(vgpu_memory=8000)) == [NO_SLICE]


def test_what_is_left_of_a_geometry_can_be_given_away() -> None:
    """Two instances of 10 GB and the one of 5 GB are left; the smallest that will do is taken."""
    node = vgpu_node("n", mig_card())
    large = holds("old", "g0[group2-1],NVIDIA,8000,0:")
    assert ids(node, large, asking(vgpu_memory=3000)) == "g0[group2-3],NVIDIA,3000,0:"
    assert ids(node, large, asking(vgpu_memory=6000)) == "g0[group2-0],NVIDIA,6000,0:"


def test_a_full_geometry_has_no_instance_left() -> None:
    node = vgpu_node("n", mig_card())
    held = [holds(f"old{i}", f"g0[group3-{i}],NVIDIA,9000,0:") for i in range(2)]
    assert codes(node, *held, asking(vgpu_memory=1)) == [NO_SLICE]


def test_containers_of_one_pod_get_different_instances() -> None:
    part = {"resources": {"limits": {"volcano.sh/vgpu-memory": "8000"}}}
    spec = {"containers": [{"name": "a", **part}, {"name": "b", **part}]}
    found = ids(vgpu_node("n", mig_card()), asking(spec=spec))
    assert found == "g0[group2-0],NVIDIA,8000,0:;g0[group2-1],NVIDIA,8000,0:"


def test_cards_of_one_container_are_different_cards() -> None:
    node = vgpu_node("n", mig_card("g0"), mig_card("g1"))
    found = ids(node, asking(vgpu_number=2, vgpu_memory=8000))
    assert found == "g1[group2-0],NVIDIA,8000,0:g0[group2-0],NVIDIA,8000,0:"
    assert codes(node, asking(vgpu_number=3, vgpu_memory=1)) == [NO_SLICE]


def test_pods_placed_in_one_session_get_different_instances() -> None:
    pods = [asking(f"p{i}", vgpu_memory=15000) for i in range(3)]
    plugin, ssn = opened(vgpu_node("n", mig_card()), *pods)
    stmt = ssn.statement()
    for name in ("p0", "p1"):
        stmt.place(task_of(ssn, name).row, 0)
    assert [str(grant.instance) for grant in plugin._held[0]] == ["group3-0", "group3-1"]
    assert plugin.filter_nodes(task_of(ssn, "p2"), ssn.nodes()).tolist() == [NO_SLICE]
    stmt.discard()
    assert plugin._held[0] == ()


@pytest.mark.parametrize(
    ("mode", "mig", "hami"),
    [(None, FITS, FITS), ("mig", FITS, NO_SLICE), ("hami-core", NO_SLICE, FITS)],
)
def test_a_pod_may_want_one_way_of_sharing(mode: Any, mig: int, hami: int) -> None:
    nodes = [vgpu_node("cut", mig_card("g0")), vgpu_node("shared", card("g1", memory=40960))]
    marks = {} if mode is None else {"volcano.sh/vgpu-mode": mode}
    assert codes(*nodes, asking(vgpu_memory=1, marks=marks)) == [mig, hami]


def test_a_model_without_geometries_is_shared_in_software() -> None:
    node = vgpu_node("n", mig_card(kind="NVIDIA-Tesla-V100"))
    assert ids(node, asking(vgpu_memory=3000)) == "g0,NVIDIA,3000,0:"
    assert ids(vgpu_node("n", mig_card()), asking(vgpu_memory=3000), config=queue("x")) == (
        "g0,NVIDIA,3000,0:"
    )


def test_a_card_that_is_not_cut_is_shared_in_software_whatever_its_model() -> None:
    whole = card("g0", memory=40960, kind=A100)
    assert ids(vgpu_node("n", whole), asking(vgpu_memory=30000)) == "g0,NVIDIA,30000,0:"


def test_units_of_memory_may_stand_for_more() -> None:
    config = config_map(f"{CONFIG}  gpuMemoryFactor: 1024\n")
    node = vgpu_node("n", card("g0", memory=40, kind=A100, mode="mig"))
    assert ids(node, asking(vgpu_memory=8), config=config) == "g0[group2-0],NVIDIA,8,0:"
    plugin, ssn = opened(node, asking(vgpu_memory=8), config=config)
    ssn.statement().place(task_of(ssn).row, 0)
    assert plugin._held[0][0].memory == 10


def test_names_of_resources_may_be_others() -> None:
    config = config_map(f"{CONFIG}  resourceMemoryName: example.com/mem\n")
    mine = asking()
    mine["spec"]["containers"][0]["resources"] = {"limits": {"example.com/mem": "3000"}}
    assert ids(vgpu_node("n", mig_card()), mine, config=config) == "g0[group1-0],NVIDIA,3000,0:"


def test_exclusive_rules_do_not_count_where_instances_are_apart_anyway() -> None:
    rules = [{"tier": "gold"}]
    old = holds("old", "g0[group1-0],NVIDIA,1,0:")
    old["metadata"]["labels"] = {"tier": "gold"}
    mine = asking(vgpu_memory=1, labels={"tier": "gold"})
    assert codes(vgpu_node("n", mig_card()), old, mine, exclusive=rules) == [FITS]


def test_binpack_counts_the_memory_of_instances() -> None:
    nodes = [vgpu_node("idle", mig_card("g0")), vgpu_node("n", mig_card("g1"))]
    old = holds("old", "g1[group1-0],NVIDIA,1,0:")
    plugin, ssn = opened(*nodes, old, asking(vgpu_memory=1), policy="binpack", weight=1)
    assert plugin.score_nodes(task_of(ssn), ssn.nodes()).tolist() == [13, 25]  # of 8 instances


@pytest.mark.parametrize(
    "broken",
    ["nvidia: [", "nvidia: {knownMigGeometries: 3}", "- a", "nvidia: {gpuMemoryFactor: x}", "{}"],
)
def test_a_configuration_that_cannot_be_read_counts_as_none(broken: str) -> None:
    node = vgpu_node("n", mig_card())
    assert ids(node, asking(vgpu_memory=1), config=config_map(broken)) == "g0,NVIDIA,1,0:"


def test_explain_names_the_card_and_what_it_lacks() -> None:
    node = vgpu_node("n", mig_card("g0"), mig_card("g1"))
    held = [holds("a", "g0[group1-0],NVIDIA,1,0:"), holds("b", "g1[group3-0],NVIDIA,25000,0:")]
    plugin, ssn = opened(node, *held, asking(vgpu_memory=20481))
    assert plugin.refusal_numbers(task_of(ssn)) == {
        "cards": {
            "n": [
                "card g1 has 20480 of the 20481 memory wanted",
                "card g0 has no free instance with 20481 memory",
            ]
        }
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPU-1[group2-3]", MigInstance("group2", 3)),
        ("GPU-1[a-b-0]", MigInstance("a-b", 0)),
        ("GPU-1", None),
        ("GPU-1[group2]", None),
        ("GPU-1[group2-x]", None),
        ("GPU-1[group2--1]", MigInstance("group2-", 1)),
    ],
)
def test_the_place_of_an_instance_stands_behind_its_card(text: str, found: Any) -> None:
    assert read_instance(text) == found


PROFILES = st.lists(
    st.builds(
        MigProfile,
        name=st.just("p"),
        memory=st.integers(1, 8),
        count=st.integers(0, 3),
    ),
    max_size=3,
).map(tuple)
GEOMETRIES = st.lists(PROFILES, max_size=3).map(
    lambda found: tuple(Geometry(group=f"g{i}", geometries=each) for i, each in enumerate(found))
)


@given(GEOMETRIES, st.lists(st.integers(1, 8), max_size=8))
def test_instances_are_never_given_twice_and_always_large_enough(
    geometries: Any, wishes: list[int]
) -> None:
    used: set[MigInstance] = set()
    for wish in wishes:
        found = find_instance(geometries, used, wish)
        free = [
            profile.memory
            for geometry in geometries
            if not used or geometry.group == next(iter(used)).group
            for first, profile in _all_instances(geometry)
            if MigInstance(geometry.group, first) not in used and profile.memory >= wish
        ]
        assert (found is None) == (not free)
        if found is not None:
            instance, memory = found
            assert instance not in used
            assert wish <= memory == memory_of(geometries, instance)
            used.add(instance)
    assert len({each.group for each in used}) <= 1


def _all_instances(geometry: Geometry) -> Any:
    sizes = [profile for profile in geometry.geometries for _ in range(profile.count)]
    return enumerate(sizes)

"""Patches: RFC 6902, RFC 7386, and Kubernetes' own way with lists."""

import copy
import time
from typing import Any

import pytest

from pumice.cluster.embedded.patches import LONGEST, apply_patch
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import RejectedError, TooLargeError
from pumice.testing import pod

MERGE = {
    "mappings are merged by key": ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
    "null removes": ({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}),
    "lists are replaced": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "a value becomes a mapping": ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
}

JSON = {
    "add to a mapping": ({}, [{"op": "add", "path": "/a", "value": 1}], {"a": 1}),
    "add replaces": ({"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
    "add into a list": (
        {"a": [1, 3]},
        [{"op": "add", "path": "/a/1", "value": 2}],
        {"a": [1, 2, 3]},
    ),
    "add at the end": ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    "remove": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    "replace": ({"a": {"b": 1}}, [{"op": "replace", "path": "/a/b", "value": 2}], {"a": {"b": 2}}),
    "replace in a list": ({"a": [1]}, [{"op": "replace", "path": "/a/0", "value": 2}], {"a": [2]}),
    "replace all": ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    "move": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    "copy": ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    "escaped names": (
        {"a/b": {"c~d": 1}},
        [{"op": "remove", "path": "/a~1b/c~0d"}],
        {"a/b": {}},
    ),
    "remove of the last": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/1"}], {"a": [1]}),
    "add in front": ({"a": [1]}, [{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1]}),
    "add in a list in a list": (
        {"a": [[1], [2]]},
        [{"op": "add", "path": "/a/1/0", "value": 3}],
        {"a": [[1], [3, 2]]},
    ),
    "add past the last by number": (
        {"a": [1]},
        [{"op": "add", "path": "/a/1", "value": 2}],
        {"a": [1, 2]},
    ),
    "a copy is another": (
        {"a": {"x": [{"y": 1}]}},
        [
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/b/x/0/y", "value": 2},
            {"op": "add", "path": "/b/x/-", "value": 3},
            {"op": "add", "path": "/b/z", "value": 4},
        ],
        {"a": {"x": [{"y": 1}]}, "b": {"x": [{"y": 2}, 3], "z": 4}},
    ),
    "a test that holds": ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
}

REFUSED = {
    "a test that fails": [{"op": "test", "path": "/a", "value": 2}],
    "remove of nothing": [{"op": "remove", "path": "/b"}],
    "replace of nothing": [{"op": "replace", "path": "/b", "value": 1}],
    "remove past the end": [{"op": "remove", "path": "/l/0"}],
    "replace past the end": [{"op": "replace", "path": "/l/-", "value": 1}],
    "a way past the end": [{"op": "add", "path": "/l/0/a", "value": 1}],
    "a place right past the end": [{"op": "add", "path": "/l/1", "value": 1}],
    "a place past the end": [{"op": "add", "path": "/l/5", "value": 1}],
    "a place before the start": [{"op": "add", "path": "/l/-1", "value": 1}],
    "a path from nowhere": [{"op": "add", "path": "a", "value": 1}],
    "an unknown step": [{"op": "shuffle", "path": "/a"}],
    "no list": {"op": "add"},
    "no mapping": [1],
    "a list of names": [["op"]],
    "an op that is no text": [{"op": ["add"], "path": "/a"}],
    "no path": [{"op": "remove"}],
    "a path that is no text": [{"op": "remove", "path": 1}],
    "no value": [{"op": "add", "path": "/a"}],
    "removal of everything": [{"op": "remove", "path": ""}],
    "a move of everything": [{"op": "move", "from": "", "path": "/a"}],
    "a move into itself": [{"op": "move", "from": "/m", "path": "/m/m/x"}],
    "a place in a number": [{"op": "add", "path": "/a/b", "value": 1}],
    "removal from a number": [{"op": "remove", "path": "/a/b"}],
    "removal from a text": [{"op": "remove", "path": "/t/0"}],
}
ODD_INDICES = [
    "01",
    "00",
    "+1",
    "-0",
    "1_0",
    " 1",
    "1 ",
    "٣",
    "²",
    "\uff11",
    "1.0",
    "1e0",
    "",
    "9" * 5000,
]

NAMED = [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]
STRATEGIC = {
    "containers are merged by name": (
        {"containers": NAMED},
        {"containers": [{"name": "b", "image": "3"}, {"name": "c"}]},
        {"containers": [NAMED[0], {"name": "b", "image": "3"}, {"name": "c"}]},
    ),
    "an item is deleted by name": (
        {"containers": NAMED},
        {"containers": [{"name": "a", "$patch": "delete"}]},
        {"containers": [NAMED[1]]},
    ),
    "a list is replaced on demand": (
        {"containers": NAMED},
        {"containers": [{"name": "c"}, {"$patch": "replace"}]},
        {"containers": [{"name": "c"}]},
    ),
    "a mapping is replaced on demand": (
        {"strategy": {"a": 1}},
        {"strategy": {"$patch": "replace", "b": 2}},
        {"strategy": {"b": 2}},
    ),
    "container ports are merged by their number": (
        {"ports": [{"containerPort": 1, "name": "x"}]},
        {"ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]},
        {"ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]},
    ),
    "service ports are merged by theirs": (
        {"ports": [{"port": 1}]},
        {"ports": [{"port": 2}]},
        {"ports": [{"port": 1}, {"port": 2}]},
    ),
    "tolerations are replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "finalizers are a set": (
        {"finalizers": ["a"]},
        {"finalizers": ["a", "b"]},
        {"finalizers": ["a", "b"]},
    ),
    "a value is taken from a set": (
        {"finalizers": ["a", "b"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": ["b"]},
    ),
    "the order of items is the one named": (
        {"env": [{"name": "a"}, {"name": "b"}]},
        {
            "env": [{"name": "c"}],
            "$setElementOrder/env": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
        },
        {"env": [{"name": "c"}, {"name": "b"}, {"name": "a"}]},
    ),
    "items that the order does not name come last": (
        {"env": [{"name": "x"}, {"name": "a", "value": "1"}, {"name": "y"}, {"name": "b"}]},
        {"$setElementOrder/env": [{"name": "b"}, {"name": "a"}]},
        {"env": [{"name": "b"}, {"name": "a", "value": "1"}, {"name": "x"}, {"name": "y"}]},
    ),
    "values without names are put in order": (
        {"finalizers": ["a", "b"]},
        {"finalizers": ["c"], "$setElementOrder/finalizers": ["c", "b"]},
        {"finalizers": ["c", "b", "a"]},
    ),
    "the order of nothing is nothing": (
        {"a": 1},
        {"$setElementOrder/env": [{"name": "c"}]},
        {"a": 1},
    ),
    "a value is taken from a set that is not there": (
        {},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": []},
    ),
    "a mapping is deleted on demand": (
        {"strategy": {"a": 1}, "b": 2},
        {"strategy": {"$patch": "delete"}},
        {"b": 2},
    ),
    "nothing is deleted from nothing": (
        {"containers": NAMED, "b": 2},
        {"containers": [{"name": "z", "$patch": "delete"}], "c": {"$patch": "delete"}},
        {"containers": NAMED, "b": 2},
    ),
    "a list of nothing is made": ({}, {"containers": NAMED}, {"containers": NAMED}),
    "null removes a list": ({"containers": NAMED}, {"containers": None, "d": None}, {}),
    "items without their name replace the list": (
        {"containers": NAMED},
        {"containers": [{"image": "3"}]},
        {"containers": [{"image": "3"}]},
    ),
    "plain values in a list of names replace it": (
        {"containers": NAMED},
        {"containers": ["a"]},
        {"containers": ["a"]},
    ),
    "ports of both sorts are merged by the service's": (
        {"ports": [{"port": 1, "containerPort": 5}]},
        {"ports": [{"port": 1, "name": "x"}]},
        {"ports": [{"port": 1, "containerPort": 5, "name": "x"}]},
    ),
    "an item is merged, not replaced": (
        {"containers": [{"name": "a", "image": "1", "args": [1]}]},
        {"containers": [{"name": "a", "image": "2"}]},
        {"containers": [{"name": "a", "image": "2", "args": [1]}]},
    ),
    "a value becomes a mapping": ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    "only some keys are kept": (
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {}}]},
        {"volumes": [{"name": "v", "secret": {}}]},
    ),
    "null removes": ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
}


@pytest.mark.parametrize("rule", MERGE)
def test_merge_patch(rule: Any) -> None:
    target, patch, want = MERGE[rule]
    assert apply_patch(target, patch, "merge") == want


@pytest.mark.parametrize("rule", JSON)
def test_json_patch(rule: Any) -> None:
    target, patch, want = JSON[rule]
    assert apply_patch(target, patch, "json") == want


@pytest.mark.parametrize("rule", REFUSED)
def test_json_patch_that_cannot_be_applied(rule: Any) -> None:
    with pytest.raises(RejectedError, match="expected"):
        apply_patch({"a": 1, "l": [], "m": {"m": {}}, "t": "x"}, REFUSED[rule], "json")


@pytest.mark.parametrize("index", ODD_INDICES)
@pytest.mark.parametrize("op", ["add", "remove", "replace", "test", "copy", "move"])
def test_an_index_is_a_plain_number(index: Any, op: Any) -> None:
    step = {"op": op, "path": f"/l/{index}", "from": f"/l/{index}", "value": 1}
    with pytest.raises(RejectedError, match="is no index of a list"):
        apply_patch({"l": [1] * 50}, [step], "json")


def test_copies_that_double_are_refused_in_no_time() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 100
    with pytest.raises(TooLargeError, match="bytes to copy") as refused:
        apply_patch({"a": ["x" * 100]}, doubling, "json")
    assert refused.value.code == 413
    grown = [{"op": "copy", "from": "", "path": f"/{i}"} for i in range(100)]
    with pytest.raises(TooLargeError, match="bytes to copy"):
        apply_patch({"a": "x"}, grown, "json")


def test_a_patch_has_a_bounded_number_of_steps() -> None:
    step = {"op": "test", "path": "/a", "value": 1}
    apply_patch({"a": 1}, [step] * 10_000, "json")
    with pytest.raises(TooLargeError, match="at most 10000 steps, got 10001"):
        apply_patch({"a": 1}, [step] * 10_001, "json")


def test_a_patch_cannot_nest_without_end() -> None:
    nesting = [
        step
        for i in range(2000)
        for step in (
            {"op": "add", "path": f"/{i + 1}", "value": {}},
            {"op": "move", "from": f"/{i}", "path": f"/{i + 1}/x"},
        )
    ]
    with pytest.raises(TooLargeError, match="100 nested levels"):
        apply_patch({"0": {}}, nesting, "json")
    copying = [*nesting, {"op": "copy", "from": "/2000", "path": "/y"}]
    with pytest.raises(TooLargeError, match="100 nested levels"):
        apply_patch({"0": {}}, copying, "json")


@pytest.mark.parametrize("sort", ["json", "merge", "strategic", "apply"])
def test_no_patch_makes_an_object_too_large(sort: Any) -> None:
    half = "x" * (LONGEST // 2)
    patch = [{"op": "add", "path": "/b", "value": half}] if sort == "json" else {"b": half}
    with pytest.raises(TooLargeError, match=f"at most {LONGEST} bytes"):
        apply_patch({"a": half}, patch, sort)


def test_the_front_of_a_long_list_is_not_changed_too_often() -> None:
    steps = [{"op": "add", "path": "/a/0", "value": 0}] * 10_000
    with pytest.raises(TooLargeError, match="long lists"):
        apply_patch({"a": [0] * 1_000_000}, steps, "json")
    assert len(apply_patch({"a": []}, steps, "json")["a"]) == 10_000


@pytest.mark.parametrize(
    "patch",
    [
        {"finalizers": [f"f{i}" for i in range(50_000)]},
        {"$deleteFromPrimitiveList/finalizers": [f"g{i}" for i in range(50_000)]},
        {"$setElementOrder/finalizers": [f"g{i}" for i in range(50_000)]},
        {"$retainKeys": [f"g{i}" for i in range(50_000)], **{f"f{i}": 0 for i in range(50_000)}},
    ],
)
def test_strategic_patches_take_time_in_proportion_to_their_size(patch: Any) -> None:
    started = time.process_time()
    apply_patch({"finalizers": [f"x{i}" for i in range(50_000)]}, patch, "strategic")
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("sort", "patch"),
    [
        (
            "json",
            [{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/-", "value": 1}],
        ),
        ("strategic", {"containers": [{"name": "a", "$patch": "delete"}]}),
        ("strategic", {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
    ],
)
def test_a_patch_stays_as_it_is(sort: Any, patch: Any) -> None:
    before = copy.deepcopy(patch)
    first = apply_patch({"containers": copy.deepcopy(NAMED)}, patch, sort)
    assert patch == before
    assert apply_patch({"containers": copy.deepcopy(NAMED)}, patch, sort) == first


@pytest.mark.parametrize("rule", STRATEGIC)
def test_strategic_patch(rule: Any) -> None:
    target, patch, want = STRATEGIC[rule]
    assert apply_patch(target, patch, "strategic") == want


def test_a_merge_leaves_the_document_as_it_is() -> None:
    before = {"a": {"b": 1}}
    assert apply_patch(before, {"a": {"b": 2}, "c": 3}, "merge") == {"a": {"b": 2}, "c": 3}
    assert before == {"a": {"b": 1}}


@pytest.mark.parametrize("patch", [{"env": [{"name": []}]}, {"$retainKeys": 1}])
def test_a_strategic_patch_that_does_not_fit_is_refused(patch: Any) -> None:
    with pytest.raises(RejectedError, match="expected a patch that fits the object"):
        apply_patch({"env": [{"name": "a"}]}, patch, "strategic")


def test_a_merge_must_be_a_mapping() -> None:
    with pytest.raises(RejectedError, match="expected a mapping"):
        apply_patch({}, [1], "merge")


def test_a_patch_cannot_rename_or_change_the_kind() -> None:
    cluster = EmbeddedCluster()
    cluster.create(pod("p"))
    patch = {"kind": "Node", "metadata": {"name": "q", "namespace": "other"}}
    after = cluster.patch("Pod", "default", "p", patch)
    metadata = after["metadata"]
    assert (after["kind"], metadata["name"], metadata["namespace"]) == ("Pod", "p", "default")

"""nodegroup: which groups of nodes a queue's pods may use, prefer, and how much of them."""

import json
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.nodegroup import NodeGroup
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"


def grouped(name: Any, group: Any = None, **more: Any) -> Any:
    return node(name, labels={LABEL: group} if group is not None else {}, **more)


def affinity(required: Any = (), preferred: Any = (), avoided: Any = (), disliked: Any = ()) -> Any:
    def lists(hard: Any, soft: Any) -> Any:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": list(hard),
            "preferredDuringSchedulingIgnoredDuringExecution": list(soft),
        }

    return {
        "affinity": {
            "nodeGroupAffinity": lists(required, preferred),
            "nodeGroupAntiAffinity": lists(avoided, disliked),
        }
    }


def asking(name: str = "q", spec: Any = None, limits: Any = None, **more: Any) -> Any:
    """A queue, and a pod of it."""
    marks = {} if limits is None else {LIMITS: limits}
    return [
        queue(name, spec=spec or {}, annotations=marks, **more),
        pod_group(f"{name}-g", queue=name),
        pod(f"{name}-p", group=f"{name}-g", cpu=1),
    ]


def placing(objects: Any, arguments: Any = (), *, hierarchy: bool = False) -> Any:
    lines = ['actions: "allocate"', "tiers:", "- plugins:", "  - name: nodegroup"]
    lines += ["    enableHierarchy: true"] if hierarchy else []
    lines += ["    arguments:", *(f"      {each}" for each in arguments)] if arguments else []
    return Scheduler(parse_conf("\n".join(lines))).cycle(objects, 0.0).binds


GROUPS = ("req", "pref", "avoid", "dislike", "other")
NODES = [*(grouped(f"on-{name}", name) for name in GROUPS), grouped("bare")]
ALL_FOUR = affinity(["req"], ["pref"], ["avoid"], ["dislike"])


def open_nodes(objects: Any, arguments: Any = (), **switches: Any) -> Any:
    """Return which single nodes a queue's pod would take."""
    found = set()
    for each in NODES:
        if placing([*objects, each], arguments, **switches):
            found.add(each["metadata"]["name"].removeprefix("on-"))
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (ALL_FOUR, {"req", "pref", "dislike"}),
        (affinity(required=["req", "other"]), {"req", "other"}),
        (affinity(disliked=["dislike"]), {"dislike"}),
        (affinity(avoided=["avoid"]), set()),
        (affinity(required=["avoid"], avoided=["avoid"]), set()),
        (affinity(avoided=["dislike"], disliked=["dislike"]), {"dislike"}),
        (affinity(), set()),
        ({}, set()),
    ],
)
def test_a_queue_uses_groups_it_wants_or_merely_dislikes(spec: Any, expected: Any) -> None:
    """A hard refusal overrides a preference, a mild one overrides the refusal."""
    assert open_nodes(asking(spec=spec)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"), [({}, {"bare"}), (affinity(), {"bare"}), (affinity(["req"]), {"req"})]
)
def test_without_strict_unlabelled_nodes_are_open_to_queues_that_name_no_groups(
    spec: Any, expected: Any
) -> None:
    assert open_nodes(asking(spec=spec), ["strict: false"]) == expected


@pytest.mark.parametrize(
    ("groups", "spec", "arguments", "best"),
    [
        (("pref", "req"), ALL_FOUR, (), "req"),
        (("dislike", "pref"), ALL_FOUR, (), "pref"),
        (("a", "both"), affinity(["a", "both"], ["both"]), (), "both"),
        (("a", "sour"), affinity(["a", "sour"], disliked=["sour"]), (), "a"),
        (("z", "y", "x"), affinity(preferred=["x", "y", "z"]), ["enablePreferredOrder: true"], "x"),
    ],
)
def test_groups_are_preferred_by_the_queues_wishes(
    groups: Any, spec: Any, arguments: Any, best: str
) -> None:
    nodes = [grouped(f"on-{name}", name) for name in groups]
    assert placing([*asking(spec=spec), *nodes], arguments) == {"default/q-p": f"on-{best}"}


@pytest.mark.parametrize(
    ("required", "preferred", "group", "in_order", "score"),
    [
        (["a"], [], "a", False, 100),
        ([], ["b", "a"], "a", False, 50),
        ([], ["b", "a"], "a", True, 25),
        ([], ["a", "b"], "a", True, 50),
        (["a"], ["b", "c", "a", "d"], "a", True, 125),
    ],
)
def test_a_group_scores_by_what_the_queue_says_of_it(
    required: Any, preferred: Any, group: str, in_order: bool, score: int
) -> None:
    ssn, _ = session(
        [*asking(spec=affinity(required, preferred)), grouped("n", group)],
        NodeGroup(preferred_order=in_order),
    )
    task = ssn.task(ssn.snapshot.tasks.row_of["default/q-p"])
    assert ssn.placing.scores(task, np.array([0])).tolist() == [score]


def session(objects: Any, plugin: Any = None) -> Any:
    plugin = plugin or NodeGroup()
    snapshot = Ingest(Snapshot()).load([from_manifest(each) for each in objects])
    return Session(snapshot, [[Enabled(plugin, {})]]), plugin


def tree(leaf_parent: Any) -> Any:
    return [
        queue("root"),
        queue("team", parent="root", spec=affinity(["team"])),
        queue("project", parent="team"),
        *asking("leaf", parent=leaf_parent),
        grouped("n1", "team"),
    ]


@pytest.mark.parametrize("parent", ["team", "project"])
def test_with_a_hierarchy_a_queue_inherits_from_its_nearest_ancestor(parent: str) -> None:
    assert placing(tree(parent), hierarchy=True) == {"default/leaf-p": "n1"}
    assert placing(tree(parent)) == {}


@pytest.mark.parametrize("parent", ["lost", "leaf", "other"])
def test_a_broken_hierarchy_gives_nothing_and_ends(parent: str) -> None:
    objects = [*asking("leaf", parent=parent), queue("other", parent="leaf"), grouped("n1", "a")]
    assert placing(objects, hierarchy=True) == {}


def limited(limits: Any, *, count: Any = 4, cpu: Any = 1, running: Any = 0, nodes: Any = 2) -> Any:
    """A queue with limits, some pods running in its group and some waiting, one by one."""
    return [
        *(grouped(f"n{i}", "a", cpu=16) for i in range(nodes)),
        queue("q", spec=affinity(["a", "b"]), annotations={LIMITS: json.dumps(limits)}),
        *(pod_group(f"g{i}", queue="q") for i in range(count)),
        *(pod(f"p{i}", group=f"g{i}", cpu=cpu) for i in range(count)),
        pod_group("old", queue="q", phase="Running"),
        *(pod(f"r{i}", group="old", cpu=cpu, node="n0") for i in range(running)),
    ]


@pytest.mark.parametrize(
    ("limits", "running", "bound"),
    [
        ({"a": {"cpu": "2"}}, 0, 2),
        ({"a": {"cpu": "3500m"}}, 0, 3),
        ({"a": {"cpu": 2}}, 1, 1),
        ({"a": {"cpu": "2"}}, 2, 0),
        ({"a": {"pods": 3}}, 1, 2),
        ({"a": {"nvidia.com/gpu": "0"}}, 0, 4),
        ({"b": {"cpu": "1"}}, 0, 4),
        ({"a": None}, 0, 4),
        ({}, 0, 4),
    ],
)
def test_a_queue_takes_no_more_of_a_group_than_its_limit(
    limits: Any, running: int, bound: int
) -> None:
    """All nodes of the group count together; only named resources are limited."""
    assert len(placing(limited(limits, running=running))) == bound


@pytest.mark.parametrize("text", ["{", "[]", '"a"', '{"a": {"cpu": "much"}}', '{"a": 3}'])
def test_limits_that_cannot_be_read_close_every_node(text: str) -> None:
    objects = asking(spec=affinity(["req"]), limits=text)
    assert open_nodes(objects) == set()
    assert open_nodes(asking(limits=text), ["strict: false"]) == set()


@pytest.mark.parametrize("text", ["", "null", "{}"])
def test_empty_limits_limit_nothing(text: str) -> None:
    assert open_nodes(asking(spec=affinity(["req"]), limits=text)) == {"req"}


def verdicts(objects: Any, name: str, **fields: Any) -> list[str]:
    ssn, plugin = session(objects, NodeGroup(**fields))
    task = ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])
    codes = plugin.filter_nodes(task, ssn.nodes()).tolist()
    return ["" if not code else plugin.reasons[code - 1].text for code in codes]


def test_each_closed_node_has_its_reason() -> None:
    nodes = [grouped("a", "a"), grouped("b", "b"), grouped("bare")]
    label, affine = "node group label not found", "node group affinity not specified"
    unsuited = "node does not satisfy the node group affinity"
    assert verdicts([*asking(spec=affinity(["a"])), *nodes], "q-p") == ["", unsuited, label]
    assert verdicts([*asking(), *nodes], "q-p") == [affine, affine, label]
    assert verdicts([*asking(), *nodes], "q-p", strict=False) == [affine, affine, ""]
    bad = verdicts([*asking(limits="{"), *nodes], "q-p")
    assert bad == ["queue's node group limits cannot be read"] * 3
    full = asking(spec=affinity(["a", "b"]), limits=json.dumps({"a": {"cpu": "500m"}}))
    assert verdicts([*full, *nodes], "q-p") == ["node group resource limit exceeded", "", label]


def test_no_reason_is_beyond_doubt_curable() -> None:
    assert [reason.curable for reason in NodeGroup.reasons] == [False] * 5


def test_a_disliked_group_scores_below_nothing() -> None:
    spec = affinity(["a"], ["b"], disliked=["c", "a"])
    nodes = [grouped(name, name) for name in "abcd"]
    ssn, plugin = session([*asking(spec=spec), *nodes, grouped("bare")])
    task = ssn.task(ssn.snapshot.tasks.row_of["default/q-p"])
    assert plugin.score_nodes(task, ssn.nodes()).tolist() == [-1, 50, -1, 0, 0]

"""nodeorder: scores by requests and images, in Kubernetes' whole numbers."""

import math
from typing import Any

import numpy as np
import pytest

from pumice.core.views import Nodes
from pumice.plugins.nodeorder import NodeOrder
from pumice.testing import node, pod, pod_group, queue

GPU = "nvidia.com/gpu"
MIB = 1024 * 1024
OFF = dict.fromkeys(
    ("least", "most", "node_affinity", "pod_affinity", "balanced", "taints", "images", "spread"), 0
)


@pytest.fixture
def opened(open_session: Any) -> Any:
    """Return a function that opens a session; all weights are 0 unless given."""

    def made(objects: Any, *others: Any, **weights: Any) -> Any:
        world = [queue("default"), pod_group("g"), *objects]
        return open_session(world, NodeOrder(**{**OFF, **weights}), *others)

    return made


def scores(ssn: Any, name: str = "p") -> Any:
    task = ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])
    found = ssn.placing.fit(task).score.tolist()
    assert not ssn.failures.errors
    return found


class Reference:
    """The three scores with Go's integer arithmetic."""

    @staticmethod
    def least(wanted: Any, capacity: Any) -> Any:
        parts = [
            0 if w > c else (c - w) * 100 // c for w, c in zip(wanted, capacity, strict=True) if c
        ]
        return 50 * sum(parts) // (50 * len(parts)) if parts else 0

    @staticmethod
    def most(wanted: Any, capacity: Any) -> Any:
        parts = [min(w, c) * 100 // c for w, c in zip(wanted, capacity, strict=True) if c]
        return sum(parts) // len(parts) if parts else 0

    @staticmethod
    def balance(used: Any, capacity: Any) -> Any:
        shares = [min(1.0, u / c) for u, c in zip(used, capacity, strict=True) if c]
        deviation = 0.0
        if len(shares) == 2:
            deviation = abs((shares[0] - shares[1]) / 2)
        elif len(shares) > 2:
            mean = sum(shares) / len(shares)
            deviation = math.sqrt(sum((s - mean) ** 2 for s in shares) / len(shares))
        return int((1 - deviation) * 100)

    @classmethod
    def balanced(cls, used: Any, request: Any, capacity: Any) -> Any:
        after = [u + r for u, r in zip(used, request, strict=True)]
        return 50 + (50 + cls.balance(after, capacity) - cls.balance(used, capacity)) // 2


def random_cluster(seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    nodes = [
        node(
            f"n{i}",
            cpu=f"{rng.integers(0, 16) * 500}m",
            memory=f"{rng.integers(0, 9) * 1000}Mi",
            resources={GPU: int(rng.integers(0, 5))} if i % 2 else {},
        )
        for i in range(12)
    ]
    running = [
        pod(f"o{i}", node=f"n{rng.integers(12)}", cpu=f"{rng.integers(1, 900)}m", resources=gpus)
        for i in range(20)
        for gpus in ([{}, {GPU: 1}][i % 2],)
    ]
    return [*nodes, *running]


def amounts(ssn: Any, shape: Any, row: Any) -> Any:
    """Read what the reference needs off the tables: used, request and capacity by resource."""
    nodes, known = ssn.snapshot.nodes, ssn.snapshot.resources
    kinds = [0, 1]
    gpu = known.row(GPU)
    if gpu is not None and shape.request[gpu, 0]:
        kinds.append(gpu)
    used, capacity = nodes.view_used[kinds, row], nodes.allocatable[kinds, row]
    return [[int(x) for x in each] for each in (used, shape.request[kinds, 0], capacity)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("asks", [{"cpu": "300m"}, {"cpu": 1, "resources": {GPU: 1}}, {}])
@pytest.mark.parametrize("score", ["least", "most", "balanced"])
def test_scores_by_requests_agree_with_the_reference(
    opened: Any, seed: Any, asks: Any, score: str
) -> None:
    ssn = opened([*random_cluster(seed), pod("p", group="g", **asks)], **{score: 3})
    shape = ssn.task(ssn.snapshot.tasks.row_of["default/p"]).shape
    want = []
    for row in range(12):
        used, request, capacity = amounts(ssn, shape, row)
        silent = ssn.snapshot.nodes.view_nonzero[:, row] + shape.waiting_nonzero[:, 0]
        wanted = [int(x) for x in silent]
        if score == "balanced":
            value = Reference.balanced(used, request, capacity) if any(request) else 0
        else:
            value = getattr(Reference, score)(wanted, capacity[:2])
        want.append(3.0 * value)
    assert want == scores(ssn)


def having(name: Any, **sizes: Any) -> Any:
    made = node(name)
    made["status"]["images"] = [{"names": [k], "sizeBytes": v * MIB} for k, v in sizes.items()]
    return made


def running(*images: Any) -> Any:
    return {"containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]}


class TestImages:
    def test_an_image_counts_by_size_and_by_the_share_of_nodes_that_have_it(
        self, opened: Any
    ) -> None:
        nodes = [having("a", **{"x:1": 800}), having("b", **{"x:1": 800}), having("c"), having("d")]
        ssn = opened([*nodes, pod("p", group="g", spec=running("x:1"))], images=1)
        want = 100 * (400 - 23) // (1000 - 23)
        assert [want, want, 0, 0] == scores(ssn)

    def test_a_name_without_a_tag_means_the_latest(self, opened: Any) -> None:
        ssn = opened(
            [
                having("a", **{"r:5000/x:latest": 900}),
                pod("p", group="g", spec=running("r:5000/x")),
            ],
            images=1,
        )
        assert scores(ssn) == [100 * (900 - 23) // (1000 - 23)]

    def test_the_bounds_grow_with_the_containers(self, opened: Any) -> None:
        ssn = opened(
            [
                having("a", **{"x:1": 900, "y:1": 900}),
                pod("p", group="g", spec=running("x:1", "y:1")),
            ],
            images=2,
        )
        assert scores(ssn) == [2 * (100 * (1800 - 23) // (2000 - 23))]

    def test_little_images_do_not_count(self, opened: Any) -> None:
        ssn = opened(
            [having("a", **{"x:1": 22}), pod("p", group="g", spec=running("x:1"))], images=1
        )
        assert scores(ssn) == [0]


def test_a_score_of_weight_nought_is_not_even_computed(opened: Any) -> None:
    ssn = opened([node("a"), pod("p", group="g", cpu=1)])
    (plugin,) = ssn.plugins
    task = ssn.task(ssn.snapshot.tasks.row_of["default/p"])
    assert plugin.score_nodes(task, ssn.nodes()) is None
    assert plugin.rank_nodes(task, ssn.nodes()) is None


@pytest.mark.parametrize(
    ("capacity", "wanted", "used"),
    [
        ([1000, 1000], [1000, 1000], [0, 0]),
        ([1000, 1000], [999, 1], [0, 0]),
        ([1, 1000], [1, 10], [0, 0]),
        ([1000, 1], [10, 1], [1, 1]),
        ([1000, 2000], [1500, 200], [900, 100]),
        ([0, 1000], [10, 10], [0, 5]),
        ([0, 0], [10, 10], [0, 0]),
        ([1000, 3000, 4], [100, 200, 1], [300, 100, 3]),
        ([1000, 3000, 0], [100, 200, 1], [300, 100, 0]),
    ],
)
def test_small_and_full_nodes_score_as_the_reference_says(
    opened: Any, capacity: Any, wanted: Any, used: Any
) -> None:
    """Amounts in milli-cpu, bytes and gpus; many nodes at once, and one alone."""
    names = ("cpu", "memory", GPU)

    def amounts(given: Any) -> Any:
        units = [f"{given[0]}m", *map(str, given[1:])]
        return dict(zip(names, units, strict=False))

    world = [node(f"n{i}", cpu=4, memory="4Gi") for i in range(9)]
    for each in world:
        each["status"]["allocatable"] = {**amounts(capacity), "pods": "10"}
    world += [pod("o", group="g", node="n0", resources=amounts(used))] if any(used) else []
    ssn = opened(
        [*world, pod("p", group="g", resources=amounts(wanted))], least=1, most=100, balanced=10_000
    )
    shape = ssn.task(ssn.snapshot.tasks.row_of["default/p"]).shape
    view = ssn.snapshot.nodes.view_nonzero
    for row in (0, 1):
        silent = [int(x) for x in view[:, row] + shape.waiting_nonzero[:, 0]]
        held = used if row == 0 else [0] * len(used)
        offered = [c * 1000 if i == 2 else c for i, c in enumerate(capacity)]
        asked = [w * 1000 if i == 2 else w for i, w in enumerate(wanted)]
        taken = [u * 1000 if i == 2 else u for i, u in enumerate(held)]
        want = Reference.least(silent, offered[:2]) + 100 * Reference.most(silent, offered[:2])
        want += 10_000 * Reference.balanced(taken, asked, offered)
        assert scores(ssn)[row] == want
        task = ssn.task(ssn.snapshot.tasks.row_of["default/p"])
        alone = ssn.plugins[0].score_nodes(task, Nodes(ssn.snapshot, np.array([row])))
        assert alone.tolist() == [want]


@pytest.mark.parametrize(
    ("mib", "containers", "score"),
    [(23, 1, 0), (33, 1, 1), (1000, 1, 100), (5000, 1, 100), (1000, 2, 49), (2000, 2, 100)],
)
def test_images_count_between_two_bounds(
    opened: Any, mib: int, containers: int, score: int
) -> None:
    images = ["x:1", *(f"gone:{i}" for i in range(1, containers))]
    ssn = opened(
        [having("a", **{"x:1": mib}), pod("p", group="g", spec=running(*images))], images=1
    )
    assert scores(ssn) == [score]


def test_images_of_init_containers_count_too(opened: Any) -> None:
    spec = {**running("gone:1"), "initContainers": [{"name": "i", "image": "x:1"}]}
    ssn = opened([having("a", **{"x:1": 2000}), pod("p", group="g", spec=spec)], images=3)
    assert scores(ssn) == [300]
    other = opened([having("a", **{"x:1": 900}), pod("p", group="g", spec=running("y"))], images=1)
    task = other.task(other.snapshot.tasks.row_of["default/p"])
    assert other.plugins[0].score_shape(task.shape, other.nodes()) is None

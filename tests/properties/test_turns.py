"""Turns that are taken together decide what turns taken one by one decide."""

from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.framework.plugin import Plugin
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.reference import reference_decide
from pumice.testing.samples import snapshot_of

SCORES = {
    "spread": "nodeorder",
    "pack": "nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 2}",
    "binpack": "binpack",
    "none": "conformance",
}
QUEUES = ("proportion", "capacity", "overcommit")
TREE = "capacity, enabledHierarchy: true"


def conf_of(scores: str, queues: str) -> Any:
    return parse_conf(f"""
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: drf}}, {{name: predicates}}, {{name: {queues}}}, {{name: {SCORES[scores]}}}]
""")


def lone(i: int, shape: tuple[str, str], queue_name: str, **more: Any) -> list[Any]:
    cpu, memory = shape
    name, created = f"job{i:03d}", f"2026-01-01T00:{i // 60:02d}:{i % 60:02d}Z"
    group = pod_group(name, queue=queue_name, phase="Inqueue", created=created)
    return [group, pod(f"{name}-0", group=name, cpu=cpu, memory=memory, created=created, **more)]


@st.composite
def clusters(draw: Any) -> Any:
    """A few nodes of two sizes, some in use; jobs of one pod, of a few shapes; tight queues."""
    limits = st.sampled_from([None, None, {"cpu": 6}, {"cpu": 14, "memory": "20Gi"}])
    made: list[Any] = [
        queue(name, weight=draw(st.integers(1, 3)), capability=draw(limits), priority=priority)
        for name, priority in (("blue", 0), ("green", 0), ("red", draw(st.integers(0, 1))))
    ]
    n_nodes = draw(st.integers(2, 9))
    for i in range(n_nodes):
        big = draw(st.booleans())
        cpu, memory = (8, "32Gi") if big else (4, "8Gi")
        pods = draw(st.sampled_from([3, 110]))
        made.append(node(f"n{i}", cpu=cpu, memory=memory, pods=pods, labels={"zone": "ab"[i % 2]}))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4, unique=True))
    for i in range(draw(st.integers(10, 50))):
        more: dict[str, Any] = {}
        kind = draw(st.sampled_from([*["plain"] * 8, "zone", "running", *TERMS]))
        if kind == "zone":
            more["spec"] = {"nodeSelector": {"zone": draw(st.sampled_from("ab"))}}
        more |= {"spec": TERMS[kind]} if kind in TERMS else {}
        if kind == "running":
            more |= {"node": f"n{draw(st.integers(0, n_nodes - 1))}", "phase": "Running"}
            more["spec"] = {"affinity": WISH} if draw(st.booleans()) else {}
        more["labels"] = {"app": draw(st.sampled_from("xxxy"))}
        of = draw(st.sampled_from(["blue", "green", "red"]))
        made += lone(i, draw(st.sampled_from(shapes)), of, **more)
    return made


def _required(how: str, app: str, key: str) -> Any:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {how: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


TERMS = {
    "near": _required("podAffinity", "x", "zone"),
    "far": _required("podAntiAffinity", "x", "kubernetes.io/hostname"),
    "spread": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    },
}
"""What pods that wait say about others."""
WISH = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"app": "y"}},
                    "topologyKey": "zone",
                },
            }
        ]
    }
}
SHAPES = [("500m", "1Gi"), ("1", "1Gi"), ("2", "1Gi"), ("250m", "3Gi"), ("1500m", "6Gi")]


@st.composite
def gangs(draw: Any) -> Any:
    """Nodes, tight queues and gangs of a few pods, some of which need fewer than they have."""
    limits = st.sampled_from([None, None, {"cpu": 9}, {"cpu": 24, "memory": "40Gi"}])
    made: list[Any] = [
        queue(name, weight=draw(st.integers(1, 3)), capability=draw(limits))
        for name in ("blue", "green")
    ]
    n_nodes = draw(st.integers(3, 12))
    for i in range(n_nodes):
        cpu, memory = draw(st.sampled_from([(8, "32Gi"), (4, "8Gi")]))
        made.append(node(f"n{i}", cpu=cpu, memory=memory, pods=draw(st.sampled_from([3, 110]))))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3, unique=True))
    for i in range(draw(st.integers(9, 25))):
        made += _gang(draw, f"gang{i:02d}", shapes, draw(st.sampled_from(["blue", "green"])))
    return made


def _gang(draw: Any, name: str, shapes: Any, queue_name: str) -> list[Any]:
    """A pod group with up to two roles, each of one shape or of several."""
    roles = draw(st.lists(st.sampled_from(["", "master", "worker"]), min_size=1, max_size=2))
    mixed = draw(st.sampled_from([False, False, False, True]))
    pods: list[Any] = []
    sizes: dict[str, int] = {}
    for role in roles:
        shape = draw(st.sampled_from(shapes))
        for _ in range(draw(st.integers(1, 4))):
            cpu, memory = draw(st.sampled_from(shapes)) if mixed else shape
            which = {"role": role} if role else {}
            pods.append(pod(f"{name}-{len(pods)}", group=name, cpu=cpu, memory=memory, **which))
            sizes[role] = sizes.get(role, 0) + 1
    least = len(pods) - draw(st.sampled_from([0, 0, 0, 1]))
    minima = {role: n for role, n in sizes.items() if role} if draw(st.booleans()) else {}
    group = pod_group(name, queue=queue_name, phase="Inqueue", min_member=max(1, least))
    if minima:
        group["spec"]["minTaskMember"] = minima
    return [group, *pods]


@settings(max_examples=60)
@given(
    cluster=gangs(),
    scores=st.sampled_from(sorted(SCORES)),
    queues=st.sampled_from([*QUEUES, TREE]),
    seed=st.integers(0, 9),
)
def test_turns_of_gangs_decide_as_the_plain_way(
    cluster: Any, scores: Any, queues: Any, seed: Any
) -> None:
    conf = conf_of(scores, queues)
    fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), 0.0)
    assert fast == reference_decide(snapshot_of(cluster), conf, seed=seed)


@settings(max_examples=120)
@given(
    cluster=clusters(),
    scores=st.sampled_from(sorted(SCORES)),
    queues=st.sampled_from(QUEUES),
    seed=st.integers(0, 9),
    several=st.sampled_from([1, 1000]),
)
def test_turns_decide_as_the_plain_way(
    cluster: Any, scores: Any, queues: Any, seed: Any, several: Any
) -> None:
    """Also if of nodes that are alike one is asked."""
    conf = conf_of(scores, queues)
    with (
        mock.patch("pumice.framework.placement.kernel._MANY", 1),
        mock.patch("pumice.framework.placement.kernel._SEVERAL", several),
    ):
        fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), 0.0)
    assert fast == reference_decide(snapshot_of(cluster), conf, seed=seed)


def test_of_a_gang_that_finds_too_few_nodes_nothing_stays() -> None:
    made: list[Any] = [queue("blue"), *(node(f"n{i}", cpu=4, memory="64Gi") for i in range(8))]
    for i in range(20):
        made.append(pod_group(f"g{i:02d}", queue="blue", phase="Inqueue", min_member=3))
        made += [pod(f"g{i:02d}-{k}", group=f"g{i:02d}", cpu=1, memory="1Gi") for k in range(3)]
    conf = conf_of("spread", "proportion")
    found = Scheduler(conf).decide(snapshot_of(made), 0.0)
    assert len(found.binds) == 30  # 32 would fit
    assert found == reference_decide(snapshot_of(made), conf)


def three(name: str, queue_name: str, cpu: Any = 1) -> list[Any]:
    """A gang of three pods."""
    group = pod_group(name, queue=queue_name, phase="Inqueue", min_member=3)
    return [group, *(pod(f"{name}-{k}", group=name, cpu=cpu, memory="1Gi") for k in range(3))]


def test_a_plugin_that_declares_nothing_has_its_turns_taken_one_by_one() -> None:
    class Picky(Plugin, name="picky"):
        """Allows a queue one task fewer than it has jobs."""

        def on_open(self, ssn: Any) -> None:
            self._ssn = ssn

        def overused(self, queue: Any) -> bool:
            return bool(self._ssn.snapshot.queues.allocated[0, queue.row] >= 3000)

    conf = parse_conf("actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: picky}]\n")
    scheduler = Scheduler(conf, plugins={"picky": Picky})
    manifests = [queue("blue"), node("n", cpu=32, memory="64Gi")]
    for i in range(20):
        manifests += lone(i, ("1", "1Gi"), "blue")
    assert len(scheduler.cycle(manifests, 0.0).binds) == 3

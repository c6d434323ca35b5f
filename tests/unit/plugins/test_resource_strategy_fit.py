"""resource-strategy-fit: fill or spread, resource by resource; keep scarce resources free."""

from typing import Any

import numpy as np
import pytest

from pumice.api.annotations import STRATEGY_TYPE, STRATEGY_WEIGHT
from pumice.framework.arguments import WholePart, bind_arguments
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.resource_strategy_fit import ResourceStrategyFit, Sra
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

GPU = "nvidia.com/gpu"
BUSY = [
    node("empty", cpu=10, memory="10Gi"),
    node("half", cpu=10, memory="10Gi"),
    pod("old", node="half", cpu=4, memory="4Gi"),
]


def session(objects: Any, arguments: Any = None, *, asks: Any = None, marks: Any = None) -> Any:
    """Open a session with this plugin alone and one pending pod."""
    fields, _ = bind_arguments(ResourceStrategyFit, arguments or {})
    plugin = ResourceStrategyFit(**fields)
    mine = pod("p", group="g", resources=asks or {"cpu": 1, "memory": "1Gi"}, annotations=marks)
    snapshot = snapshot_of([*objects, queue("default"), pod_group("g"), mine])
    ssn = Session(snapshot, [[Enabled(plugin, {})]])
    return plugin, ssn, ssn.task(snapshot.tasks.row_of["default/p"])


def scores(objects: Any, arguments: Any = None, **asking: Any) -> Any:
    plugin, ssn, task = session(objects, arguments, **asking)
    total = np.zeros(ssn.snapshot.nodes.n)
    live = plugin.score_nodes(task, ssn.nodes())
    fixed = plugin.score_shape(task.shape, ssn.nodes())
    for column in (live, fixed):
        total += 0 if column is None else column
    return dict(zip(ssn.snapshot.nodes.names, total.tolist(), strict=True))


def strategy(kind: Any, weight: Any = 1) -> Any:
    return {"type": kind, "weight": weight}


def only(name: Any, kind: str = "MostAllocated", weight: Any = 1) -> Any:
    return {"resourceStrategyFitWeight": 1, "resources": {name: strategy(kind, weight)}}


def test_without_arguments_cpu_and_memory_are_spread_with_weight_ten() -> None:
    assert scores(BUSY) == {"empty": pytest.approx(900), "half": pytest.approx(500)}


def test_most_allocated_prefers_the_node_that_gets_fuller() -> None:
    assert scores(BUSY, only("cpu")) == {"empty": pytest.approx(10), "half": pytest.approx(50)}


@pytest.mark.parametrize(
    ("weight", "factor"), [(-3, 10), ("5", 10), (2.5, 2), (2.0, 2), (7, 7), (0, 0), (0.9, 0)]
)
def test_a_weight_that_is_negative_or_no_number_is_ten_and_a_fraction_is_cut_off(
    weight: Any, factor: int
) -> None:
    found = scores(BUSY, only("cpu") | {"resourceStrategyFitWeight": weight})
    assert found["half"] == pytest.approx(50 * factor)


def test_weights_average_the_resources() -> None:
    """(3 * 0.5 + 1 * 0.9) / 4 on the half full node with twice the memory free."""
    arguments = {
        "resourceStrategyFitWeight": 1,
        "resources": {"cpu": strategy("MostAllocated", 3), "memory": strategy("LeastAllocated", 1)},
    }
    assert scores(BUSY, arguments)["half"] == pytest.approx(100 * (3 * 0.5 + 0.5) / 4)


@pytest.mark.parametrize("weight", [0, -2])
def test_a_resource_weight_that_is_not_positive_is_one(weight: int) -> None:
    arguments = only("cpu", weight=weight)
    arguments["resources"]["memory"] = strategy("LeastAllocated", 3)
    with_one = only("cpu")
    with_one["resources"]["memory"] = strategy("LeastAllocated", 3)
    assert scores(BUSY, arguments) == scores(BUSY, with_one)


def test_an_unknown_type_in_the_configuration_means_least_allocated() -> None:
    assert scores(BUSY, only("cpu", "Bogus")) == scores(BUSY, only("cpu", "LeastAllocated"))


@pytest.mark.parametrize(
    ("name", "entry", "wanted"),
    [
        ("cpu", {"type": "MostAlocated"}, "MostAllocated or LeastAllocated"),
        ("cpu", {"weight": 0}, "a weight above 0"),
        ("cpu", {"weight": "two"}, "a weight above 0"),
        ("cpu", "MostAllocated", "a mapping with type and weight for cpu"),
        ("*", {}, "a star at the end of a name only"),
        ("a*b", {}, "a star at the end of a name only"),
    ],
)
def test_a_check_tells_of_entries_that_are_read_as_something_else(
    name: str, entry: Any, wanted: str
) -> None:
    good = {"memory": {"type": "LeastAllocated", "weight": 2}, "nvidia.com/*": {}}
    (fault,) = ResourceStrategyFit(resources={**good, name: entry}).faults()
    assert (fault.key, fault.wanted) == ("resources", wanted)


def test_one_resource_that_would_overflow_makes_the_score_zero() -> None:
    objects = [node("n", cpu=10, memory="1Gi")]
    asks = {"cpu": 1, "memory": "2Gi"}
    both = only("cpu") | {"resources": {n: strategy("MostAllocated") for n in ("cpu", "memory")}}
    assert scores(objects, both, asks=asks)["n"] == 0
    assert scores(objects, only("cpu"), asks=asks)["n"] == pytest.approx(10)


CARDS = [node("n", cpu=10, resources={GPU: 4, "nvidia.com/mig": 4})]
WANTED = {"cpu": 1, GPU: 1}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["nvidia.com/*"], 25),
        (["nvidia.com/gpu*"], 25),
        (["nvidia.com/gpus*"], 0),
        (["nvidia.com/*", GPU], 75),  # its own name goes before
        (["nvidia*", "nvidia.com/*"], 75),  # the longest beginning goes before
        (["*"], 0),
        (["nvidia.*/gpu"], 0),
        (["*gpu"], 0),
        (["nvidia.com/**"], 0),
    ],
)
def test_a_star_at_the_end_stands_for_all_names_that_begin_so(names: Any, expected: int) -> None:
    """The last entry is LeastAllocated where there are two, so that it shows which one counts."""
    kinds = ["MostAllocated", "LeastAllocated"]
    entries = {name: strategy(kinds[i]) for i, name in enumerate(names)}
    arguments = {"resourceStrategyFitWeight": 1, "resources": entries}
    assert scores(CARDS, arguments, asks=WANTED)["n"] == pytest.approx(expected)


def marked(kind: Any, weights: Any = None) -> Any:
    marks = {STRATEGY_TYPE: kind}
    return marks if weights is None else marks | {STRATEGY_WEIGHT: weights}


def test_annotations_of_a_pod_replace_the_configuration() -> None:
    found = scores(BUSY, only("memory"), marks=marked("MostAllocated", '{"cpu": 2}'))
    assert found == {"empty": pytest.approx(10), "half": pytest.approx(50)}


@pytest.mark.parametrize(
    "weights",
    [
        None,
        "",
        "junk",
        "[]",
        "null",
        '{"cpu": "1"}',
        '{"cpu": 1.5}',
        '{"cpu": true}',
        f'{{"cpu": {2**64}}}',
        pytest.param("[" * 100_000, id="too deep"),
    ],
)
def test_a_pod_with_a_type_but_no_usable_weights_scores_nothing(weights: Any) -> None:
    assert set(scores(BUSY, marks=marked("MostAllocated", weights)).values()) == {0}


def test_an_unknown_type_on_a_pod_scores_nothing() -> None:
    assert set(scores(BUSY, marks=marked("Other", '{"cpu": 1}')).values()) == {0}


def test_weights_without_a_type_are_ignored() -> None:
    assert scores(BUSY, marks={STRATEGY_WEIGHT: '{"cpu": 1}'}) == scores(BUSY)


MIXED = [
    node("plain"),
    node("cards", resources={GPU: 4}),
    node("rich", resources={GPU: 4, "x.y/z": 1}),
]


def sra(**more: Any) -> Any:
    part = {"enable": True, "resources": f"{GPU}, x.y/z", "weight": 10, **more}
    return {"resourceStrategyFitWeight": 0, "sra": part}


def test_sra_keeps_pods_off_nodes_with_scarce_resources() -> None:
    arguments = sra(resourceWeight={GPU: 3, "x.y/z": 1})
    assert scores(MIXED, arguments) == {"plain": 1000, "cards": 250, "rich": 0}


def test_sra_scores_zero_where_the_node_lacks_a_requested_resource() -> None:
    found = scores(MIXED, sra(), asks={"cpu": 1, GPU: 1})
    assert found == {"plain": 0, "cards": 500, "rich": 0}


@pytest.mark.parametrize("part", [{"enable": False}, {"weight": 0}])
def test_sra_is_off_without_its_switch_or_weight(part: Any) -> None:
    assert set(scores(MIXED, sra(**part)).values()) == {0}


def test_sra_has_no_weight_of_its_own() -> None:
    arguments = sra()
    del arguments["sra"]["weight"]
    assert set(scores(MIXED, arguments).values()) == {0}


def verdicts(objects: Any, rates: Any, asks: Any, resources: Any = GPU) -> Any:
    part = {"enable": True, "resources": resources, "resourceProportion": rates}
    plugin, ssn, task = session(objects, {"proportional": part}, asks=asks)
    codes = plugin.filter_nodes(task, ssn.nodes())
    names = ssn.snapshot.nodes.names
    fits = np.ones(len(names), dtype=bool) if codes is None else np.asarray(codes) == 0
    return {name: bool(fit) for name, fit in zip(names, fits, strict=True)}, plugin


RATES = {f"{GPU}.cpu": 2, f"{GPU}.memory": 1}


@pytest.mark.parametrize(("cpu", "fits"), [(2, True), ("2001m", False)])
def test_proportional_keeps_cpu_for_every_free_scarce_unit(cpu: Any, fits: bool) -> None:
    """Two of four cards are free: four of six idle cpus stay."""
    objects = [
        node("n", cpu=8, memory="64Gi", resources={GPU: 4}),
        pod("old", node="n", resources={"cpu": 2, GPU: 2}),
    ]
    found, plugin = verdicts(objects, RATES, {"cpu": cpu})
    assert found == {"n": fits}
    assert [r.curable for r in plugin.reasons] == [False]


@pytest.mark.parametrize(("memory", "fits"), [("1G", True), ("1001M", False)])
def test_proportional_keeps_memory_in_units_of_a_billion_bytes(memory: str, fits: bool) -> None:
    objects = [node("n", cpu=64, memory="5G", resources={GPU: 4})]
    assert verdicts(objects, RATES, {"cpu": 1, "memory": memory})[0] == {"n": fits}


def test_proportional_lets_pods_pass_that_ask_for_a_listed_resource() -> None:
    objects = [node("n", cpu=4, resources={GPU: 4})]
    assert verdicts(objects, RATES, {"cpu": 4, GPU: 1})[0] == {"n": True}


def test_proportional_ignores_nodes_without_the_resource() -> None:
    objects = [node("cards", cpu=4, resources={GPU: 4}), node("plain", cpu=4)]
    assert verdicts(objects, RATES, {"cpu": 1})[0] == {"cards": False, "plain": True}


@pytest.mark.parametrize("rate", [None, -1, "x", float("nan")])
def test_a_missing_negative_or_strange_rate_is_one(rate: Any) -> None:
    rates = {f"{GPU}.memory": 0} | ({} if rate is None else {f"{GPU}.cpu": rate})
    objects = [node("n", cpu=5, resources={GPU: 4})]
    assert verdicts(objects, rates, {"cpu": 1})[0] == {"n": True}
    assert verdicts(objects, rates, {"cpu": 2})[0] == {"n": False}


# Against plain loops


def slow_score(node_: Any, used: Any, asks: Any, rules: Any, weight: int) -> float:
    """Average over requested resources with a rule; zero if one would overflow."""
    total = weights = 0.0
    for name, asked in asks.items():
        if name not in rules:
            continue
        kind, of = rules[name]
        weights += of
        offered, after = node_.get(name, 0), used.get(name, 0) + asked
        if not of or kind not in ("MostAllocated", "LeastAllocated") or not offered:
            continue
        if after > offered:
            return 0.0
        total += of * (after if kind == "MostAllocated" else offered - after) / offered
    return 100.0 * weight * (total / weights if weights else total)


@pytest.mark.parametrize("seed", range(16))
def test_scores_agree_with_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ("cpu", "memory", GPU, "x.y/z")

    def amounts(most: int) -> Any:
        return {name: int(rng.integers(0, most)) for name in names if rng.random() < 0.8}

    nodes = [amounts(9) for _ in range(6)]
    held = [{name: n // 2 for name, n in each.items()} for each in nodes]
    asks = {"cpu": 1, **{name: n for name, n in amounts(4).items() if n}}
    kinds = ("MostAllocated", "LeastAllocated")
    rules = {
        name: (kinds[int(rng.integers(2))], int(rng.integers(1, 4)))
        for name in names
        if rng.random() < 0.7
    }
    rules = rules or {"cpu": ("MostAllocated", 1)}
    objects: list[Any] = []
    for i, (each, used) in enumerate(zip(nodes, held, strict=True)):
        objects.append(node(f"n{i}", cpu=0, memory=0))
        objects[-1]["status"]["allocatable"] = {k: str(v) for k, v in each.items()}
        if any(used.values()):
            objects.append(pod(f"o{i}", node=f"n{i}", resources=used))
    arguments = {
        "resourceStrategyFitWeight": 3,
        "resources": {name: strategy(*rule) for name, rule in rules.items()},
    }
    want = [slow_score(e, u, asks, rules, 3) for e, u in zip(nodes, held, strict=True)]
    found = scores(objects, arguments, asks=asks)
    assert [found[f"n{i}"] for i in range(6)] == pytest.approx(want)


@pytest.mark.parametrize(
    ("weights", "score"),
    [
        ('{"cpu": 2, "memory": 2}', 30),
        ('{"cpu": 0, "memory": 1}', 10),
        ('{"cpu": null, "memory": 1}', 10),
        ('{"cpu": -1, "memory": 3}', 50 * -0.5 + 10 * 1.5),
        ('{"cpu": 0}', 0),
        (f'{{"cpu": {2**63 - 1}}}', 50),
        (f'{{"cpu": {2**63}}}', 0),
        (f'{{"cpu": {-(2**63)}}}', 0),
    ],
)
def test_weights_of_a_pod_may_be_any_whole_numbers(weights: str, score: float) -> None:
    objects = [node("n", cpu=10, memory="10Gi"), pod("old", node="n", cpu=4)]
    marks = marked("MostAllocated", weights)
    found = scores(objects, {"resourceStrategyFitWeight": 1}, marks=marks)
    assert found["n"] == pytest.approx(score)


@pytest.mark.parametrize(
    ("weight", "want"),
    [(1, 500), (3, 250), (0, 1000), (-1, 500), (2.9, 1000 / 3), ("x", 500), (2**63, 500)],
)
def test_a_weight_of_a_scarce_resource_is_a_whole_number(weight: Any, want: float) -> None:
    """The other resource weighs one; the node has the first alone."""
    arguments = sra(resourceWeight={GPU: weight, "x.y/z": 1})
    assert scores([node("cards", resources={GPU: 4})], arguments)["cards"] == pytest.approx(want)


def test_sra_without_any_weight_scores_all_as_free_of_it() -> None:
    arguments = sra(resources=GPU, resourceWeight={GPU: 0})
    assert set(scores(MIXED, arguments).values()) == {0}
    unknown = sra(resources="no.such/thing")
    assert set(scores(MIXED, unknown).values()) == {1000}


@pytest.mark.parametrize(
    ("weight", "enable", "faults"), [(0, True, 1), (1, True, 0), (0, False, 0)]
)
def test_a_check_tells_of_sra_without_a_weight(weight: int, enable: bool, faults: int) -> None:
    plugin = ResourceStrategyFit(sra=Sra(enable=enable, weight=WholePart(weight)))
    assert [fault.key for fault in plugin.faults()] == ["sra"] * faults


def test_each_scarce_resource_has_its_own_reason_and_the_first_counts() -> None:
    objects = [
        node("both", cpu=4, memory="64Gi", resources={GPU: 4, "x.y/z": 4}),
        node("second", cpu=4, memory="64Gi", resources={"x.y/z": 4}),
    ]
    part = {"enable": True, "resources": f"{GPU},cpu,x.y/z,{GPU},no.such/thing"}
    plugin, ssn, task = session(objects, {"proportional": part}, asks={"cpu": 1})
    assert plugin.filter_nodes(task, ssn.nodes()).tolist() == [1, 2]
    assert [reason.text for reason in plugin.reasons] == [
        f"proportional of resource {name} check failed" for name in (GPU, "x.y/z")
    ]
    assert plugin.node_terms(task) is None


def test_without_proportional_no_node_is_refused() -> None:
    plugin, ssn, task = session([node("n", cpu=4, resources={GPU: 4})], {})
    assert plugin.filter_nodes(task, ssn.nodes()) is None
    assert len(plugin.node_terms(task)) == 1


@pytest.mark.parametrize(("rate", "kept"), [(0, 0), (0.5, 2), (2**63, 4), (1, 4)])
def test_a_rate_may_be_any_number_from_nought(rate: float, kept: int) -> None:
    """Four cards are free; so many cpus stay for them."""
    rates = {f"{GPU}.cpu": rate, f"{GPU}.memory": 0}
    objects = [node("n", cpu=8, resources={GPU: 4})]
    assert verdicts(objects, rates, {"cpu": 8 - kept})[0] == {"n": True}
    assert verdicts(objects, rates, {"cpu": f"{(8 - kept) * 1000 + 1}m"})[0] == {"n": False}

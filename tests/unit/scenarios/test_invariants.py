"""What `always`, `eventually` and `causes` hold decisions against, and what a failure tells."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.errors import ScenarioError
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.runner import check, default_scheduler, find_scenarios, junit_xml, run_files
from pumice.scenarios.scenario import scenario_from
from pumice.testing.builders import node, pod, pod_group, queue

RECLAIM = """
actions: "enqueue, allocate, reclaim"
tiers:
- plugins:
  - name: priority
- plugins:
  - name: predicates
  - name: proportion
"""
WITH_GANG = RECLAIM.replace("- name: proportion", "- name: proportion\n  - name: gang")


def gang(**changes: Any) -> list[Any]:
    """A gang of four fills the node; another queue waits for a quarter of it."""
    pods = [pod(f"g-{n}", namespace="t", group="g", cpu=1, node="n1", **changes) for n in range(4)]
    return [
        node("n1", cpu=4),
        queue("a"),
        queue("b"),
        pod_group("g", namespace="t", queue="a", min_member=4, phase="Running"),
        pod_group("w", namespace="t", queue="b", min_member=1, phase="Pending"),
        *pods,
        pod("w-0", namespace="t", group="w", cpu=1),
    ]


def run(*words: Any) -> str:
    return CliRunner().invoke(main, [str(word) for word in words]).stdout


def found(document: dict[str, Any], make: Any = default_scheduler) -> list[str]:
    document = {"conf": RECLAIM, "objects": gang(), **document}
    return check(scenario_from(document, Path("case.yaml")), make, CompareOptions())


BROKEN = {
    "a gang in pieces": ({"gangsWhole": True}, "t/g: 3 of at least 4 pods have a node"),
    "a name with a wildcard": ({"neverEvicted": ["t/g-*"]}, "t/g-3: evicted, expected never"),
    "one name": ({"neverEvicted": "t/*"}, "t/g-3: evicted, expected never"),
    "a queue": ({"neverEvicted": [{"queue": "a"}]}, "t/g-3: evicted, expected never"),
    "a queue as text": ({"neverEvicted": ["queue=a"]}, "t/g-3: evicted, expected never"),
    "a label": ({"neverEvicted": [{"labels": {"tier": "gold*"}}]}, "t/g-3: evicted, expected"),
    "a priority": ({"neverEvicted": [{"priority": {"at most": 5}}]}, "t/g-3: evicted, expected"),
    "a job": ({"neverEvicted": ["t/g"]}, "t/g-3: evicted, expected never"),
    "no lower priority": ({"evictedPriorityBelow": "preemptor"}, "expected one below 0 of t/w-0"),
    "too many": ({"evictions": {"at most": 0}}, "1 eviction (t/g-3), expected at most 0"),
    "still moving": ({"settles": {"within": "1 cycles"}}, "not settled: 1 pod bound in cycle 2"),
    "a list": (["gangsWhole", {"evictions": {"at most": 9}}], "t/g: 3 of at least 4"),
}


@pytest.mark.parametrize(("always", "text"), BROKEN.values(), ids=BROKEN)
def test_a_broken_invariant_is_reported_once(always: Any, text: str) -> None:
    (difference,) = found({"always": always, "objects": gang(labels={"tier": "golden"})})
    assert text in difference


def test_invariants_that_hold_are_silent() -> None:
    always = {
        "gangsWhole": True,
        "neverEvicted": ["kube-system/*", {"queue": "a", "labels": {"tier": "gold"}}],
        "evictions": {"at most": 1},
        "queueNotBelow": ["deserved", "guarantee"],
        "noNodeOvercommitted": True,
        "settles": {"within": "5s"},
    }
    kept = {"eventually": {"starts": ["t/w"], "evictions": 1}}
    whole = gang()
    whole[3]["spec"]["minMember"] = 1
    assert found({"always": always, "objects": whole, **kept}) == []
    assert found({"always": {"gangsWhole": True}, "conf": WITH_GANG}) == []


def test_a_queue_is_not_taken_below_its_due() -> None:
    objects = gang()[:5]
    objects += [
        pod_group("big", namespace="t", queue="a", min_member=1, phase="Running"),
        pod("big-0", namespace="t", group="big", cpu=3, node="n1"),
        pod_group("w", namespace="t", queue="b", min_member=1, phase="Pending"),
        pod("w-0", namespace="t", group="w", cpu=2),
    ]
    always = {"queueNotBelow": "deserved"}
    assert found({"always": always, "objects": objects}) == [
        "cycle 1: queue a: holds 0 of cpu, deserved 2 after t/big-0 evicted"
    ]
    assert found({"always": {"queueNotBelow": "guarantee"}, "objects": objects}) == []


def test_eventually_counts_from_the_first_cycle() -> None:
    goal = {"within": 1, "boundPerPodGroup": {"t/w": {"at least": 1}}}
    (late,) = found({"eventually": goal})
    assert late == "cycle 1: not within 1 cycle: t/w: 0 pods bound, expected at least 1"
    assert found({"eventually": {**goal, "within": "2 cycles"}}) == []
    assert found({"eventually": [{"evictions": {"at most": 1}}, {"starts": ["t/w"]}]}) == []
    both = {"1 cycle": {"waits": ["t/w"]}, "1s": {"starts": ["t/w"], "evictions": 2}}
    assert found({"eventually": both}) == ["cycle 2: not within 1s: 1 eviction, expected 2"]


CAUSES = {
    "the first": ("WaitingForEvicted", ""),
    "one of several": (["WaitingForEvicted"], ""),
    "another": ("QueueOverCapability", "waits with WaitingForEvicted, expected QueueOverCap"),
    "numbers": ({"code": "WaitingForEvicted", "numbers": {"seconds": 30}}, ""),
    "other numbers": ({"code": "WaitingForEvicted", "numbers": {"seconds": 3}}, "is 30.0, exp"),
}


@pytest.mark.parametrize(("cause", "text"), CAUSES.values(), ids=CAUSES)
def test_a_job_waits_for_a_stated_cause(cause: Any, text: str) -> None:
    texts = found({"expect": {"causes": {"t/w": cause}}})
    assert len(texts) == bool(text)
    assert text in "".join(texts)


def test_a_job_that_does_not_wait_has_no_cause() -> None:
    (text,) = found({"expect": {"causes": {"t/g": "NoPods"}}})
    assert text == "t/g: does not wait, expected it to wait with NoPods"


MISTAKES = {
    "always: {gangWhole: true}": ("7", "did you mean 'gangsWhole'"),
    "always: {queueNotBelow: capability}": ("7", "expected deserved or guarantee"),
    "always: {}": ("7", "at least one invariant"),
    "always: {settles: {within: soon}}": ("7", "a number of cycles"),
    "always: {neverEvicted: [{queues: a}]}": ("7", "did you mean 'queue'"),
    "expect: {}": ("7", "at least one expectation"),
    "expect: {causes: {t/w: QueueOverCapabilty}}": ("7", "did you mean 'QueueOverCapability'"),
    "expect:\n  bindsNum: 1\n  evictions: {at mots: 2}": ("9", "a list"),
    "expect:\n  binds: {}\n  phaes: {}": ("9", "did you mean 'phases'"),
    "eventually: {within: 5 cycles}": ("7", "at least one expectation"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_reported_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    conf = "conf: |\n  actions: allocate\n  tiers: []"
    path.write_text(f"name: x\n{conf}\nobjects:\n- {json.dumps(node('n1'))}\n{text}\n")
    (result,) = run_files(find_scenarios([path]))
    line, words = MISTAKES[text]
    assert result.outcome == "error"
    assert result.differences[0].startswith(f"{path}:{line}: ")
    assert words in result.differences[0]


def test_a_failure_tells_why_in_every_form(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    document = {
        "name": "gangs stay",
        "conf": RECLAIM,
        "objects": gang(),
        "always": {"gangsWhole": True},
        "expect": {"binds": {"t/w-0": "n1"}},
    }
    path.write_text(json.dumps(document))
    victim = "is evicted by reclaim for t/w-0 (queue b, priority 0); asked about it alone, "
    waits = "t/w waits: WaitingForEvicted: its place is promised"
    text = run("test", path)
    assert f"FAIL  {path}: gangs stay" in text
    assert victim in text
    assert waits in text
    (case,) = json.loads(run("test", path, "-o", "json"))["cases"]
    assert case["name"] == "gangs stay"
    assert case["failures"][1]["about"] == ["t/g", "t/g-3"]
    assert waits in case["failures"][0]["because"][0]
    xml = junit_xml(list(run_files(find_scenarios([path]))))
    assert 'message="gangs stay: cycle 1: t/w-0: pipelined' in xml
    assert victim in xml


PLUGIN = '''
from pumice.plugin import Plugin


def quiet_nodes(cycle, names):
    for each in cycle.evicted:
        if each.node in names:
            yield f"{each.pod}: evicted from {each.node}"


class Quiet(Plugin, name="quiet"):
    """Has no opinion."""

    invariants = {"quietNodes": quiet_nodes}
'''


def test_a_plugin_brings_its_own_invariant(tmp_path: Path) -> None:
    file = tmp_path / "quiet.py"
    file.write_text(PLUGIN)
    make = partial(default_scheduler, plugins=[str(file)])
    always = {"always": {"quietNodes": ["n1"]}}
    assert found(always, make) == ["cycle 1: t/g-3: evicted from n1"]
    assert found({"always": {"quietNodes": ["n2"]}}, make) == []
    with pytest.raises(ScenarioError, match="expected one of gangsWhole"):
        found(always)

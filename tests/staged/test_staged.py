"""Every staged situation: the job is really in that state, and `explain` reports it, with proof."""

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.lint import lint
from pumice.diagnosis.explain import explain_job
from tests.staged.truth import (
    CAUSES,
    FILES,
    HERE,
    NOT_EVICTED,
    Content,
    changed,
    differences,
    extender,
    gets_going,
    read,
    stands,
    world_of,
    wrong_moves,
)


def situations() -> pytest.MarkDecorator:
    """Ask a test about every file."""
    return pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def explained(path: Path) -> dict[str, Any]:
    """Return the explanation of a situation's job as the JSON output has it."""
    with extender(read(path)) as content:
        return explain(content, ask_extender=content.get("askExtender", False))


def explain(content: Content, *, ask_extender: bool) -> dict[str, Any]:
    """Explain a situation's job; the one place that knows how."""
    world = replace(world_of(content), asks_extender=ask_extender)
    reported = explain_job(world, content["job"]).to_dict()
    return dict(json.loads(json.dumps(reported)))


def complaints(content: Content, tmp_path: Path) -> str:
    """Return the findings of lint about the objects of a situation; empty if it accepts them."""
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.dump_all(content["objects"], Dumper=yaml.CSafeDumper), encoding="utf-8")
    result = CliRunner().invoke(lint, [str(file)])
    return result.output if result.exit_code else ""


@situations()
def test_admission_accepts_the_objects(path: Path, tmp_path: Path) -> None:
    content = read(path)
    assert bool(complaints(content, tmp_path)) == content.get("invalid", False)


def test_a_truth_is_of_the_closed_lists() -> None:
    for path in FILES:
        truth = read(path)["truth"]
        codes = "|".join(truth["codes"]).split("|")
        said = {*truth["first"], *truth.get("never", ()), *codes} - {""}
        assert said <= CAUSES, path.stem
        spared = {code for codes in truth.get("notEvicted", {}) for code in codes.split("|")}
        assert spared <= NOT_EVICTED, path.stem
        state = truth["state"]
        assert bool(truth["first"]) == ("waits" in state and "finished" not in state), path.stem


def test_every_code_has_a_situation() -> None:
    truths = [read(path)["truth"] for path in FILES]
    assert {code for truth in truths for code in truth["first"]} == CAUSES
    reported = "|".join(codes for truth in truths for codes in truth.get("notEvicted", {}))
    assert set(reported.split("|")) == NOT_EVICTED


@situations()
def test_the_job_stands_as_reported(path: Path) -> None:
    with extender(read(path)) as content:
        assert stands(world_of(content), content["job"]) in content["truth"]["state"]


@pytest.mark.sample(3)
@situations()
def test_the_explanation_is_true_and_every_remedy_helps(path: Path, tmp_path: Path) -> None:
    """One test, so that each situation is explained once."""
    content = read(path)
    found = explained(path)
    assert differences(content["truth"], found) == []
    texts = [remedy["text"] for remedy in found["remedies"]]
    assert len(set(texts)) == len(texts)
    assert [wrong for text in texts for wrong in wrong_moves(text)] == []
    for less, more in permutations((remedy["changes"] for remedy in found["remedies"]), 2):
        assert len(less) >= len(more) or any(op not in more for op in less), "more than is needed"
    for remedy in found["remedies"]:
        better = changed(content, remedy["changes"])
        assert content.get("invalid") or not complaints(better, tmp_path), remedy["text"]
        with extender(better) as served:
            assert gets_going(world_of(served), content["job"]), remedy["text"]


VERBS = ("onSessionOpen", "predicate", "jobEnqueueable", "jobEnqueued", "allocateFunc", "jobReady")


def spied_on() -> Content:
    """A situation whose extender is configured for every step, and is never called."""
    content = read(HERE / "extender-refuses-every-node.yaml")
    plugins = [one for tier in content["conf"]["tiers"] for one in tier["plugins"]]
    arguments = next(one["arguments"] for one in plugins if one["name"] == "extender")
    arguments |= {f"extender.{verb}Verb": verb for verb in VERBS}
    return {**content, "extender": {"jobReady": {"status": True}}}


def test_a_question_does_not_reach_the_extender_unless_the_user_agrees() -> None:
    with extender(spied_on()) as content:
        reported = explain(content, ask_extender=False)
        assert content["asked"] == []
    assert any("extender" in note for note in reported["notes"])


def test_a_question_asks_the_extender_only_what_has_no_effect() -> None:
    with extender(spied_on()) as content:
        explain(content, ask_extender=True)
        assert set(content["asked"]) == {"predicate"}
        assert len(content["asked"]) == 2, "a question for each of two nodes, each asked once"

"""Writing expectations back leaves the rest of the file as it was typed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api.decisions import Decisions, PodGroupState
from pumice.errors import ScenarioError
from pumice.scenarios.runner import PlayedCycle
from pumice.scenarios.scenario import scenario_from
from pumice.scenarios.writeback import (
    expectations,
    json_with_expect,
    loses_comments,
    write_expectations,
    yaml_with_expect,
)
from pumice.testing.builders import pod

PATH = Path("case")
NEW = {"binds": {"ns/a": "n1"}}


def test_json_keeps_its_own_indentation_and_the_other_keys() -> None:
    text = '{\n "objects": [\n  {"kind": "Node"}\n ],\n "expect": {"binds": {}},\n "now": "x"\n}\n'
    assert json_with_expect(text, NEW, PATH) == (
        '{\n "objects": [\n  {"kind": "Node"}\n ],\n'
        ' "expect": {\n  "binds": {\n   "ns/a": "n1"\n  }\n },\n "now": "x"\n}\n'
    )


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_json_without_expect_gets_one_at_the_end(indent: Any) -> None:
    text = json.dumps({"objects": [{"a": '}\\"'}], "expect": "old"}, indent=indent)
    old = json.dumps({"objects": [{"a": '}\\"'}]}, indent=indent)
    new = json.dumps({"objects": [{"a": '}\\"'}], "expect": NEW}, indent=indent)
    assert json_with_expect(text, NEW, PATH) == new
    assert json_with_expect(old, NEW, PATH) == new


YAML = """\
# world
objects: []   # none
{expect}# the end
now: "2026-01-01T00:00:00Z"
"""
BLOCK = "expect:\n  binds:\n    ns/a: n1\n"


@pytest.mark.parametrize(
    "old", ["expect:\n  binds: {}\n", "expect: {binds: {}}\n", "expect:\n  binds:\n    a: b  # c\n"]
)
def test_yaml_outside_expect_stays_verbatim(old: str) -> None:
    text = YAML.format(expect=old)
    assert yaml_with_expect(text, NEW, PATH) == YAML.format(expect=BLOCK)
    assert loses_comments(text) == ("# c" in old)


def test_yaml_without_expect_gets_one_at_the_end() -> None:
    assert yaml_with_expect("# a\nobjects: []", NEW, PATH) == f"# a\nobjects: []\n{BLOCK}"
    assert yaml_with_expect("objects: []\n...\n", NEW, PATH) == f"objects: []\n{BLOCK}...\n"
    assert not loses_comments("# a\nobjects: []")


def test_yaml_with_expect_as_last_key() -> None:
    text = "objects: []\nexpect:\n  binds: {}\n\n# bye\n"
    assert yaml_with_expect(text, NEW, PATH) == f"objects: []\n{BLOCK}\n# bye\n"


def test_flow_yaml_is_refused_instead_of_spoilt(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text("{objects: []}\n")
    with pytest.raises(ScenarioError, match="block mapping"):
        write_expectations(path, NEW)
    assert path.read_text() == "{objects: []}\n"


@pytest.mark.parametrize("name", ["case.yaml", "case.json"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_end_as_they_did(tmp_path: Path, name: str, end: str) -> None:
    path = tmp_path / name
    text = "# a\nobjects: []\n" if name == "case.yaml" else '{\n "objects": []\n}\n'
    path.write_bytes(text.replace("\n", end).encode())
    write_expectations(path, NEW)
    content = path.read_bytes().decode()
    assert "expect" in content
    assert content.count("\n") == content.count(end)
    assert content.replace(end, "\n").count("\n") > text.count("\n")


def played(scenario: Any, *decisions: Any) -> Any:
    return [PlayedCycle(scenario.objects, one) for one in decisions]


def test_counts_files_get_counts_and_unordered_evictions_stay_unordered() -> None:
    decisions = Decisions(
        binds={"ns/a": "n1"},
        evictions=["ns/z", "ns/b"],
        pod_groups={"ns/j": PodGroupState("Inqueue")},
    )
    objects = [pod("a", namespace="ns", group="j")]
    counted = scenario_from({"objects": objects, "stable": "counts"}, PATH)
    assert expectations(counted, played(counted, decisions)) == {
        "counts": {
            "boundPerPodGroup": {"ns/j": 1},
            "evicted": 2,
            "phases": {"ns/j": "Inqueue"},
            "pipelinedPerPodGroup": {},
        }
    }
    expect = {"evictions": [], "evictionsUnordered": True}
    unordered = scenario_from({"objects": objects, "expect": expect}, PATH)
    record = expectations(unordered, played(unordered, decisions))
    assert record["evictions"] == ["ns/b", "ns/z"]
    assert record["evictionsUnordered"] is True


def test_several_cycles_are_written_as_a_list(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text("objects: []\ncycles: 2\n")
    scenario = scenario_from({"objects": [], "cycles": 2}, path)
    write_expectations(path, expectations(scenario, played(scenario, Decisions(), Decisions())))
    written = yaml.safe_load(path.read_text())
    assert len(written["expect"]["cycles"]) == 2
    assert written["cycles"] == 2

"""Scenario files: what may be written, what is filled in, refusals and their messages."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF
from pumice.diagnosis.sources import load_world
from pumice.errors import ManifestError, ScenarioError
from pumice.scenarios.runner import default_scheduler, play
from pumice.scenarios.scenario import (
    EXPECT_KEYS,
    TOP_KEYS,
    is_scenario,
    load_scenario,
    scenario_from,
)
from pumice.testing.builders import node, pod

OBJECTS = [node("n1"), pod("p1")]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: Any, name: str = "case.yaml") -> Any:
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    return write


def test_the_page_lists_every_key_of_expectations() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    table = page.partition("## What can be expected")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(EXPECT_KEYS)


def test_the_page_lists_every_key_of_a_scenario() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    table = page.partition("## Keys")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(TOP_KEYS)


def test_only_objects_are_required(write: Any) -> None:
    scenario = load_scenario(write({"objects": OBJECTS}, "one.json"))
    assert scenario.name == "one"
    assert scenario.conf == DEFAULT_CONF
    assert scenario.now == 1767225600.0
    assert (scenario.cycles, scenario.stable, scenario.seed) == (1, True, 0)
    assert scenario.expect == []
    assert scenario.objects == OBJECTS


def test_objects_may_be_one_text_of_several_documents(write: Any) -> None:
    path = write(
        "objects: |\n"
        "  kind: Node\n  metadata: {name: n1, creationTimestamp: 2026-01-01T00:00:00Z}\n"
        "  ---\n  kind: Node\n  metadata: {name: n2}\n"
    )
    objects = load_scenario(path).objects
    assert [one["metadata"]["name"] for one in objects] == ["n1", "n2"]
    assert objects[0]["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_objects_and_conf_may_stand_in_other_files(write: Any) -> None:
    write("kind: List\nitems:\n- kind: Node\n  metadata: {name: n1}\n---\n", "nodes.yaml")
    write('actions: "allocate"\n', "my.conf")
    scenario = load_scenario(write("objectsFrom: [nodes.yaml]\nconfFrom: my.conf\n"))
    assert [one["metadata"]["name"] for one in scenario.objects] == ["n1"]
    assert scenario.conf == 'actions: "allocate"\n'
    assert scenario.conf_source.endswith("my.conf")


def test_a_later_file_counts_as_applied_to_the_earlier_ones(write: Any) -> None:
    """As the cluster of a test, and as that of other commands."""
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s%s}\n%s"
    write(queue % ("q", ", uid: u", "status: {state: Closed}\n"), "dump.yaml")
    new = queue % ("q", "", "spec: {weight: 4}\n") + "---\n" + queue % ("new", "", "")
    write(new, "new.yaml")
    path = write("objectsFrom: [dump.yaml, new.yaml]\n")
    for objects in (load_scenario(path).objects, load_world([path]).objects):
        assert [(one["metadata"]["name"], one["status"]["state"]) for one in objects] == [
            ("q", "Closed"),
            ("new", "Open"),
        ]
        assert (objects[0]["metadata"]["uid"], objects[0]["spec"]) == ("u", {"weight": 4})


def test_an_object_without_namespace_stands_in_default(write: Any) -> None:
    """Only kinds that live in a namespace get one."""
    path = write(
        "objects:\n"
        "- {kind: Node, metadata: {name: n1}}\n"
        "- {kind: Pod, metadata: {name: p1}}\n"
        "- {kind: PodGroup, metadata: {name: g1, namespace: team}}\n"
    )
    found = [one["metadata"].get("namespace") for one in load_scenario(path).objects]
    assert found == [None, "default", "team"]


def test_conf_may_be_a_mapping(write: Any) -> None:
    path = write("objects: []\nconf:\n  actions: allocate\n  tiers: []\n")
    assert load_scenario(path).conf == "actions: allocate\ntiers: []\n"


def test_usage_instants_become_seconds(write: Any) -> None:
    usage = {"n1": {"cpu": 20, "memory": 1.5, "metricsTime": "1970-01-01T00:01:00Z"}}
    scenario = load_scenario(write({"objects": [], "nodeUsage": usage}, "a.json"))
    assert scenario.node_usage == {"n1": {"cpu": 20.0, "memory": 1.5, "metricsTime": 60.0}}


def test_counts_are_lifted_and_cycles_become_records(write: Any) -> None:
    one = load_scenario(write({"objects": [], "expect": {"counts": {"evicted": 2}}}, "a.json"))
    assert one.expect == [{"evicted": 2}]
    many = load_scenario(
        write({"objects": [], "expect": {"cycles": [{"binds": {}}, {"evicted": 1}]}}, "b.json")
    )
    assert many.cycles == 2
    assert many.expect == [{"binds": {}}, {"evicted": 1}]


REFUSED: Any = {
    "a misspelt key": ({"objectz": []}, "", "objectz", "did you mean 'objects'?"),
    "no objects": ({"expect": {}}, "objects", None, ""),
    "an object without name": ({"objects": [{"kind": "Node"}]}, "objects[0].metadata", None, ""),
    "an object without kind": ({"objects": [{}]}, "objects[0].kind", None, ""),
    "a bad instant": ({"objects": [], "now": "noon"}, "now", "noon", ""),
    "stable false": ({"objects": [], "stable": False}, "stable", False, ""),
    "no cycles": ({"objects": [], "cycles": 0}, "cycles", 0, ""),
    "a conf of the wrong type": ({"objects": [], "conf": 3}, "conf", 3, ""),
    "two confs": ({"objects": [], "conf": "", "confFrom": "x"}, "confFrom", "x", ""),
    "a misspelt expectation": (
        {"objects": [], "expect": {"bind": {}}},
        "expect",
        "bind",
        "did you mean 'binds'?",
    ),
    "an expectation of the wrong type": (
        {"objects": [], "expect": {"binds": []}},
        "expect.binds",
        [],
        "",
    ),
    "a truth value as number": (
        {"objects": [], "expect": {"evictNum": True}},
        "expect.evictNum",
        True,
        "",
    ),
    "one record for two cycles": (
        {"objects": [], "cycles": 2, "expect": {"binds": {}}},
        "expect.cycles",
        None,
        "",
    ),
    "one cycle too few": (
        {"objects": [], "cycles": 2, "expect": {"cycles": [{}]}},
        "expect.cycles",
        "1 records",
        "",
    ),
    "an unknown fact about a pod group": (
        {"objects": [], "expect": {"podGroups": {"a/b": {"phases": "Running"}}}},
        "expect.podGroups.a/b",
        "phases",
        "did you mean 'phase'?",
    ),
    "a usage that is no number": (
        {"objects": [], "nodeUsage": {"n1": {"cpu": "high"}}},
        "nodeUsage.n1.cpu",
        "high",
        "",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_reported_with_file_field_and_value(case: Any, tmp_path: Path) -> None:
    document, field, found, hint = REFUSED[case]
    path = tmp_path / "case.json"
    with pytest.raises(ScenarioError) as raised:
        scenario_from(document, path)
    error = raised.value
    assert error.file == str(path)
    assert error.field == field
    assert error.hint == hint
    if found is not None:
        assert error.found == found
    assert str(path) in str(error)


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("a.json", '{\n "x": }', "line 2"),
        ("a.yaml", "a: 1\nb: [\n", "line 3"),
        ("b.json", "[]", ""),
    ],
)
def test_unreadable_text_names_the_line(name: str, text: str, field: str, write: Any) -> None:
    with pytest.raises(ScenarioError) as raised:
        load_scenario(write(text, name))
    assert raised.value.field == field


def test_a_missing_file_is_a_scenario_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="readable file"):
        load_scenario(tmp_path / "none.json")


def test_manifests_and_configurations_are_no_scenarios() -> None:
    assert is_scenario({"objects": []})
    assert is_scenario({"objectz": [], "expect": {}})
    assert not is_scenario({"kind": "Node", "objects": []})
    assert not is_scenario({"actions": "allocate"})
    assert not is_scenario([{"objects": []}])


BAD = """\
objects:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec:
    containers:
    - name: c
      resources:
        requests:
          cpu: 1x
"""


def test_an_object_that_cannot_be_used_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(BAD)
    with pytest.raises(ManifestError) as caught:
        play(load_scenario(path), default_scheduler)
    assert caught.value.file == f"{path}:13"


def test_an_object_without_a_kind_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(BAD.replace("kind: Pod", "kin: Pod"))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert caught.value.file == f"{path}:5"

"""`pumice explain` and `pumice queue order`: what they print, in every form."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.testing import node, pod, pod_group, priority_class, queue

CONF = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: conformance
- plugins:
  - name: predicates
"""
OBJECTS = [
    queue("default"),
    node("n1", cpu=4),
    priority_class("high", value=10),
    pod_group("low", min_member=0, phase="Running"),
    pod("low-0", group="low", cpu=4, node="n1"),
    pod_group("urgent", priority_class="high"),
    pod("urgent-0", group="urgent", cpu=4),
    pod_group("large"),
    pod("large-0", group="large", cpu=6),
]


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"conf": CONF, "objects": OBJECTS}))
    return str(path)


def run(*arguments: Any, **kwargs: Any) -> Any:
    return CliRunner().invoke(main, list(arguments), **kwargs)


def test_the_answer_is_a_code_a_sentence_nodes_and_remedies(scenario: Any) -> None:
    result = run("explain", "large", "-f", scenario)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "default/large  queue default, phase Inqueue, minMember 1; 1 pending"
    assert lines[2] == (
        "InsufficientResource: no node is large enough for large-0: "
        "it asks for cpu 6, and the largest node has 4"
    )
    assert "Nodes left after each constraint, if it went first" in lines
    assert "  all nodes                  1  for pod large-0, which asks for cpu 6" in lines
    assert "  capacity                   0  as above" in lines
    assert "What would help (each tried on a copy)" in lines
    assert "  • Add 2 nodes like n1 with cpu 6: 1 pod starts" in lines


def test_the_position_names_who_is_before(scenario: Any) -> None:
    lines = run("explain", "large", "-f", scenario).output.splitlines()
    at = lines.index("Position")
    assert lines[at + 1].startswith("  The second of 2 waiting jobs in queue default")
    assert lines[at + 2] == "  after default/urgent (priority: 10 before 0)"


def test_further_causes_follow_the_decisive_one(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(
        json.dumps(
            {
                "conf": CONF.replace("  - name: conformance", "  - name: gang"),
                "objects": [
                    *OBJECTS[:2],
                    pod_group("j", min_member=2),
                    *(pod(f"j-{i}", group="j", cpu=3) for i in range(2)),
                ],
            }
        )
    )
    lines = run("explain", "j", "-f", str(path)).output.splitlines()
    assert lines[2] == "GangShort: only 1 of the 2 pods that its gang needs finds a node"
    assert lines[lines.index("Further causes") + 1] == (
        "  InsufficientResource   node n1 has too little free cpu for j-1: it lacks 2 of the 3 cpu "
        "(with 1 pod of the job placed)"
    )


def test_victims_are_a_table(scenario: Any) -> None:
    result = run("explain", "urgent", "-f", scenario)
    assert (
        "WaitingForEvicted: its place is promised; 1 pod leaves for it: "
        "default/low-0 (within 30 s)\n" in result.output
    )
    assert "Pods that leave for it" in result.output
    assert "What would help" not in result.output


def test_without_remedies_it_says_how_many_were_tried(scenario: Any) -> None:
    spec = {"resourceClaims": [{"name": "card", "resourceClaimName": "missing"}]}
    waiting = pod("j-0", group="j", cpu=1, spec=spec)
    there = [queue("default"), node("n1", cpu=4), pod_group("j"), waiting]
    document = {"conf": CONF, "objects": there}
    result = run("explain", "j", "-f", "-", input=json.dumps(document))
    assert "tried" in result.output
    assert "it started." in result.output


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_answer_is_there_for_programs(scenario: Any, form: str, read: Any) -> None:
    found = read(run("explain", "large", "-f", scenario, "-o", form).output)
    jsonschema.validate(found, json.loads(run("explain", "--schema").output))
    assert (found["job"], found["causes"][0]["code"]) == ("default/large", "InsufficientResource")
    assert found["causes"][0]["numbers"]["request"] == 6
    assert found["funnel"][-1]["left"] == 0
    assert found["remedies"][0]["text"].startswith("add 2 nodes")
    assert found["remedies"][0]["changes"][0]["op"] == "add"


def test_the_schema_needs_no_cluster() -> None:
    result = run("explain", "--schema")
    assert result.exit_code == 0
    assert json.loads(result.output)["$schema"].startswith("https://json-schema.org/")


def test_without_a_job_all_that_wait_are_listed(scenario: Any) -> None:
    result = run("explain", "-f", scenario)
    rows = [line.split() for line in result.output.splitlines()]
    assert rows[0][:4] == ["job", "queue", "place", "cause"]
    assert [row[0] for row in rows if row and row[0].startswith("default/")] == [
        "default/urgent",
        "default/large",
    ]
    found = json.loads(run("explain", "-f", scenario, "-o", "json").output)
    assert [(each["job"], each["code"], each["position"]["place"]) for each in found] == [
        ("default/urgent", "WaitingForEvicted", 1),
        ("default/large", "InsufficientResource", 2),
    ]


def test_an_idle_cluster_is_reported_as_such(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"objects": OBJECTS[:2]}))
    result = run("explain", "-f", str(path))
    assert result.stdout == "no job waits\n"
    assert "no configuration was given: the built-in configuration is used" in result.stderr


def test_later_cycles_are_looked_at(scenario: Any) -> None:
    result = run("explain", "urgent", "-f", scenario, "--cycles", "3")
    assert "It starts in cycle 3: 1 pod on 1 node." in result.output


def test_an_unknown_job_is_refused_in_one_line(scenario: Any) -> None:
    result = run("explain", "urgnt", "-f", scenario)
    assert result.exit_code == 2
    assert result.output == ("Error: unknown job 'urgnt'; did you mean 'default/urgent'?\n")


def test_a_configuration_that_cannot_be_meant_is_refused(scenario: Any, tmp_path: Path) -> None:
    conf = tmp_path / "x.conf"
    conf.write_text(CONF.replace("predicates", "predicats"))
    result = run("explain", "large", "-f", scenario, "--conf", str(conf))
    assert result.exit_code == 2
    assert "did you mean 'predicates'?" in result.output


def test_the_order_is_printed_with_the_keys_of_each_plugin(scenario: Any) -> None:
    result = run("queue", "order", "-f", scenario)
    assert result.exit_code == 0
    assert "Jobs of queue default" in result.output
    assert "priority: 10 before 0" in result.output
    assert "Put jobs of high priority first" in result.output


def test_the_order_is_there_for_programs(scenario: Any) -> None:
    found = json.loads(run("queue", "order", "-f", scenario, "-o", "json").output)
    assert [line["name"] for line in found["jobs"]["default"]] == [
        "default/urgent",
        "default/large",
    ]


def test_nobody_waits_in_an_idle_cluster(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"objects": OBJECTS[:2]}))
    assert run("queue", "order", "-f", str(path)).output == "no job waits in any queue\n"


def test_parts_of_an_answer_can_be_left_out(scenario: Any) -> None:
    words = ["explain", "large", "-f", str(scenario), "--no-forecast", "--no-unblock"]
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 0
    assert "Forecast" not in found.output
    assert "What would help" not in found.output
    listed = CliRunner().invoke(main, ["explain", "-f", str(scenario), "--no-forecast"])
    assert "starts" not in listed.output


def test_within_a_time_what_is_known_is_printed_and_the_rest_named(scenario: Any) -> None:
    found = CliRunner().invoke(main, ["explain", "large", "-f", str(scenario), "--within", "0s"])
    assert found.exit_code == 0
    assert found.stdout.splitlines()[2].startswith("InsufficientResource: ")
    assert "Unknown: not found within no time" in found.stdout
    assert "note: not all changes that might help were tried" in found.stderr


def test_a_time_that_is_none_is_refused(scenario: Any) -> None:
    found = CliRunner().invoke(main, ["explain", "-f", str(scenario), "--within", "soon"])
    assert found.exit_code == 2
    assert "--within" in found.output

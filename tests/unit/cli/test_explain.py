"""`pumice explain` and `pumice queue order`: what they print, in every form."""

import json
from pathlib import Path
from typing import Any

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


def test_the_answer_is_a_sentence_a_ladder_and_ways_out(scenario: Any) -> None:
    result = run("explain", "large", "-f", scenario)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "default/large  queue default, phase Inqueue, minMember 1; 1 pending"
    assert lines[2].startswith("No node fits large-0 (cpu 6): of 1 nodes, 1 short of cpu;")
    assert "  ✗ nodes     0 of 1 take large-0: 1 short of cpu; nearest is n1" in result.output
    assert "What would unblock it (each tried on a copy)" in lines
    assert "  • Add 2 nodes like n1 with cpu 6: 1 pod starts" in lines


def test_victims_are_a_table(scenario: Any) -> None:
    result = run("explain", "urgent", "-f", scenario)
    assert "Waiting for pods that leave to make room: default/low-0." in result.output
    assert "Pods that leave for it" in result.output
    assert "What would unblock it" not in result.output


def test_without_ways_out_it_says_how_many_were_tried(scenario: Any) -> None:
    spec = {"nodeSelector": {"a": "b"}, "nodeName": ""}
    document = {
        "conf": CONF,
        "objects": [queue("default"), pod_group("j"), pod("j-0", group="j", cpu=1, spec=spec)],
    }
    result = run("explain", "j", "-f", "-", input=json.dumps(document))
    assert "None of the " in result.output


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_answer_is_there_for_programs(scenario: Any, form: str, read: Any) -> None:
    found = read(run("explain", "large", "-f", scenario, "-o", form).output)
    assert (found["job"], found["reason"]) == ("default/large", "no node fits")
    assert found["gates"][4]["mark"] == "failed"
    assert found["unblock"][0]["change"].startswith("add 2 nodes")


def test_without_a_job_all_that_wait_are_listed(scenario: Any) -> None:
    result = run("explain", "-f", scenario)
    assert "default/large" in result.output
    assert "default/urgent" in result.output
    assert set(json.loads(run("explain", "-f", scenario, "-o", "json").output)) == {
        "default/large",
        "default/urgent",
    }


def test_an_idle_cluster_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"objects": OBJECTS[:2]}))
    assert run("explain", "-f", str(path)).output == "no job waits\n"


def test_later_cycles_are_looked_at(scenario: Any) -> None:
    result = run("explain", "urgent", "-f", scenario, "--cycles", "3")
    assert "It starts in cycle 3: 1 pod on 1 node." in result.output


def test_an_unknown_job_is_refused_in_one_line(scenario: Any) -> None:
    result = run("explain", "urgnt", "-f", scenario)
    assert result.exit_code == 2
    assert result.output == (
        "Error: wanted a job of this cluster, found 'urgnt' (did you mean 'default/urgent'?)\n"
    )


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

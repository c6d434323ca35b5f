"""`pumice diff`: two configurations side by side, as text, data and one page."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from pumice.cli.main import main
from pumice.testing import node, pod, pod_group, priority_class, queue

OLD = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""
NEW = """\
actions: "enqueue, allocate, preempt"
tiers:
- victims: strict
  plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: predicates}
  - {name: binpack, arguments: {binpack.weight: 3}}
"""
OBJECTS = [
    queue("default"),
    node("n1", cpu=4),
    priority_class("high", value=10),
    pod_group("old", min_member=0, phase="Running"),
    *(pod(f"old-{i}", group="old", cpu=2, node="n1", phase="Running") for i in range(2)),
    pod_group("<b>", min_member=1, priority_class="high"),
    pod("urgent", group="<b>", cpu=2),
]
NOBODY_IS_EVICTED = {"name": "kept", "objects": OBJECTS, "conf": OLD, "expect": {"evictions": []}}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "old.conf").write_text(OLD)
    (tmp_path / "new.conf").write_text(NEW)
    (tmp_path / "cluster.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS})
    )
    (tmp_path / "kept.yaml").write_text(yaml.safe_dump(NOBODY_IS_EVICTED))
    return {path.stem: str(path) for path in tmp_path.iterdir()}


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["diff", *arguments])


def test_who_decides_the_first_cycle_the_outcome_and_the_tests_are_compared(
    files: dict[str, str],
) -> None:
    asked = [files["old"], files["new"], files["kept"], "-f", files["cluster"], "-o", "json"]
    result = run(*asked)
    assert result.exit_code == 1  # a test fails under the new configuration
    found = json.loads(result.stdout)
    victims = "which tasks a job of the same queue may evict"
    [row] = [each for each in found["deciding"] if each["what"] == victims]
    assert row["old"] == "priority + gang"
    assert row["new"] == "priority + gang + conformance (strict: all must permit)"
    assert {"name": "binpack binpack.weight", "old": "not set", "new": "3"} in found["settings"]
    evicted = [each for each in found["first_cycle"] if each["new"].startswith("evicted")]
    assert [(each["old"], each["new"]) for each in evicted] == [
        ("stays", "evicted for default/urgent")
    ]
    assert found["outcome"]["signoff"]["after"]["evictions"] == 1
    [test] = found["tests"]
    assert (test["old"], test["new"]) == ("passed", "failed")


def test_the_text_and_the_page_have_the_same_tables(files: dict[str, str], tmp_path: Path) -> None:
    page = tmp_path / "pages" / "diff.html"
    asked = [files["old"], files["new"], files["kept"], "-f", files["cluster"]]
    result = run(*asked, "--report", str(page), "--fail-on", "evictions")
    assert result.exit_code == 1
    text = page.read_text()
    titles = ("Sign-off", "Who decides what", "Actions and arguments", "First cycle", "Tests")
    for shown in ([f"\n{each}\n" for each in titles], [f"<h2>{each}</h2>" for each in titles]):
        places = [(result.stdout if "\n" in each else text).index(each) for each in shown]
        assert places == sorted(places)  # the totals come first
    assert "<td>tests that fail</td><td>0 of 1</td><td>1 of 1</td>" in text
    assert "refused: evictions: 1, before 0" in result.stdout
    assert "Refused: evictions: 1, before 0" in text
    assert "<b>" not in text
    assert "default/&lt;b&gt;" in text


def test_without_a_cluster_configurations_alone_are_compared(files: dict[str, str]) -> None:
    result = run(files["old"], files["new"])
    assert (result.exit_code, "Who decides what" in result.stdout) == (0, True)
    assert "Sign-off" not in result.stdout
    same = run(files["old"], files["old"], "-f", files["cluster"])
    assert "First cycle" not in same.stdout


def test_a_configuration_with_errors_is_refused(files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.conf").write_text(NEW.replace("gang", "gangg"))
    done = CliRunner().invoke(main, ["diff", files["old"], str(tmp_path / "bad.conf")])
    assert (done.exit_code, "did you mean 'gang'?" in done.stderr) == (2, True)

"""A search finds known optima in staged spaces, and judges its result on days it has not seen."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pumice
from pumice.api.conf import parse_conf
from pumice.cli.main import main
from pumice.errors import InputError
from pumice.tuning.search import Tuned
from pumice.tuning.space import Template, read_space
from tests.unit.replay.test_compare import CALM
from tests.unit.replay.test_exact import record_churn

pytest.importorskip("optuna")
CONF = """
actions: enqueue, allocate, backfill
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - {name: binpack, arguments: {binpack.weight: 0}}
  - {name: nodeorder, arguments: {leastrequested.weight: 5}}
"""
# Two half-full nodes: a pod of a whole node starts at once only if small pods share one node.
STAGED = [
    {"name": name, "arrival": at, "pods": 1, "run": run, "cpu": cpu}
    for day in range(3)
    for name, at, run, cpu in (
        (f"small-{day}", 86400 * day, 3000, 2),
        (f"also-{day}", 86400 * day + 10, 3000, 2),
        (f"large-{day}", 86400 * day + 60, 600, 4),
    )
]
SPACE = """
base: base.conf
workload: {trace: jobs.csv, nodes: nodes.yaml, train: "0-1", held: "2"}
search:
- {at: plugins.binpack.arguments.binpack.weight, int: [0, 20]}
- {at: plugins.nodeorder.arguments.leastrequested.weight, int: [0, 20]}
minimise: [wait.max]
trials: 12
"""
NODES = """
apiVersion: v1
kind: Node
metadata: {name: %s}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = list(STAGED[0])
    rows = [",".join(str(row[name]) for name in columns) for row in STAGED]
    (tmp_path / "jobs.csv").write_text("\n".join([",".join(columns), *rows]))
    (tmp_path / "nodes.yaml").write_text("---".join(NODES % name for name in ("a", "b")))
    (tmp_path / "base.conf").write_text(CONF)
    (tmp_path / "space.yaml").write_text(SPACE)
    return tmp_path


def test_a_known_optimum_is_found_and_judged_on_held_out_days(folder: Path) -> None:
    files = ["--best", str(folder / "best.conf"), "--report", str(folder / "page.html")]
    done = CliRunner().invoke(main, ["tune", str(folder / "space.yaml"), *files, "-o", "json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["base"]["wait.max"] > 1000
    assert found["best"]["figures"]["wait.max"] <= 2
    assert found["held"]["new"]["wait.max"] <= 2
    values = found["best"]["values"]
    assert values["plugins.binpack.arguments.binpack.weight"] > 0
    assert any(trial["days"] == 1 for trial in found["trials"])  # stopped early
    written = (folder / "best.conf").read_text()
    assert parse_conf(written) == parse_conf(found["configuration"])
    assert "# wait.max on 1 day that the search has not seen: " in written
    assert "<circle" in (folder / "page.html").read_text()


def test_conditions_and_several_objectives(folder: Path) -> None:
    text = SPACE.replace("[wait.max]", "[wait.max, makespan]").replace("trials: 12", "trials: 6")
    (folder / "space.yaml").write_text(text + "require: ['finished >= old']\n")
    found: Tuned = pumice.tune(folder / "space.yaml")
    assert found.best in found.front
    (folder / "space.yaml").write_text(text + "require: ['finished > 2 * old']\n")
    with pytest.raises(InputError, match="meets the conditions"):
        pumice.tune(folder / "space.yaml", trials=2)


def test_recorded_days_are_searched(tmp_path: Path) -> None:
    record_churn(tmp_path / "record", 1, 0.6, CALM, disturbed=False)
    (tmp_path / "space.yaml").write_text("""
workload: {record: record, hours: 0.25, train: "0", held: "1"}
search: [{at: plugins.priority, choice: [true, false]}]
minimise: [wait.mean]
""")
    found = pumice.tune(tmp_path / "space.yaml", trials=2)
    assert found.evidence is not None
    assert found.evidence.days == [1]


def test_arguments_of_own_plugins_are_searched_and_no_others(folder: Path) -> None:
    (folder / "own.py").write_text("""
from dataclasses import dataclass

from pumice.plugin import Plugin, arg


@dataclass(kw_only=True)
class First(Plugin, name="first"):
    \"\"\"Puts one node first.\"\"\"

    node: str = arg("first.node", default="a", doc="its name")

    def score_shape(self, shape, facts):
        return 1000.0 * (facts.names == self.node)
""")
    at = "plugins.first.arguments.first.node"
    space = folder / "space.yaml"
    space.write_text(SPACE.replace(_LINE, f"{{at: {at}, choice: [a, b]}}"))
    (folder / "base.conf").write_text(CONF.replace("{name: priority}", "{name: first}"))
    command = ["tune", str(space), "--plugin", str(folder / "own.py"), "--trials", "2"]
    done = CliRunner().invoke(main, command)
    assert f"{at}: " in done.output
    space.write_text(space.read_text().replace("first.node", "first.knot"))
    done = CliRunner().invoke(main, command)
    assert done.exit_code != 0
    assert "first does not read it" in done.output


_LINE = "{at: plugins.nodeorder.arguments.leastrequested.weight, int: [0, 20]}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("minimise: [wait.max]", "minimise: [waits.max]", "unknown figure"),
        ("int: [0, 20]", "int: [20, 0]", "lower to a higher"),
        ("at: plugins.binpack", "at: plugin.binpack", "such as actions"),
        ('held: "2"', 'held: "1"', "not searched"),
        ('held: "2"', 'held: "two"', "days such as"),
        ('held: "2"', 'held: "2-99999999999"', "days before day 10,000"),
        ("minimise: [wait.max]", "", "minimise or maximise"),
        ('train: "0-1"', f'train: "{"0-9999," * 100_000}"', "each day once"),
        (_LINE, "{at: tiers, choice: [5]}", "a list of names of plugins"),
        (_LINE, "{at: tiers, choice: [[[[1]]]]}", "a list of names of plugins"),
        (_LINE, "{at: tiers, int: [0, 5]}", "choice"),
        (_LINE, "{at: actions, choice: [5]}", "names of actions"),
        (_LINE, "{at: plugins.gang, choice: [5]}", "true or false"),
    ],
)
def test_a_mistake_in_a_space_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_space(Path("space.yaml"), SPACE.replace(old, new))


def test_a_template_fills_what_is_empty() -> None:
    text = Template('actions: "allocate"\n').filled({"plugins.gang": True})
    assert parse_conf(text).names_plugin("gang")
    empty = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments:\n"
    text = Template(empty).filled({"plugins.gang.arguments.x": 1})
    assert parse_conf(text).tiers[0].plugins[0].arguments == {"x": 1}


def test_a_template_sets_values_of_all_kinds() -> None:
    text = Template(CONF).filled(
        {
            "actions": ["enqueue", "allocate"],
            "tiers": [["gang"], ["predicates", "binpack"]],
            "plugins.drf": True,
            "plugins.gang.enablePreemptable": False,
            "plugins.binpack.arguments.binpack.weight": 3,
            "configurations.enqueue.arguments.x": 1,
        }
    )
    found = parse_conf(text)
    names = [[each.name for each in tier.plugins] for tier in found.tiers]
    assert names == [["gang"], ["predicates", "binpack", "drf"]]
    assert found.actions == ("enqueue", "allocate")
    assert Template(text).value("plugins.binpack.arguments.binpack.weight") == 3
    assert Template(text).value("plugins.gang.enablePreemptable") is False
    assert Template(text).value("plugins.sla") is False

"""The page for authors of plugins names every hook and column, and its examples hold."""

import ast
import dataclasses
import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.views import (
    HoldingRows,
    Job,
    NamespacedRows,
    NodeFacts,
    NodeRow,
    Nodes,
    ObjectRow,
    ObjectRows,
    Queue,
    Task,
)
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.plugin import HOOKS
from pumice.framework.registry import load_plugins
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.runner import check, default_scheduler
from pumice.scenarios.scenario import load_scenario
from pumice.testing.conformance import check_plugin
from tests.present import present

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "writing-plugins.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "examples" / "plugins").glob("*.py"))
NAME = re.compile(r"`(\w+)(?:\(\w+\))?`")


def part(heading: Any) -> Any:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return present(found)[1]


def cells(heading: Any) -> Any:
    """Return the first two cells of each row of the table below a heading."""
    rows = [line.split("|")[1:3] for line in part(heading).splitlines() if line.startswith("|")]
    return [(first, second) for first, second in rows[2:]]


def test_the_table_of_hooks_names_every_hook_once() -> None:
    listed = [name for first, _ in cells("Which hook") for name in NAME.findall(first)]
    assert sorted(listed) == sorted(HOOKS)


def columns_of(cls: Any) -> Any:
    return {
        name
        for name, value in vars(cls).items()
        if not name.startswith("_") and (isinstance(value, property) or inspect.isfunction(value))
    }


@pytest.mark.parametrize(
    "cls", [NodeFacts, Nodes, Jobs, Queues, Tasks], ids=lambda cls: cls.__name__
)
def test_the_table_of_columns_names_what_the_classes_have(cls: Any) -> None:
    table = {
        first.strip().strip("`"): set(NAME.findall(second)) for first, second in cells("Columns")
    }
    shared = columns_of(ObjectRows) | {"names", "snapshot"}
    assert table["all"] == shared
    own = columns_of(cls) - shared
    for base in (NamespacedRows, HoldingRows):
        if issubclass(cls, base):
            own |= columns_of(base) - shared
    assert table[cls.__name__] - {"NodeFacts"} == own


@pytest.mark.parametrize("cls", [Task, Job, Queue, NodeRow], ids=lambda cls: cls.__name__)
def test_the_table_of_single_rows_names_what_the_classes_have(cls: Any) -> None:
    table = {
        first.strip().strip("`"): set(NAME.findall(second))
        for first, second in cells("Single rows")
    }
    shared = columns_of(ObjectRow) | {"name", "row"}
    assert table["all"] == shared
    own = set().union(*(columns_of(base) for base in cls.__mro__)) - shared
    own |= {name for name in cls.__slots__ if not name.startswith("_")}
    assert table[cls.__name__] == own


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def only_plugin(path: Any) -> Any:
    (cls,) = load_plugins([str(path)]).values()
    return cls


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
class TestExample:
    def test_imports_nothing_of_pumice_but_its_face(self, path: Any) -> None:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        names |= {
            a.name for each in ast.walk(tree) if isinstance(each, ast.Import) for a in each.names
        }
        assert {name for name in names if name.startswith("pumice")} == {"pumice.plugin"}

    def test_keeps_its_promises(self, path: Any) -> None:
        check_plugin(only_plugin(path))

    def test_its_scenario_holds_whatever_the_seed_and_not_without_it(self, path: Any) -> None:
        scenario = load_scenario(path.with_suffix(".scenario"))
        bare = dataclasses.replace(scenario, conf=without(scenario.conf, only_plugin(path).name))
        make = partial(default_scheduler, plugins=[str(path)])
        kept, broken = (
            [check(dataclasses.replace(each, seed=n), make, CompareOptions()) for n in range(6)]
            for each in (scenario, bare)
        )
        assert not any(kept)
        assert any(broken)


def without(text: Any, name: Any) -> Any:
    conf = yaml.safe_load(text)
    for tier in conf["tiers"]:
        tier["plugins"] = [each for each in tier["plugins"] if each["name"] != name]
    return yaml.safe_dump(conf)


def test_the_first_plugin_of_the_page_is_the_file() -> None:
    found = re.search(r"```python runnable\n(.*?)```", part("A first plugin"), re.DOTALL)
    assert present(found)[1] in (ROOT / "examples" / "plugins" / "gpu_guard.py").read_text(
        encoding="utf-8"
    )


def test_the_hours_of_a_queue_may_span_midnight() -> None:
    cls = only_plugin(ROOT / "examples" / "plugins" / "queue_hours.py")
    wanted = {
        "22-06": {22: 0, 23: 0, 0: 0, 5: 0, 6: 2, 12: 2, 21: 2},
        "6-22": {5: 2, 6: 0, 21: 0, 22: 2},
        "0-24": dict.fromkeys(range(24), 0),
        "9-9": dict.fromkeys(range(24), 0),
        "late": {3: 1},
        "": {3: 1},
    }
    for text, hours in wanted.items():
        for hour, place in hours.items():
            plugin = cls()
            plugin._hour = hour
            assert plugin._place(text) == place, (text, hour)


@pytest.mark.parametrize(("offset", "hour"), [(0.0, 23), (2.0, 1), (-5.5, 18)])
def test_the_hour_is_that_of_the_cycle_in_local_time(offset: Any, hour: Any) -> None:
    plugin = only_plugin(ROOT / "examples" / "plugins" / "queue_hours.py")(offset=offset)
    plugin.on_open(type("Session", (), {"now": 1_768_519_800.0}))  # 2026-01-15T23:30:00Z
    assert plugin._hour == hour

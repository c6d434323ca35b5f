"""From configuration to plugins: fresh instances, what is ignored, who decides."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from pumice.api.conf import parse_conf, read_conf
from pumice.framework.arguments import Fault, arg
from pumice.framework.conf_check import check_conf
from pumice.framework.plugin import Plugin
from pumice.framework.registry import build_tiers, deciding_order, installed_plugins, known_plugins
from pumice.plugins import builtin_plugins


@dataclass(kw_only=True)
class First(Plugin, name="first"):
    """Decides readiness."""

    weight: int = arg("weight", default=1, minimum=0, doc="factor")

    def job_ready(self, job: Any) -> bool:
        return True

    def order_jobs(self, jobs: Any) -> Any:
        return jobs.created


class Second(Plugin, name="second"):
    """Decides readiness too."""

    def job_ready(self, job: Any) -> bool:
        return True


PLUGINS = {"first": First, "second": Second}
ACTIONS = {"allocate": None}


def conf(text: Any) -> Any:
    return parse_conf(text)


TWO_TIERS = """
actions: "allocate"
tiers:
- plugins:
  - name: first
    arguments: {weight: 4}
    enableJobOrder: false
- plugins:
  - name: first
  - name: second
"""


def weight(plugin: Plugin) -> int:
    assert isinstance(plugin, First)
    return plugin.weight


def test_every_entry_gets_a_fresh_instance_with_its_arguments() -> None:
    tiers, problems = build_tiers(conf(TWO_TIERS), PLUGINS)
    assert problems == []
    assert [[entry.plugin.name for entry in tier] for tier in tiers] == [
        ["first"],
        ["first", "second"],
    ]
    assert [weight(tiers[0][0].plugin), weight(tiers[1][0].plugin)] == [4, 1]
    assert build_tiers(conf(TWO_TIERS), PLUGINS)[0][0][0].plugin is not tiers[0][0].plugin


def test_switches_come_with_the_entry() -> None:
    tiers, _ = build_tiers(conf(TWO_TIERS), PLUGINS)
    assert not tiers[0][0].offers("order_jobs")
    assert tiers[1][0].offers("order_jobs")


def test_arguments_that_cannot_be_used_are_reported_and_left_out() -> None:
    text = TWO_TIERS.replace("{weight: 4}", "{weight: much, height: 2}")
    tiers, problems = build_tiers(conf(text), PLUGINS)
    assert weight(tiers[0][0].plugin) == 1
    assert sorted(problem.field for problem in problems) == ["height", "weight"]
    assert {problem.severity for problem in problems} == {"ignored"}


def test_what_a_plugin_says_of_its_own_arguments_is_reported_with_the_line() -> None:
    @dataclass(kw_only=True)
    class Choosy(Plugin, name="choosy"):
        """Knows what it cannot use."""

        word: str = arg("word", default="", doc="a word")

        def faults(self) -> Iterator[Any]:
            if self.word:
                yield Fault("word", "a better word", self.word, "ask somebody")

    text = (
        "actions: allocate\ntiers:\n- plugins:\n  - name: choosy\n    arguments:\n      word: it\n"
    )
    (problem,) = check_conf(conf(text), {"choosy": Choosy}, ACTIONS)
    assert str(problem) == "line 6: word: expected a better word, got 'it' (ask somebody)"
    assert problem.severity == "ignored"
    assert check_conf(conf(text.replace("it", "''")), {"choosy": Choosy}, ACTIONS) == []


def test_what_stands_there_twice_is_odd() -> None:
    text = TWO_TIERS.replace('"allocate"', '"allocate, allocate"')
    action, plugin = check_conf(conf(text), PLUGINS, ACTIONS)
    assert {action.severity, plugin.severity} == {"odd"}
    assert str(action).startswith(
        "line 2: actions: expected each action once, got allocate 2 times"
    )
    assert str(plugin) == (
        "line 9: tiers[1].plugins[0]: expected each plugin once, got 'first' "
        "(also on line 5; it is asked twice)"
    )


def test_the_place_of_a_plugin_counts_entries_that_cannot_be_read() -> None:
    text = TWO_TIERS.replace("  - name: first\n  - name: second", "  - oops\n  - name: secund")
    problems = check_conf(read_conf(text), PLUGINS, ACTIONS)
    assert [problem.field for problem in problems] == ["tiers[1].plugins[0]", "tiers[1].plugins[1]"]


def no_plugin() -> None:
    raise ImportError("half a distribution")


def test_an_installed_plugin_that_cannot_be_loaded_hurts_only_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = [
        SimpleNamespace(name="good", value="a:Good", load=lambda: First),
        SimpleNamespace(name="bad", value="b:Bad", load=no_plugin),
        SimpleNamespace(name="odd", value="c:odd", load=lambda: "a text"),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda group: entries)
    found = installed_plugins()
    assert found["good"] is First
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: {}\n"
    assert check_conf(conf(text.format("good")), found, ACTIONS) == []
    (problem,) = check_conf(conf(text.format("bad")), found, ACTIONS)
    assert problem.severity == "error"
    assert "b:Bad cannot be loaded: ImportError: half a distribution" in problem.hint
    (problem,) = check_conf(conf(text.format("odd")), found, ACTIONS)
    assert "not a subclass" in problem.hint


def test_the_deciding_order_names_plugins_tier_by_tier() -> None:
    rows = {hook: names for hook, _, _, names in deciding_order(conf(TWO_TIERS), PLUGINS)}
    assert rows == {"job_ready": ["first", "first + second"], "order_jobs": ["first"]}


def test_hooks_that_depend_on_the_tree_of_queues_are_shown_as_configured() -> None:
    class Tree(Plugin, name="tree"):
        """Has a hook for trees."""

        hierarchy_hooks = {"overused": True}  # noqa: RUF012

        def overused(self, queue: Any) -> bool:
            return False

    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: tree\n    enableHierarchy: {}\n'
    for switch, wanted in (("true", ["overused"]), ("false", [])):
        rows = deciding_order(conf(text.format(switch)), {"tree": Tree})
        assert wanted == [row[0] for row in rows]


def test_plugins_of_other_distributions_are_found_by_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = SimpleNamespace(name="second", load=lambda: Second)
    asked = []

    def entry_points(*, group: Any) -> Any:
        asked.append(group)
        return [entry]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    assert installed_plugins() == {"second": Second}
    assert asked == ["pumice.plugins"]


def test_a_plugin_is_loaded_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load() -> type[Plugin]:
        loaded.append("second")
        return Second

    entry = SimpleNamespace(name="second", load=load)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    known = known_plugins({"first": First}, {"mine": Second})
    assert [*known] == ["first", "second", "mine"]
    assert loaded == []
    assert known["second"] is known["second"] is Second
    assert loaded == ["second"]


def test_later_plugins_replace_earlier_ones_of_the_same_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = SimpleNamespace(name="first", load=lambda: Second)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    assert known_plugins({"first": First}, {})["first"] is Second
    assert known_plugins({}, {"first": First})["first"] is First
    assert len(known_plugins({"first": First}, {"first": First})) == 1


def test_every_built_in_plugin_has_the_name_it_is_listed_by() -> None:
    found = {name: (cls.name, cls.trouble) for name, cls in builtin_plugins().items()}
    assert found == {name: (name, "") for name in found}


def test_a_scheduler_imports_only_the_plugins_that_it_is_to_use() -> None:
    script = (
        "import sys\n"
        "from pumice.api.conf import parse_conf\n"
        "from pumice.scheduler import Scheduler\n"
        "Scheduler(parse_conf('actions: allocate\\ntiers:\\n- plugins:\\n  - name: gang'))\n"
        "print([name for name in sys.modules if name.startswith('pumice.plugins.')])\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout == "['pumice.plugins.gang']\n"

"""Plugins that are kept from cycle to cycle begin each as if they were just made."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pumice.framework.arguments import arg
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.registry import KeptPlugins


@dataclass(kw_only=True)
class Careless(Plugin, name="careless"):
    """Changes what it was given."""

    words: Any = arg("words", default="", doc="anything")


def kept_of(plugin: Plugin) -> KeptPlugins:
    kept = KeptPlugins.of([[Enabled(plugin, {})]])
    assert kept is not None
    return kept


def spoil(value: Any) -> None:
    """Change a value at every depth at which it can be changed."""
    if isinstance(value, dict):
        for inner in value.values():
            spoil(inner)
        value["late"] = 1
    elif isinstance(value, list | set):
        for inner in value:
            spoil(inner)
        value.append("late") if isinstance(value, list) else value.add("late")


@pytest.mark.parametrize(
    "words",
    [
        7,
        "text",
        (1, "two", frozenset({3.0, None})),
        [],
        [1, "two", (True, None)],
        [[1], [2, [3]]],
        [(1, [2])],
        [{"a": 1}, "b"],
        {"a": 1, "b": "two"},
        {"a": [1], "b": {"c": []}},
        {1, 2},
    ],
)
def test_arguments_are_as_they_were_given_in_every_cycle(words: Any) -> None:
    plugin: Any = Careless(words=words)
    wanted = repr(words)
    kept = kept_of(plugin)
    for _ in range(3):
        kept.renew()
        assert repr(plugin.words) == wanted
        spoil(plugin.words)
        plugin.noted = "in this cycle"
    kept.renew()
    assert not hasattr(plugin, "noted")


@pytest.mark.parametrize(
    ("state", "is_kept"),
    [
        (3, True),
        ("text", True),
        (None, True),
        ((1, (2, "three")), True),
        (frozenset({1}), True),
        ([], False),
        ({}, False),
        ((1, []), False),
        (object(), False),
    ],
)
def test_a_plugin_that_begins_with_a_state_of_its_own_is_not_kept(
    state: Any, is_kept: bool
) -> None:
    plugin: Any = Careless(words=[[1]])
    plugin.state = state
    plain = Enabled(Careless(), {})
    for tiers in ([[Enabled(plugin, {})]], [[plain], [plain, Enabled(plugin, {})]]):
        assert (KeptPlugins.of(tiers) is not None) == is_kept


def test_failures_of_the_last_cycle_are_forgotten() -> None:
    class Failing(Plugin, name="failing"):
        def on_open(self, ssn: Any) -> None:
            raise ValueError

    kept = kept_of(Failing())
    kept.hooks[Plugin.on_open](SimpleNamespace())
    assert kept.hooks.failures.errors
    kept.renew()
    assert not kept.hooks.failures.errors

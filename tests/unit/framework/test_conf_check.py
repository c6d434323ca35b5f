"""The check of a configuration: every kind of problem, by line."""

from typing import Any

import pytest

from pumice.actions import ACTIONS
from pumice.api.conf import read_conf
from pumice.framework.conf_check import check_conf, errors_of
from pumice.plugins import builtin_plugins

GOOD = """\
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: proportion
  - name: nodeorder
    arguments:
      leastrequested.weight: 2
"""


def problems(text: str) -> list[str]:
    found = check_conf(read_conf(text), builtin_plugins(), ACTIONS)
    return [str(each) for each in found]


def test_a_good_configuration_has_none() -> None:
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("weight: 2", "weight: much", ["line 10: leastrequested.weight: expected"]),
        (
            "name: gang",
            "{name: reservation, arguments: {reservation.enforceWalltime: true}}",
            ["line 5: reservation.enforceWalltime: expected the action shuffle beside it"],
        ),
        ("name: gang", "name: gong", ["line 5: tiers[0].plugins[1]: unknown plugin 'gong'"]),
        (
            "name: gang",
            "name: priority",
            ["line 5: tiers[0].plugins[1]: expected each plugin once"],
        ),
        (
            "name: gang",
            "name: capacity",
            ["line 7: tiers[1].plugins[0]: expected one plugin that limits queues, got"],
        ),
        (
            "leastrequested.weight: 2",
            "predicate.GPUSharingEnable: true",
            ["line 10: predicate.GPUSharingEnable: "],
        ),
        (
            "leastrequested.weight: 2",
            "nodeorder.strange: true",
            ["line 10: nodeorder.strange: unknown argument"],
        ),
    ],
)
def test_each_problem_is_named_with_its_line(old: str, new: str, wanted: Any) -> None:
    found = problems(GOOD.replace(old, new))
    assert len(found) == len(wanted)
    for line, start in zip(found, wanted, strict=True):
        assert line.startswith(start), line


def test_an_argument_of_another_plugin_is_named_with_it() -> None:
    (found,) = problems(GOOD.replace("leastrequested.weight: 2", "x.NodeAffinityEnable: true"))
    assert found.endswith(
        "it is an argument of the plugin predicates: 'predicate.NodeAffinityEnable'"
    )
    (found,) = problems(GOOD.replace("leastrequested.weight: 2", "NodeAffinityEnable: true"))
    assert "it is an argument of" not in found, "only a name with a prefix may have moved"


def test_further_limiting_plugins_are_odd_and_the_same_twice_is_not() -> None:
    text = GOOD.replace("name: gang", "name: proportion")
    assert not [each for each in problems(text) if "limits queues" in each]


@pytest.mark.parametrize(
    ("action", "arguments", "wanted"),
    [
        ("allocate", "{predicateErrorCacheEnable: maybe}", "line 13: predicateErrorCacheEnable:"),
        ("allocate", "{strange: 1}", "line 13: strange:"),
        ("backfill", "{strange: 1}", "line 13: strange:"),
        ("allocate", "{predicateErrorCacheEnable: true}", None),
    ],
)
def test_arguments_of_actions_are_checked(action: str, arguments: str, wanted: Any) -> None:
    text = GOOD + f"configurations:\n- name: {action}\n  arguments: {arguments}\n"
    found = problems(text)
    assert [each.startswith(wanted) for each in found] == ([] if wanted is None else [True])


def test_problems_are_sorted_by_line_and_errors_are_told_apart() -> None:
    text = GOOD.replace("weight: 2", "weight: much").replace("name: gang", "name: gong")
    text = text.replace('"allocate"', '"allocate, alocate"')
    found = check_conf(read_conf(text), builtin_plugins(), ACTIONS)
    assert [each.line for each in found] == [1, 5, 10]
    assert [each.line for each in errors_of(found)] == [1, 5]


def test_guards_are_looked_at_only_without_errors() -> None:
    text = GOOD.replace("name: gang", "name: conformance").replace("allocate", "allocate, reclaim")
    assert any("can choose victims without conformance" in each for each in problems(text))
    text = text.replace("name: nodeorder", "name: nodeordor")
    assert not any("can choose victims without conformance" in each for each in problems(text))


def test_a_setting_without_effect_names_who_does_not_read_it() -> None:
    text = GOOD.replace("name: gang", "{name: gang, arguments: {x: 1}}")
    text = text.replace("leastrequested.weight: 2", "qwerty: 2")
    text += "configurations:\n- name: backfill\n  arguments: {y: 1}\n"
    gang, nodeorder, backfill = problems(text)
    assert gang.endswith("; gang does not read it; it has no arguments")
    assert "; nodeorder does not read it; its arguments: leastrequested.weight, " in nodeorder
    assert "; the action backfill does not read it; " in backfill

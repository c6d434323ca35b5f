"""The YAML beneath the configuration: types, tags, anchors, and faults with their lines."""

from textwrap import dedent
from typing import Any

import pytest

from pumice.api.conf import parse_conf, read_conf
from pumice.api.yaml_text import plain_value

FAULTS = {
    "an argument twice": (
        "actions: a\ntiers:\n- plugins:\n  - name: p\n    arguments:\n      w: 1\n      w: 2\n",
        7,
        "tiers[0].plugins[0].arguments",
    ),
    "a key twice deep inside": (
        "actions: a\ntiers:\n- plugins:\n  - name: p\n    arguments: {x: {y: {z: 1, z: 2}}}\n",
        5,
        "tiers[0].plugins[0].arguments.x.y",
    ),
    "a key that is a list": ("actions: a\nmetrics:\n  ? [a]\n  : b\n", 3, "metrics"),
    "a tag nobody knows": (
        "actions: a\nconfigurations:\n- name: a\n  arguments: {x: !secret y}\n",
        4,
        "configurations[0].arguments.x",
    ),
    "a tag that lies": (
        "actions: a\nconfigurations:\n- name: a\n  arguments: {x: !!int y}\n",
        4,
        "configurations[0].arguments.x",
    ),
    "no YAML": ("actions: a\ntiers: [\n", 3, ""),
    "an anchor that does not exist": ("actions: a\ntiers: *x\n", 2, ""),
    "an anchor inside itself": ("actions: a\ntiers: &x\n- *x\n", 2, ""),
    "a second document": ("actions: a\n---\nactions: b\n", 2, ""),
    "a control character": ("actions: a\nmetrics: \x00\n", 2, ""),
    "nesting without end in sight": (f"actions: a\ntiers: {'[' * 60}{']' * 60}\n", 2, ""),
    "nesting beyond the reader": ("[" * 5000 + "]" * 5000, 1, ""),
}


@pytest.mark.parametrize(("text", "line", "path"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_reported_once_with_its_place(text: Any, line: Any, path: Any) -> None:
    problems = read_conf(text).problems
    assert [(p.line, p.path, p.severity) for p in problems] == [(line, path, "error")]


def test_a_fault_in_a_shared_part_is_reported_once() -> None:
    problems = read_conf(
        "actions: a\nconfigurations:\n- name: a\n  arguments: &x {y: 1, y: 2}\n"
        "- name: b\n  arguments: *x\n"
    ).problems
    assert [p.line for p in problems] == [4]


def test_anchors_and_merge_keys_are_followed_and_own_keys_win() -> None:
    conf = parse_conf(
        dedent("""\
        actions: allocate
        tiers:
        - plugins:
          - &base {name: one, enableJobOrder: false, enableTaskOrder: false}
          - {<<: *base, name: two, enableTaskOrder: true}
        """)
    )
    two = conf.tiers[0].plugins[1]
    assert two.name == "two"
    assert (two.switches["enableJobOrder"], two.switches["enableTaskOrder"]) == (False, True)


def test_of_several_merged_mappings_the_first_wins() -> None:
    conf = parse_conf(
        "actions: a\nconfigurations:\n- {name: a, arguments: &a {x: 1}}\n"
        "- {name: b, arguments: &b {x: 2, y: 2}}\n- {name: c, arguments: {<<: [*a, *b]}}\n"
    )
    assert conf.configurations["c"] == {"x": 1, "y": 2}


def test_an_alias_used_a_billion_times_costs_nothing() -> None:
    arguments = "a0: &a0 [x]\n" + "".join(
        f"    a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(30)
    )
    conf = f"actions: a\nconfigurations:\n- name: a\n  arguments:\n    {arguments}"
    assert read_conf(conf).problems == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("yes", True),
        ("Off", False),
        ("n", False),
        ("5", 5),
        ("+5", 5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b11", 3),
        ("-0o17", -15),
        ("017", 15),
        ("08", 8.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), float(2**63)),
        ("-.inf", float("-inf")),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("10:00-21:00", "10:00-21:00"),
        ("5m", "5m"),
        ("-", "-"),
        ("yEs", "yEs"),
    ],
)
def test_unquoted_scalars_get_the_type_that_volcanos_reader_gives_them(
    text: Any, value: Any
) -> None:
    assert (plain_value(text), type(plain_value(text))) == (value, type(value))


def test_an_explicit_tag_decides_the_type() -> None:
    conf = parse_conf(
        "actions: a\nconfigurations:\n- name: a\n"
        "  arguments: {s: !!str 5, i: !!int '5', f: !!float 5, b: !!bool 'yes', n: !!null ''}\n"
    )
    arguments = conf.configurations["a"]
    assert arguments == {"s": "5", "i": 5, "f": 5.0, "b": True, "n": None}
    assert type(arguments["f"]) is float

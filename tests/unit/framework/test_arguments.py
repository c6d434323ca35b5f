"""Declared arguments: what binds, what is ignored, and the messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.arguments import (
    Amount,
    ArgumentRow,
    Duration,
    arg,
    arg_pattern,
    bind_arguments,
    describe_arguments,
)

NAN, INFINITE = float("nan"), float("inf")


@dataclass(kw_only=True)
class Thresholds:
    cpu: int = arg("cpu", default=80, minimum=0, maximum=100, doc="percent")
    memory: int = arg("mem", default=80)


@dataclass(kw_only=True)
class Policy:
    """One field of each type."""

    weight: int = arg("policy.weight", default=1, minimum=0, doc="factor of the score")
    factor: float = arg("policy.factor", default=1.2, minimum=1)
    strict: bool = arg("policy.strict", default=True)
    mode: str = arg("policy.mode", default="pack", choices=("pack", "spread"))
    period: Duration = arg("policy.period", default=Duration(60.0), above=0)
    deadline: Duration | None = arg("policy.deadline", default=None, above=0)
    spare: Amount = arg("policy.spare", default=Amount(0.25))
    resources: list[str] = arg("policy.resources", default_factory=list)
    each: dict[str, int] = arg_pattern("policy.resources.*", minimum=0, doc="weight of one")
    zones: dict[str, str] = arg_pattern("policy.zone.*")
    thresholds: Thresholds = arg("policy.thresholds", default_factory=Thresholds)
    raw: Any = arg("policy.raw", default=None)
    table: Mapping[str, Any] = arg("policy.table", default_factory=dict)
    rows: list[Any] = arg("policy.rows", default_factory=list)
    noted: Annotated[int, "a note"] = arg("policy.noted", default=7)
    computed_: int = field(default=0)


def bound(**arguments: Any) -> Any:
    """Bind arguments without their prefix and expect no problem; return the one field."""
    fields, problems = bind_arguments(Policy, prefixed(arguments))
    assert [str(problem) for problem in problems] == []
    return next(iter(fields.values()))


def ignored(**arguments: Any) -> Any:
    """Bind one unusable argument and return its problem; the field must be left alone."""
    fields, problems = bind_arguments(Policy, prefixed(arguments))
    assert fields == {}
    assert [problem.severity for problem in problems] == ["ignored"]
    return problems[0]


def prefixed(arguments: Any) -> Any:
    return {f"policy.{key}": value for key, value in arguments.items()}


def test_fields_not_given_are_left_to_their_defaults() -> None:
    assert bind_arguments(Policy, {}) == ({}, [])


def test_bound_fields_construct_the_class() -> None:
    fields, _ = bind_arguments(Policy, {"policy.weight": 5, "policy.mode": "spread"})
    policy = Policy(**fields)
    assert (policy.weight, policy.mode, policy.factor) == (5, "spread", 1.2)


BOUND: list[tuple[str, Any, list[Any]]] = [
    ("weight", 5, [5]),
    ("weight", 0, [0]),
    ("factor", 2.0, [2, 2.0]),
    ("strict", True, [True, "1", "t", "T", "true", "TRUE", "True"]),
    ("strict", False, [False, "0", "f", "F", "false", "FALSE", "False"]),
    ("period", 5400.0, ["1h30m"]),
    ("deadline", 180.0, ["3m"]),
    ("noted", 3, [3]),
    ("spare", 0.5, ["500m", 0.5]),
    ("spare", 1024.0, ["1Ki", 1024]),
    ("resources", ["a", "b", "c"], ["a, b,,c ,", ["a", "b", "c"]]),
    ("raw", {"a": [None]}, [{"a": [None]}]),
    ("table", {"cpu": {"weight": 2}}, [{"cpu": {"weight": 2}}]),
    ("rows", [{"name": "x"}], [[{"name": "x"}]]),
    ("thresholds", Thresholds(cpu=70, memory=80), [{"cpu": 70}]),
]


@pytest.mark.parametrize(("name", "wanted", "values"), BOUND)
def test_a_value_of_its_type_is_bound(name: str, wanted: Any, values: list[Any]) -> None:
    for value in values:
        found = bound(**{name: value})
        assert (found, type(found)) == (wanted, type(wanted))


IGNORED: list[tuple[str, str, str, list[Any]]] = [
    ("weight", "integer", "the default 1 is kept", ["5", 5.0, True, None, [5], {"a": 5}]),
    ("weight", "integer >= 0", "the default 1 is kept", [-1]),
    ("factor", "number", "the default 1.2 is kept", ["2.0", True, None, NAN, INFINITE]),
    ("strict", "true or false", "the default true is kept", [1, 0, "yes", "tRUE", "", None, []]),
    ("mode", "text", "the default pack is kept", [5, True, None, ["pack"]]),
    ("mode", "text one of pack, spread", "the default pack is kept", ["scatter"]),
    ("period", "duration", "the default 60s is kept", ["bad", 10, "10", None]),
    ("deadline", "duration", "the default none is kept", ["bad"]),
    ("deadline", "duration > 0", "the default none is kept", ["0s", "-1m"]),
    ("spare", "quantity", "the default 0.25 is kept", ["much", True, None, [1]]),
    ("resources", "names, comma separated", "the default none is kept", [5, ["a", 5], {"a": 1}]),
    ("table", "mapping", "", [[1]]),
    ("rows", "list", "", [{"a": 1}]),
    ("thresholds", "mapping", "", [5]),
]


@pytest.mark.parametrize(("name", "wanted", "hint", "values"), IGNORED)
def test_anything_else_is_ignored_and_the_default_stays(
    name: str, wanted: str, hint: str, values: list[Any]
) -> None:
    for value in values:
        problem = ignored(**{name: value})
        assert problem.wanted == wanted
        assert hint in problem.hint


def test_what_was_found_is_named_with_what_was_expected() -> None:
    assert ignored(weight=-1).message == "expected integer >= 0, got -1"
    assert ignored(table=[1]).message == "expected mapping, got a list"
    assert ignored(rows={"a": 1}).message == "expected list, got a mapping"


def test_a_fallback_takes_the_place_of_a_bad_value_but_not_of_a_wrong_type() -> None:
    @dataclass
    class Limits:
        fixed: int = arg("fixed", default=1, minimum=0, fallback=9)
        clamped: int = arg("clamped", default=1, maximum=10, fallback=lambda _: 10)
        none: int | None = arg("none", default=1, minimum=0, fallback=None)

    fields, problems = bind_arguments(Limits, {"fixed": -1, "clamped": 50, "none": -1})
    assert fields == {"fixed": 9, "clamped": 10, "none": None}
    assert [problem.hint for problem in problems] == ["9 is used", "10 is used", "none is used"]
    fields, problems = bind_arguments(Limits, {"fixed": "5"})
    assert fields == {}
    assert problems[0].hint == "the default 1 is kept; write it without quotes"


def test_an_annotation_that_no_value_can_have_is_refused_by_name() -> None:
    @dataclass
    class Odd:
        odd: complex = arg("odd.key", default=1j)

    with pytest.raises(TypeError, match=r"odd\.key"):
        bind_arguments(Odd, {})


class TestPatterns:
    def test_every_key_with_the_prefix_is_collected_by_its_rest(self) -> None:
        fields, problems = bind_arguments(
            Policy,
            {
                "policy.resources.nvidia.com/gpu": 8,
                "policy.resources.example.com/foo": 1,
                "policy.resources": "nvidia.com/gpu",
                "policy.zone.rz1": "10:00-21:00",
            },
        )
        assert problems == []
        assert fields == {
            "each": {"nvidia.com/gpu": 8, "example.com/foo": 1},
            "resources": ["nvidia.com/gpu"],
            "zones": {"rz1": "10:00-21:00"},
        }

    def test_an_unusable_value_is_left_out_alone(self) -> None:
        fields, problems = bind_arguments(
            Policy, {"policy.resources.a": "8", "policy.resources.b": -1, "policy.resources.c": 3}
        )
        assert fields == {"each": {"c": 3}}
        assert [problem.path for problem in problems] == [
            "policy.resources.a",
            "policy.resources.b",
        ]
        assert problems[0].hint == "left out; write it without quotes"

    def test_the_prefix_alone_is_unknown(self) -> None:
        assert bind_arguments(Policy, {"policy.zone.": "x"})[0] == {}

    def test_the_longest_pattern_and_before_it_the_exact_key_win(self) -> None:
        @dataclass
        class Nested:
            wide: dict[str, int] = arg_pattern("a.*")
            narrow: dict[str, int] = arg_pattern("a.b.*")
            exact: int = arg("a.b.c", default=0)

        fields, _ = bind_arguments(Nested, {"a.x": 1, "a.b.x": 2, "a.b.c": 3})
        assert fields == {"wide": {"x": 1}, "narrow": {"x": 2}, "exact": 3}


class TestSections:
    def test_its_problems_carry_the_whole_path_and_the_line_of_the_section(self) -> None:
        fields, problems = bind_arguments(
            Policy,
            {"policy.thresholds": {"cpu": "70", "memory": 5}},
            {"policy.thresholds": 12},
            path="policy",
        )
        assert fields == {"thresholds": Thresholds()}
        assert [(problem.line, problem.path) for problem in problems] == [
            (12, "policy.policy.thresholds.cpu"),
            (12, "policy.policy.thresholds.memory"),
        ]


class TestProblems:
    def test_an_unknown_key_suggests_the_nearest(self) -> None:
        problem = ignored(wieght=5)
        assert problem.found == "policy.wieght"
        assert problem.hint == "did you mean 'policy.weight'?"

    def test_a_stranger_gets_no_suggestion(self) -> None:
        fields, problems = bind_arguments(Policy, {"zzz": 1})
        assert (fields, [problem.hint for problem in problems]) == ({}, [""])

    def test_a_field_that_is_no_argument_cannot_be_set(self) -> None:
        assert ignored(computed_=1).wanted == "a known argument"

    def test_a_text_that_yaml_takes_for_a_number_wants_quotes(self) -> None:
        assert "write it in quotes" in ignored(mode=5).hint

    def test_every_problem_is_reported_with_its_line_and_the_rest_is_bound(self) -> None:
        conf = parse_conf(
            "actions: a\ntiers:\n- plugins:\n  - name: policy\n    arguments:\n"
            '      policy.weight: "5"\n      policy.mod: pack\n      policy.factor: 2\n'
        )
        plugin = conf.tiers[0].plugins[0]
        fields, problems = bind_arguments(
            Policy, plugin.arguments, plugin.argument_lines, path=plugin.name
        )
        assert fields == {"factor": 2.0}
        weight, mode = (str(problem) for problem in problems)
        assert weight == (
            "line 6: policy.policy.weight: expected integer, got '5'"
            " (the default 1 is kept; write it without quotes)"
        )
        assert mode == (
            "line 7: policy.policy.mod: unknown argument 'policy.mod'; did you mean 'policy.mode'?"
        )


class TestDeclaring:
    def test_an_argument_needs_a_default(self) -> None:
        with pytest.raises(TypeError, match=r"'x\.y' needs either a default"):
            arg("x.y")

    def test_not_two_of_them(self) -> None:
        with pytest.raises(TypeError, match="needs either"):
            arg("x.y", default=1, default_factory=int)

    @pytest.mark.parametrize("key", ["x.y", "x.*.y", "*x*"])
    def test_a_pattern_ends_in_its_only_star(self, key: str) -> None:
        with pytest.raises(TypeError, match="exactly one star"):
            arg_pattern(key)

    def test_a_class_without_arguments_need_not_be_a_dataclass(self) -> None:
        fields, problems = bind_arguments(object, {"x": 1})
        assert (fields, len(problems)) == ({}, 1)
        assert describe_arguments(object) == []

    def test_arguments_without_the_decorator_are_refused(self) -> None:
        class Forgetful:
            weight: int = arg("weight", default=1)

        with pytest.raises(TypeError, match="Forgetful declares arguments but is not a dataclass"):
            bind_arguments(Forgetful, {})

    def test_arguments_are_inherited(self) -> None:
        @dataclass(kw_only=True)
        class Base:
            weight: int = arg("weight", default=1)

        @dataclass(kw_only=True)
        class Derived(Base):
            extra: int = arg("extra", default=2)

        assert bind_arguments(Derived, {"weight": 3, "extra": 4}) == (
            {"weight": 3, "extra": 4},
            [],
        )

    def test_the_description_has_a_row_for_each_argument_in_order(self) -> None:
        rows = {row.key: row for row in describe_arguments(Policy)}
        assert list(rows)[:3] == ["policy.weight", "policy.factor", "policy.strict"]
        assert rows["policy.weight"] == ArgumentRow(
            "policy.weight", "integer", "1", ">= 0", "factor of the score"
        )
        assert rows["policy.strict"].default == "true"
        assert rows["policy.mode"].bounds == "one of pack, spread"
        assert (rows["policy.period"].default, rows["policy.deadline"].default) == ("60s", "none")
        assert rows["policy.resources.*"].default == ""
        assert rows["policy.table"].default == "none"
        assert rows["policy.thresholds: cpu"].bounds == ">= 0, <= 100"
        assert "computed_" not in str(rows)

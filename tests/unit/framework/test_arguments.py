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


class TestTypes:
    def test_an_integer_is_a_yaml_integer(self) -> None:
        assert bound(weight=5) == 5

    @pytest.mark.parametrize("value", ["5", 5.0, True, None, [5], {"a": 5}])
    def test_anything_else_is_no_integer(self, value: Any) -> None:
        problem = ignored(weight=value)
        assert problem.wanted == "integer"
        assert "the default 1 is kept" in problem.hint

    @pytest.mark.parametrize("value", [2, 2.0])
    def test_a_number_takes_integers_too(self, value: float) -> None:
        assert (bound(factor=value), type(bound(factor=value))) == (2.0, float)

    @pytest.mark.parametrize("value", ["2.0", True, None, float("nan"), float("inf")])
    def test_anything_else_is_no_number(self, value: Any) -> None:
        assert "the default 1.2 is kept" in ignored(factor=value).hint

    @pytest.mark.parametrize("value", [True, "1", "t", "T", "true", "TRUE", "True"])
    def test_true_may_be_quoted(self, value: Any) -> None:
        assert bound(strict=value) is True

    @pytest.mark.parametrize("value", [False, "0", "f", "F", "false", "FALSE", "False"])
    def test_false_may_be_quoted(self, value: Any) -> None:
        assert bound(strict=value) is False

    @pytest.mark.parametrize("value", [1, 0, "yes", "tRUE", "", None, []])
    def test_anything_else_is_no_boolean(self, value: Any) -> None:
        assert "the default true is kept" in ignored(strict=value).hint

    @pytest.mark.parametrize("value", [5, True, None, ["pack"]])
    def test_a_text_must_be_a_text(self, value: Any) -> None:
        assert "the default pack is kept" in ignored(mode=value).hint

    def test_a_duration_is_seconds(self) -> None:
        assert bound(period="1h30m") == 5400.0

    @pytest.mark.parametrize("value", ["bad", 10, "10", None])
    def test_anything_else_is_no_duration(self, value: Any) -> None:
        assert "the default 60s is kept" in ignored(period=value).hint

    def test_an_optional_field_binds_like_its_type(self) -> None:
        assert bound(deadline="3m") == 180.0
        assert "the default none is kept" in ignored(deadline="bad").hint

    def test_an_annotated_field_binds_like_its_type(self) -> None:
        assert bound(noted=3) == 3

    @pytest.mark.parametrize(("value", "amount"), [("500m", 0.5), ("1Ki", 1024.0), (2, 2.0)])
    def test_a_quantity_is_whole_units(self, value: Any, amount: float) -> None:
        assert bound(spare=value) == amount

    @pytest.mark.parametrize("value", ["much", True, None, [1]])
    def test_anything_else_is_no_quantity(self, value: Any) -> None:
        assert "the default 0.25 is kept" in ignored(spare=value).hint

    @pytest.mark.parametrize("value", ["a, b,,c ,", ["a", "b", "c"]])
    def test_names_are_separated_by_commas_or_a_list(self, value: Any) -> None:
        assert bound(resources=value) == ["a", "b", "c"]

    @pytest.mark.parametrize("value", [5, ["a", 5], {"a": 1}])
    def test_anything_else_is_no_list_of_names(self, value: Any) -> None:
        assert "the default none is kept" in ignored(resources=value).hint

    @pytest.mark.parametrize("value", [None, 5, "x", [1], {"a": 1}])
    def test_a_raw_argument_takes_anything(self, value: Any) -> None:
        assert bound(raw=value) == value

    def test_mappings_and_lists_pass_as_they_are(self) -> None:
        assert bound(table={"cpu": {"weight": 2}}) == {"cpu": {"weight": 2}}
        assert bound(rows=[{"name": "x"}]) == [{"name": "x"}]

    def test_mappings_and_lists_are_not_taken_for_each_other(self) -> None:
        assert ignored(table=[1]).message == "expected mapping, got a list"
        assert ignored(rows={"a": 1}).message == "expected list, got a mapping"

    def test_an_annotation_that_no_value_can_have_is_refused_by_name(self) -> None:
        @dataclass
        class Odd:
            odd: complex = arg("odd.key", default=1j)

        with pytest.raises(TypeError, match=r"odd\.key"):
            bind_arguments(Odd, {})


class TestBounds:
    @pytest.mark.parametrize("value", [0, 1, 10**6])
    def test_the_minimum_itself_is_allowed(self, value: Any) -> None:
        assert bound(weight=value) == value

    def test_below_the_minimum_the_default_stays(self) -> None:
        problem = ignored(weight=-1)
        assert problem.message == "expected integer >= 0, got -1"
        assert problem.hint == "the default 1 is kept"

    @pytest.mark.parametrize("value", ["0s", "-1m"])
    def test_above_excludes_the_bound_itself(self, value: str) -> None:
        assert ignored(deadline=value).wanted == "duration > 0"

    def test_a_value_outside_the_choices_is_ignored(self) -> None:
        assert ignored(mode="scatter").wanted == "text one of pack, spread"

    def test_a_fallback_takes_the_place_of_a_bad_value(self) -> None:
        @dataclass
        class Limits:
            fixed: int = arg("fixed", default=1, minimum=0, fallback=9)
            clamped: int = arg("clamped", default=1, maximum=10, fallback=lambda _: 10)
            none: int | None = arg("none", default=1, minimum=0, fallback=None)

        fields, problems = bind_arguments(Limits, {"fixed": -1, "clamped": 50, "none": -1})
        assert fields == {"fixed": 9, "clamped": 10, "none": None}
        assert [problem.hint for problem in problems] == [
            "9 is used",
            "10 is used",
            "none is used",
        ]

    def test_a_fallback_is_not_for_a_wrong_type(self) -> None:
        @dataclass
        class Limits:
            fixed: int = arg("fixed", default=1, minimum=0, fallback=9)

        fields, problems = bind_arguments(Limits, {"fixed": "5"})
        assert fields == {}
        assert problems[0].hint == "the default 1 is kept; write it without quotes"


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
    def test_a_mapping_binds_to_a_dataclass_of_its_own(self) -> None:
        assert bound(thresholds={"cpu": 70}) == Thresholds(cpu=70, memory=80)

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

    def test_what_is_no_mapping_is_ignored(self) -> None:
        assert ignored(thresholds=5).wanted == "mapping"


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

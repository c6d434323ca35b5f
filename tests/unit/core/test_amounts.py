"""Resource lists as values: what is not given, the step, and one row for each question."""

import math
from typing import Any

import pytest

from pumice.core.amounts import INFINITY, ZERO, Amounts

GPU, FPGA = "example.com/gpu", "example.com/fpga"


def of(cpu: Any = 0.0, memory: Any = 0.0, **scalars: Any) -> Any:
    names = {"gpu": GPU, "fpga": FPGA, "pods": "pods"}
    return Amounts(
        {"cpu": cpu, "memory": memory, **{names[name]: n for name, n in scalars.items()}}
    )


def test_a_resource_list_is_read_into_milli_units_bytes_and_pods() -> None:
    read = Amounts.read({"cpu": "1500m", "memory": "2Ki", "pods": "7", GPU: 2, "count/pods": "9"})
    assert Amounts({"cpu": 1500, "memory": 2048, "pods": 7, GPU: 2000}) == read


def test_cpu_and_memory_are_always_there_and_scalars_only_if_given() -> None:
    amounts = of(gpu=0)
    assert [name in amounts for name in ("cpu", "memory", GPU, FPGA)] == [True, True, True, False]
    assert amounts[FPGA] == 0.0


def test_equal_lists_are_equal_values() -> None:
    assert of(1, 2, gpu=3) == of(1, 2, gpu=3)
    assert hash(of(1, 2, gpu=3)) == hash(of(1, 2, gpu=3))
    assert of() != of(gpu=0)


def test_text_names_basic_resources_first_and_spells_the_largest_numbers() -> None:
    assert str(of(2000, 4096, gpu=1, fpga=2)) == (
        "cpu 2000.00, memory 4096.00, example.com/fpga 2.00, example.com/gpu 1.00"
    )
    assert str(of(math.inf, 1.7976931348623157e308, gpu=2.0**63)) == (
        "cpu maxFloat, memory maxFloat, example.com/gpu maxInt"
    )


# left, right, missing: below, fits, below_somewhere, fits_somewhere
COMPARED = {
    "nothing": (of(), of(), ZERO, (False, True, False, True)),
    "less of all": (of(1, 1, gpu=1), of(2, 2, gpu=2), ZERO, (True, True, True, True)),
    "equal within the step": (of(1.05, 1), of(1, 1), ZERO, (False, True, False, True)),
    "a step more": (of(1.125, 1), of(1, 1), ZERO, (False, False, False, True)),
    "more than a step": (of(1.2, 1.2), of(1, 1), ZERO, (False, False, False, False)),
    "more of one": (of(3, 1), of(2, 2), ZERO, (False, False, True, True)),
    "there not given is zero": (of(1, 1, gpu=1), of(2, 2), ZERO, (False, False, True, True)),
    "there not given is endless": (of(1, 1, gpu=1), of(2, 2), INFINITY, (True, True, True, True)),
    "here not given is zero": (of(1, 1), of(2, 2, gpu=1), ZERO, (True, True, True, True)),
    "here not given is endless": (of(1, 1), of(2, 2, gpu=1), INFINITY, (False, False, True, True)),
    "only a scalar that is not given here": (
        of(5, 5), of(2, 2, gpu=0), ZERO, (False, False, True, True),
    ),
    "only a scalar that is not given there": (
        of(5, 5, gpu=1), of(2, 2), INFINITY, (False, False, True, True),
    ),
    "endless on both sides": (
        of(math.inf, 1), of(math.inf, 2), ZERO, (False, True, True, True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("left", "right", "missing", "wanted"), COMPARED.values(), ids=COMPARED)
def test_all_resources_are_compared(left: Any, right: Any, missing: Any, wanted: Any) -> None:
    found = (
        left.below(right, missing),
        left.fits(right, missing),
        left.below_somewhere(right, missing),
        left.fits_somewhere(right, missing),
    )
    assert wanted == found


def test_a_step_more_is_more() -> None:
    """0.1 is the first difference that counts."""
    assert of(2.0).fits(of(1.91), ZERO)
    assert not of(2.5).fits(of(2.375), ZERO)


def test_exceeding_names_own_resources_of_which_there_is_more() -> None:
    left = of(5, 1, gpu=2, fpga=1)
    assert left.exceeding(of(4, 2, gpu=1), ZERO) == ("cpu", FPGA, GPU)
    assert left.exceeding(of(4, 2, gpu=1), INFINITY) == ("cpu", GPU)
    assert of(1, 1).exceeding(of(1, 1, gpu=1), INFINITY) == ()


def test_over_looks_only_at_what_is_asked_for_and_without_tolerance() -> None:
    used = of(5, 5, gpu=2, fpga=2, pods=9)
    limit = of(4.99, 9, gpu=1)
    assert used.over(limit, of(cpu=1, memory=1, gpu=1, pods=1)) == ("cpu", GPU)
    assert used.over(limit, of(memory=1)) == ()
    assert used.over(limit, of(fpga=1)) == (FPGA,)


def test_over_may_pass_over_what_the_limit_does_not_give() -> None:
    used, asked = of(5, 5, gpu=2, fpga=2), of(1, 1, gpu=1, fpga=1)
    assert used.over(of(0, 1, gpu=0), asked, given_only=True) == ("memory", GPU)
    assert used.over(of(0, 1, gpu=0), asked) == ("cpu", "memory", FPGA, GPU)
    assert used.over(of(0.1, 9), asked, given_only=True) == ("cpu",)


def test_covered_names_what_is_asked_for_and_there_is_enough_of() -> None:
    held = of(2, 9, gpu=1, pods=1)
    assert held.covered(of(2, 2, gpu=1, pods=9), of(1, 1, gpu=1, fpga=1, pods=1)) == (
        "cpu",
        FPGA,
        GPU,
    )


def test_covered_may_pass_over_what_neither_has() -> None:
    asked = of(1, 1, gpu=1)
    assert of(1).covered(of(2), asked, skip_unused=True) == ("cpu",)
    assert of(1).covered(of(2), asked) == ("cpu", "memory", GPU)


def test_equals_looks_at_own_resources_within_the_step() -> None:
    assert of(1, 1).equals(of(1.05, 1, gpu=5))
    assert not of(1, 1, gpu=5).equals(of(1, 1))
    assert of(math.inf).equals(of(math.inf))


def test_below_a_step_there_is_nothing() -> None:
    amounts = of(0.05, 0.1, gpu=0.05, pods=3)
    assert [amounts.lacks(name) for name in ("cpu", "memory", GPU, FPGA)] == [
        True, False, True, True,
    ]  # fmt: skip
    assert amounts.names() == ("memory", "pods")


def test_a_list_of_pods_alone_is_empty() -> None:
    assert of(pods=4).is_empty()
    assert not of(gpu=1).is_empty()
    assert not of(cpu=0.1).is_empty()


def test_shared_names_are_those_of_which_both_have_something() -> None:
    left, right = of(1, gpu=1, fpga=0, pods=1), of(2, 5, gpu=1, fpga=1, pods=1)
    assert left.shared_names(right) == ("cpu", GPU, "pods")
    assert left.shared_names(right, pods=False) == ("cpu", GPU)


def test_sums_and_differences_cover_the_resources_of_both() -> None:
    assert of(1, 2, gpu=1) + of(3, 4, fpga=5) == of(4, 6, gpu=1, fpga=5)
    assert of(4, 6, gpu=3) - of(3, 4, gpu=1) == of(1, 2, gpu=2)
    assert of(1) - of(gpu=2) == of(1, gpu=-2)
    assert of(2, 4, gpu=6) * 0.5 == of(1, 2, gpu=3)
    assert of(1).plus(GPU, 100).plus(GPU, 1) == of(1, gpu=101)


def test_operations_leave_their_operands_alone() -> None:
    left = of(1, 2, gpu=3)
    left.plus(GPU, 1)
    left.at_most(of(), ZERO)
    assert left == of(1, 2, gpu=3)


def test_at_least_takes_the_larger_of_both() -> None:
    assert of(1, 9, gpu=1).at_least(of(5, 5, fpga=2)) == of(5, 9, gpu=1, fpga=2)
    assert of(gpu=-1).at_least(of()) == of(gpu=-1)


@pytest.mark.parametrize(
    ("missing", "wanted"),
    [(ZERO, of(1, 5, gpu=1, fpga=0)), (INFINITY, of(1, 5, gpu=1, fpga=2))],
    ids=["zero", "endless"],
)
def test_at_most_cuts_own_resources(missing: Any, wanted: Any) -> None:
    assert wanted == of(1, 9, gpu=4, fpga=2).at_most(of(3, 5, gpu=1, pods=1), missing)


def test_difference_gives_what_is_more_and_what_is_less() -> None:
    more, less = of(2, 1, gpu=3).difference(of(1, 2, fpga=1), ZERO)
    assert (more, less) == (of(1, 0, gpu=3), of(0, 1, fpga=1))


def test_difference_against_something_endless_is_endless() -> None:
    more, less = of(2, 1, gpu=3).difference(of(1, 2, fpga=1), INFINITY)
    assert (more, less) == (of(1, 0, fpga=math.inf), of(0, 1, gpu=math.inf))


def test_difference_of_equals_is_zero_even_if_endless() -> None:
    assert of(math.inf).difference(of(math.inf), ZERO) == (of(), of())


def test_left_after_takes_a_step_more_than_asked_where_anything_is_asked() -> None:
    left = of(10, 10, gpu=1).left_after(of(4, 0, gpu=1, fpga=2))
    assert left["cpu"] == pytest.approx(5.9)
    assert left["memory"] == 10
    assert left[GPU] == pytest.approx(-0.1)
    assert left[FPGA] == pytest.approx(-2.1)

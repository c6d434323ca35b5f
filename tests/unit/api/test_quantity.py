"""Quantities: every Kubernetes notation, exactly; everything else is refused."""

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.api.quantity import (
    MAX_VALUE,
    QuantityFormError,
    amount,
    amount_text,
    check_amounts,
    format_quantity,
    milli_value,
    parse_quantity,
    value,
)
from pumice.errors import QuantityError

NANO = {
    "0": 0,
    "-0": 0,
    "+1": 10**9,
    "1": 10**9,
    "1.5": 1_500_000_000,
    ".5": 500_000_000,
    "5.": 5 * 10**9,
    "007": 7 * 10**9,
    "1n": 1,
    "1u": 1000,
    "100m": 10**8,
    "1k": 10**12,
    "1M": 10**15,
    "1G": 10**18,
    "1T": 10**21,
    "1P": 10**24,
    "1E": 10**27,
    "1Ki": 2**10 * 10**9,
    "500Mi": 500 * 2**20 * 10**9,
    "2Gi": 2**31 * 10**9,
    "1.5Gi": 3 * 2**29 * 10**9,
    "1Ti": 2**40 * 10**9,
    "1Pi": 2**50 * 10**9,
    "1Ei": 2**60 * 10**9,
    "1e3": 10**12,
    "1E3": 10**12,
    "1E+3": 10**12,
    "25e-1": 2_500_000_000,
    "0.1n": 1,
    "1e-300": 1,
    "0e999999999999999999": 0,
    "9223372036854775807": MAX_VALUE * 10**9,
    7: 7 * 10**9,
    0.25: 250_000_000,
    1e-07: 100,
}


@pytest.mark.parametrize("written", NANO, ids=repr)
def test_a_quantity_is_read_exactly_in_nano_units(written: Any) -> None:
    assert NANO[written] == parse_quantity(written)


@pytest.mark.parametrize(
    ("written", "whole", "milli"),
    [("1", 1, 1000), ("1500m", 2, 1500), ("1.0005", 2, 1001), ("1n", 1, 1), ("0", 0, 0)],
)
def test_value_and_milli_value_round_up(written: str, whole: int, milli: int) -> None:
    assert (whole, milli) == (value(written), milli_value(written))


REFUSED = [
    "", " ", ".", "+", "-", "m", "Ki", " 1", "1 ", "1 Gi", "1\n", "NaN", "nan", "inf", "Infinity",
    "1K", "1ki", "1mi", "1i", "1KI", "1GB", "1e", "1e+", "1e1.5", "1E3Mi", "1Mi2", "1.1.1", "--1",
    "1,5", "1_000", "0x10", "cpu", "\u0663", "9" * 300,
    "-1", "-1m", -1, -0.5, "-1e999999999",
    "9223372036854775808", "8Ei", "10E", "1e19", "1e999999999", 2**63, 10**5000, -(10**5000), 1e300,
    float("nan"), float("inf"), float("-inf"), True, None, [], {},
]  # fmt: skip


@pytest.mark.parametrize("written", REFUSED, ids=lambda written: f"{type(written).__name__}")
def test_anything_else_is_refused(written: Any) -> None:
    read = parse_quantity if written.__hash__ else parse_quantity.__wrapped__
    with pytest.raises(QuantityError) as caught:
        read(written)
    assert caught.value.found is written or caught.value.found == written
    assert str(caught.value).startswith("expected ")


@pytest.mark.parametrize(
    ("written", "hint"),
    [("4GB", "without the b"), ("4GiB", "without the b"), ("1K", "k for 1000"), ("1 ", "space")],
)
def test_a_common_slip_gets_a_hint(written: str, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        value(written)
    assert hint in caught.value.hint


def test_a_bad_amount_in_a_resource_list_names_its_resource() -> None:
    with pytest.raises(QuantityError) as caught:
        check_amounts({"cpu": "1", "nvidia.com/gpu": "-2"}, "requests")
    assert caught.value.field == "requests.nvidia.com/gpu"
    assert caught.value.found == "-2"
    assert str(caught.value) == (
        "requests.nvidia.com/gpu: expected an amount of zero or more, got '-2'"
    )


def test_an_absent_resource_list_is_fine() -> None:
    check_amounts(None, "minResources")
    check_amounts({}, "requests")


@pytest.mark.parametrize(
    ("resource", "number", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("cpu", 500, "500m"),
        ("cpu", 500.0000001, "500m"),
        ("cpu", 0, "0"),
        ("cpu", -500, "-500m"),
        ("cpu", 4_000_000, "4k"),
        ("requests.cpu", 2000, "2"),
        ("memory", 4 * 2**30, "4Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 2**31 + 1, "2147483649"),
        ("memory", 2_000_000, "2000000"),
        ("memory", 1000, "1k"),
        ("memory", 512, "512"),
        ("memory", -2048, "-2Ki"),
        ("limits.memory", 2**30, "1Gi"),
        ("ephemeral-storage", 2**40, "1Ti"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("nvidia.com/gpu", 4, "4"),
        ("pods", 110, "110"),
        ("pods", 10_000, "10k"),
    ],
)
def test_an_amount_is_printed_as_kubernetes_prints_it(
    resource: str, number: Any, text: str
) -> None:
    assert text == format_quantity(resource, number)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 32_000 / 3, "10.667"),
        ("cpu", 1500, "1.5"),
        ("cpu", 2_000_000, "2000"),
        ("cpu", 0.0, "0"),
        ("cpu", 0.2, "0.0002"),
        ("nvidia.com/gpu", 8000 / 3, "2.667"),
        ("nvidia.com/gpu", 500, "0.5"),
        ("nvidia.com/gpu", 8000, "8"),
        ("memory", 2**34 / 3, "5.333Gi"),
        ("pods", 110, "110"),
    ],
)
def test_an_amount_in_a_sentence_has_no_needless_digits(
    resource: str, amount: float, text: str
) -> None:
    assert amount_text(resource, amount) == text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_not_finite_is_not_printed(number: str) -> None:
    with pytest.raises(QuantityError):
        format_quantity("cpu", number)


@given(st.integers(0, MAX_VALUE))
def test_printed_bytes_and_counts_read_back_as_they_were(number: Any) -> None:
    assert number == value(format_quantity("memory", number))
    assert number == value(format_quantity("pods", number))


@given(st.integers(0, MAX_VALUE))
def test_printed_cpu_reads_back_in_thousandths(number: Any) -> None:
    assert number == milli_value(format_quantity("cpu", number))


@given(
    whole=st.integers(0, 10**6),
    part=st.text("0123456789", max_size=12),
    scale=st.sampled_from([("n", -9), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("e2", 2)]),
)
@example(whole=0, part="0000000001", scale=("", 0))
def test_decimal_notation_agrees_with_decimal_arithmetic(whole: Any, part: Any, scale: Any) -> None:
    suffix, exponent = scale
    exact = Decimal(f"{whole}.{part or 0}").scaleb(exponent)
    text = f"{whole}.{part}{suffix}"
    nano = exact.scaleb(9).to_integral_value(ROUND_CEILING)
    assert int(nano) == parse_quantity(text)
    assert int(exact.scaleb(3).to_integral_value(ROUND_CEILING)) == milli_value(text)
    assert int(exact.to_integral_value(ROUND_CEILING)) == value(text)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_and_never_crashes(text: Any) -> None:
    try:
        nano = parse_quantity(text)
    except QuantityError:
        return
    assert 0 <= nano <= MAX_VALUE * 10**9


@given(st.floats(0, 1e15, allow_nan=False))
def test_a_number_from_yaml_means_what_its_text_means(number: Any) -> None:
    assert parse_quantity(repr(number)) == parse_quantity(number)


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1Gi", "1Gi"), ("1024Mi", "1Gi"), ("0.5Gi", "512Mi"),
        ("100Ki", "100Ki"), ("1e3", "1e3"), ("12e6", "12e6"), ("-1", "-1"), ("+2", "2"),
        ("1n", "1n"),
        ("0", "0"), ("0Gi", "0"), (".5", "500m"), ("1.", "1"), ("1500m", "1500m"),
        ("1.0000001Ki", "1024000102400n"),
        ("-2048Ki", "-2Mi"), ("1e300", "9223372036854775807"),
    ],
)  # fmt: skip
def test_amounts_have_one_spelling(given_text: str, shown: str) -> None:
    assert str(amount(given_text)) == shown


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, "quantities must match") for text in ("", "a", "1x", "1 2", " 3", "+")),
        *((text, "unable to parse quantity's suffix") for text in ("1ki", "1ee", "ki")),
        *((text, "unable to parse numeric part") for text in ("m", ".", "-.k")),
    ],
)
def test_what_is_no_amount_is_refused_in_kubernetes_words(text: str, problem: str) -> None:
    with pytest.raises(QuantityFormError, match=problem):
        amount(text)


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "n", "u"]))
def test_the_canonical_spelling_means_the_same_amount(number: Any, suffix: str) -> None:
    once = amount(f"{number}{suffix}")
    again = amount(str(once))
    assert (again.nano, str(again)) == (once.nano, str(once))


@given(st.decimals(-1000, 1000, places=3))
def test_amounts_are_exact(number: Any) -> None:
    assert amount(str(number)).nano == Fraction(str(number)) * 10**9

"""Names and numbers as manifests write them."""

import pytest

from pumice.cache.pod_cells import index_of, int32_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("0" * 5000 + "7", 7),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
        ("-2147483648", -(2**31)),
        ("-2147483649", None),
        ("99999999999", None),
        ("", None),
        ("x", None),
        ("7 ", None),
        ("--7", None),
    ],
)
def test_a_number_has_32_bits(text: str, number: int | None) -> None:
    assert int32_of(text, 42) == (42 if number is None else number)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("job-task-3", 3),
        ("job-task-0", 0),
        ("a-b-c-12", 12),
        ("job-3", -1),
        ("3", -1),
        ("job-task-x", -1),
        ("job-task-", -1),
        ("job-task-²", -1),
        ("job-task-123456789", 123456789),
        ("job-task-1234567890", -1),
    ],
)
def test_the_number_of_a_pod_ends_its_name(name: str, index: int) -> None:
    assert index_of(name) == index

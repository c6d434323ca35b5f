"""The record of what the bench cases decide; ``python -m bench.decisions`` compares all of it."""

import json

import pytest

from bench.decisions import RECORD, differences, record

KNOWN = json.loads(RECORD.read_text())


@pytest.mark.parametrize("only", ["default-10n", "affinity-10n", "preempt-8n", "full-default"])
def test_some_cases_decide_as_recorded(only: str) -> None:
    found = record(only)

    assert found
    assert not differences(KNOWN, found)


def test_a_case_that_decides_otherwise_is_named() -> None:
    name, line = next(iter(KNOWN.items()))

    (text,) = differences(KNOWN, {name: {**line, "binds": [0, 0]}})

    assert text.startswith(f"{name}: ")

"""What Volcano's command line printed and asked for, `pumice vcctl` prints and asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.testing.recorded.vcctl import is_vcctl_case, run_vcctl_case

CASES = [
    json.loads(line)
    for file in sorted((Path(__file__).parent / "vcctl").glob("*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_outcome_is_the_recorded_one(case: Any) -> None:
    assert is_vcctl_case(case)
    assert run_vcctl_case(case) == []


@pytest.mark.parametrize("key", ["stdout", "stderr"])
def test_another_text_is_noticed(key: str) -> None:
    case = next(case for case in CASES if case["name"] == "queue-list-busy")
    assert run_vcctl_case({**case, key: f"{case[key]}more\n"}) == [
        f"{key}: --- expected",
        f"{key}: +++ found",
        *run_vcctl_case({**case, key: f"{case[key]}more\n"})[2:3],
        f"{key}: -more",
    ]


def test_another_exit_code_is_noticed() -> None:
    assert run_vcctl_case({**CASES[0], "exitCode": 3})[-1].endswith("expected 3")


def test_another_change_is_noticed() -> None:
    case = next(case for case in CASES if case["name"] == "queue-operate-update")
    asked = [{**one, "body": {"spec": {"weight": 6}}} for one in case["requests"]]
    assert run_vcctl_case({**case, "requests": asked})[0].startswith("changes: ")

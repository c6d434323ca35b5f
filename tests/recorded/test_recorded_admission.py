"""What an API server with Volcano's schemas and webhooks decided, ours decide."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.testing.recorded.admission import is_admission_case, run_admission_case

FOLDER = Path(__file__).parent / "admission"
CASES = [
    json.loads(line)
    for file in sorted(FOLDER.glob("*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]


def named(name: Any) -> Any:
    return next(case for case in CASES if case["name"] == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_decision_is_the_recorded_one(case: Any) -> None:
    assert is_admission_case(case)
    assert run_admission_case(case) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("allowed", True),
        ("message", "fine"),
        ("source", "builtin"),
        ("webhook", "/jobs/mutate"),
        ("code", 422),
        ("reason", "Invalid"),
    ],
)
def test_another_result_is_noticed(key: str, value: Any) -> None:
    case = named("job-queue-unknown")
    changed = {**case, "result": {**case["result"], key: value}}
    assert [line.partition(":")[0] for line in run_admission_case(changed)] == [key]


def test_another_object_another_call_and_another_warning_are_noticed() -> None:
    case = named("job-unknown-spec-field")
    assert run_admission_case({**case, "mutated": []})[0].startswith("object: ")
    assert run_admission_case({**case, "calls": []})[0].startswith("calls: ")
    assert run_admission_case({**case, "warnings": []})[0].startswith("warnings: ")


def test_the_order_of_findings_is_left_open_only_where_it_was_seen_to_vary() -> None:
    case = named("queue-two-resources-bad")
    swapped = case["result"]["messageVariants"][::-1]
    reordered = {**case["result"], "message": swapped[0], "messageVariants": swapped[:1]}
    assert run_admission_case({**case, "result": reordered}) == []
    fixed = {key: value for key, value in reordered.items() if key != "messageVariants"}
    texts = {
        line.partition(":")[0]
        for text in case["result"]["messageVariants"]
        for line in run_admission_case({**case, "result": {**fixed, "message": text}})
    }
    assert texts == {"message"}

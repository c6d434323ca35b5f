"""The runner of recorded cases: what it finds, what it compares, what it reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.testing.recorded import find_cases, is_controller_case, run_controller_case
from pumice.testing.recorded.__main__ import main
from pumice.testing.recorded.controllers import amended
from pumice.testing.recorded.differences import differences, event_differences

CASE = Path(__file__).parents[2] / "recorded" / "controllers" / "job-single-task.json"


def wrong_case() -> Any:
    case = json.loads(CASE.read_text(encoding="utf-8"))
    case["steps"][1]["expect"]["jobs"]["alpha"]["status"]["pending"] = 7
    return case


def test_a_case_that_differs_names_the_step_and_the_field() -> None:
    found = run_controller_case(wrong_case())
    assert found[0].startswith("step 1 (the scheduler")
    assert found[1] == "jobs.alpha.status.pending: expected 7, got 2"


def test_an_unstable_path_is_not_compared() -> None:
    case = wrong_case()
    path = ["jobs", "alpha", "status", "pending"]
    case["steps"][1]["unstable"] = [{"path": path, "seen": [2, 7]}]
    assert run_controller_case(case) == []


def test_an_object_that_is_not_listed_must_not_exist() -> None:
    case = json.loads(CASE.read_text(encoding="utf-8"))
    del case["steps"][0]["expect"]["podgroups"]
    assert "not expected" in run_controller_case(case)[1]


def test_an_event_that_is_missing_and_one_that_is_too_much() -> None:
    wanted = [
        {"kind": "Job", "name": "a", "type": "Normal", "reason": "R", "message": "m", "source": "s"}
    ]
    seen: set[tuple[str, ...]] = {("Job", "a", "Normal", "R", "other", "s")}
    missing, surplus = event_differences(wanted, seen, others_allowed=False)
    assert missing == "events: missing Job | a | Normal | R | m | s"
    assert surplus == "events: not expected Job | a | Normal | R | other | s"
    assert len(event_differences(wanted, seen, others_allowed=True)) == 1


def test_an_absent_mapping_that_would_hold_only_skipped_paths_is_no_difference() -> None:
    assert differences({}, {"a": {"b": 1}}, {("a", "b")}) == []
    assert differences({}, {"a": {"b": 1, "c": 2}}, {("a", "b")}) != []


def test_the_counts_of_an_ended_job_are_taken_from_its_pods() -> None:
    marks = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "w"}
    pod = {"annotations": marks, "ownerReferences": [{"kind": "Job"}], "phase": "Succeeded"}
    status = {"phase": "Completed", "succeeded": 0, "taskStatusCount": {}}
    wanted = amended({"jobs": {"j": {"status": status}}, "pods": {"p": pod}}, set())
    assert wanted["jobs"]["j"]["status"]["succeeded"] == 1
    assert wanted["jobs"]["j"]["status"]["taskStatusCount"] == {"w": {"Succeeded": 1}}
    assert status["succeeded"] == 0


def test_other_documents_are_no_controller_cases(tmp_path: Path) -> None:
    assert not is_controller_case({"name": "x", "command": []})
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    assert list(find_cases([tmp_path])) == []
    with pytest.raises(InputError, match="recorded cases"):
        list(find_cases([other]))


def test_the_command_reports_counts_and_writes_junit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(wrong_case()), encoding="utf-8")
    report = tmp_path / "report.xml"
    assert main(["--junit", str(report), str(CASE), str(wrong)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"
    assert 'tests="2"' in report.read_text(encoding="utf-8")
    assert main([str(CASE)]) == 0


def test_a_path_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no/such/path"]) == 2
    assert "no/such/path" in capsys.readouterr().err

"""Logs in the Standard Workload Format."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.sim.readers import swf

LOG = Path(__file__).parents[3] / "data" / "traces" / "small.swf"
ROW = "1 0 -1 10 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1"


@pytest.fixture(scope="module")
def workload() -> Any:
    return swf.read(LOG)


def test_jobs_arrive_when_submitted_and_run_as_long_as_they_did(workload: Any) -> None:
    assert [(job.arrival, job.run_seconds) for job in workload.jobs] == [
        *((0.0, 100.0), (5.0, 50.0), (15.0, 30.0), (20.0, 30.0), (25.0, 30.0))
    ]


def test_processors_asked_for_count_before_those_used(workload: Any) -> None:
    assert [(job.size, job.min_member) for job in workload.jobs[:2]] == [(4, 4), (8, 8)]


def test_memory_is_asked_for_by_processor_where_it_is_reported(workload: Any) -> None:
    first, second = (job.tasks[0].spec.containers[0].resources for job in workload.jobs[:2])
    assert first.requests == {"cpu": "1"}
    assert second.requests == {"cpu": "1", "memory": "2048Ki"}


def test_a_queue_has_its_name_or_number_and_else_the_group_counts(workload: Any) -> None:
    queues = [job.queue for job in workload.jobs]
    assert queues == ["batch", "night", "group-7", "default", "queue-9"]


def test_jobs_without_a_run_time_are_left_out_and_counted(workload: Any) -> None:
    assert "job-0000003" not in {job.name for job in workload.jobs}
    assert any(note.startswith("1 job without a run time") for note in workload.notes)


def test_the_header_sizes_the_machine(workload: Any) -> None:
    hint = workload.node_hint
    assert (hint.count, hint.allocatable["cpu"]) == (4, "4")


def test_a_packed_log_is_read_like_the_log_itself(tmp_path: Path, workload: Any) -> None:
    path = tmp_path / "small.swf.gz"
    path.write_bytes(gzip.compress(LOG.read_bytes()))
    assert swf.read(path).jobs == workload.jobs


def test_a_log_packed_only_in_part_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress(LOG.read_bytes())[:-20])
    with pytest.raises(InputError, match=r"cut\.swf\.gz: .*, got a packed file that is cut off"):
        swf.read(path)


@pytest.mark.parametrize("row", ["1 2 3", ROW.replace("10", "ten"), ROW.replace("10", "nan")])
def test_a_bad_line_is_reported_with_file_and_line(tmp_path: Path, row: str) -> None:
    path = tmp_path / "t.swf"
    path.write_text(f"; a log\n{ROW}\n\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"t\.swf:4: expected 18 numbers"):
        swf.read(path)


@pytest.mark.parametrize("end", ["", "\n1 2 3\n", "\r\n"])
def test_a_line_of_a_million_characters_is_refused_by_its_number(tmp_path: Path, end: str) -> None:
    path = tmp_path / "long.swf"
    path.write_text(f"; MaxProcs: 4\n{'1 ' * (1 << 20)}{end}")
    with pytest.raises(InputError, match=r"long\.swf:2: expected at most 1,048,576 characters"):
        swf.read(path)

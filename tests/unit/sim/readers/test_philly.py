"""Lists of deep-learning jobs: gangs of GPUs in virtual clusters."""

from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.sim.readers import philly

TRACES = Path(__file__).parents[3] / "data" / "traces"


@pytest.fixture(scope="module")
def workload() -> Any:
    return philly.read(TRACES / "philly.csv")


def test_jobs_come_in_the_order_of_their_dates_from_second_0(workload: Any) -> None:
    assert [(job.arrival, job.run_seconds) for job in workload.jobs] == [
        *((0.0, 60.0), (30.0, 120.0), (120.0, 90.5))
    ]


def test_every_gpu_is_a_pod_and_all_pods_start_together(workload: Any) -> None:
    assert [(job.size, job.min_member) for job in workload.jobs] == [(1, 1), (4, 4), (2, 2)]
    (task,) = workload.jobs[1].tasks
    assert task.spec.containers[0].resources.requests == {"nvidia.com/gpu": "1"}


def test_virtual_clusters_are_queues(workload: Any) -> None:
    assert [job.queue for job in workload.jobs] == ["vc-a", "vc-b", "vc-b"]


def test_jobs_without_a_gpu_are_left_out_and_counted(workload: Any) -> None:
    assert any("1 job without a GPU" in note for note in workload.notes)


def test_times_in_seconds_and_names_of_jobs_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,submit_time,duration,num_gpus,vc\nx,50.5,1,1,q\n", encoding="utf-8")
    (job,) = philly.read(path).jobs
    assert (job.name, job.queue, job.arrival) == ("x", "q", 0.0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("soon,1,1", r"t\.csv:3: timestamp: expected seconds or a date and time, got 'soon'"),
        ("nan,1,1", r"t\.csv:3: timestamp: expected seconds or a date and time"),
        ("1,long,1", r"t\.csv:3: duration: expected a number"),
        ("1,-1,1", r"t\.csv:3: duration: expected a number from 0 up"),
        ("1,1", r"t\.csv:3: num_gpus: expected a number"),
    ],
)
def test_a_bad_row_is_reported_with_file_line_and_column(
    tmp_path: Path, row: str, message: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"timestamp,duration,num_gpus\n1,1,1\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        philly.read(path)

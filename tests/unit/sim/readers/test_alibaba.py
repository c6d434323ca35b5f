"""Alibaba's tables of 2018 and its list of 2025."""

from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.sim.inputs import read_workload, recognise

TRACES = Path(__file__).parents[3] / "data" / "traces"


def read(name: str) -> Any:
    return read_workload(TRACES / name)


def pods(job: Any) -> Any:
    return [
        (task.count, task.run_seconds, task.spec.containers[0].resources.requests)
        for task in job.tasks
    ]


def test_a_task_of_2018_is_a_job_that_starts_pod_by_pod() -> None:
    workload = read("alibaba2018_tasks.csv")
    assert [(job.name, job.arrival, job.min_member, job.queue) for job in workload.jobs] == [
        ("j-2-m1", 0, 1, "type-1"),
        ("j-2-r2-1", 40, 1, "type-1"),
        ("j-1-task-abc", 600, 1, "type-1"),
    ]
    assert pods(workload.jobs[0]) == [(2, 40, {"cpu": "1000m", "memory": "512Mi"})]
    assert pods(workload.jobs[1]) == [(1, 60, {"cpu": "1m"})]  # nothing known of it
    assert any(note.startswith("2 rows without instances or times") for note in workload.notes)


def test_instances_of_2018_are_pods_of_their_task_equal_ones_together() -> None:
    first, second = read("alibaba2018_instances.csv").jobs
    assert pods(first) == [
        (2, 42, {"cpu": "250m", "memory": "256Mi"}),
        (1, 30, {"cpu": "2000m", "memory": "512Mi"}),
    ]
    assert (second.name, second.arrival, second.size) == ("j-7-r2-1", 50, 1)


def test_tasks_of_a_list_come_once_those_they_wait_for_could_have_ended() -> None:
    workload = read("alibaba2018_list.csv")
    assert [(job.name, job.arrival) for job in workload.jobs] == [
        *(("j-1-1", 0), ("j-1-2", 0), ("j-1-3-1-2", 100), ("j-2-1", 300))
    ]
    assert pods(workload.jobs[0]) == [(20, 100, {"cpu": "500m", "memory": "25600Mi"})]


def test_columns_may_be_named(tmp_path: Path) -> None:
    names = "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem"
    path = tmp_path / "t.csv"
    rows = (TRACES / "alibaba2018_tasks.csv").read_text(encoding="utf-8")
    path.write_text(f"{names}\n{rows}", encoding="utf-8")
    assert recognise(path) == "alibaba2018"
    assert read_workload(path).jobs == read("alibaba2018_tasks.csv").jobs


def test_instances_of_2025_serve_from_their_creation_or_the_beginning_to_their_end() -> None:
    workload = read("alibaba2025.csv")
    assert [(job.name, job.arrival, job.run_seconds, job.queue) for job in workload.jobs] == [
        ("instance-0", 0, 901, "app-0"),
        ("instance-2", 0, 300, "app-1"),
        ("instance-1", 100, 400, "app-1"),
        ("instance-3", 900, 1, "app-1"),
    ]
    [(_, _, asked)] = pods(workload.jobs[0])
    assert asked == {
        "cpu": "12000m", "memory": "122880Mi", "nvidia.com/gpu": "1000m", "rdma/percent": "25",
    }  # fmt: skip
    assert "2 instances that were not deleted serve until the list ends" in workload.notes


@pytest.mark.parametrize(
    ("name", "old", "new", "reported"),
    [
        (
            "alibaba2018_tasks.csv",
            "87060",
            "late",
            ":1: end_time: expected a number from 0 to 1e+09",
        ),
        ("alibaba2018_instances.csv", "25,0.1,0.25", "1e300,0,0", ":1: cpu_max: expected"),
        ("alibaba2018_list.csv", "0,100,", "0,inf,", ":2: duration: expected"),
        (
            "alibaba2025.csv",
            "510.0",
            "105",
            ":3: deletion_time: expected a deletion after the start",
        ),
        ("alibaba2025.csv", ",12,12,", ",-1,12,", ":2: cpu_request: expected"),
    ],
)
def test_a_bad_row_is_reported_with_file_line_and_column(
    tmp_path: Path, name: str, old: str, new: str, reported: str
) -> None:
    path = tmp_path / name
    text = (TRACES / name).read_text(encoding="utf-8")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_workload(path, trace_format=recognise(TRACES / name))
    assert f"{name}{reported}" in str(caught.value)

"""Alibaba's openb lists: pods with parts of GPUs, and nodes with models."""

from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.sim.readers import openb

TRACES = Path(__file__).parents[3] / "data" / "traces"
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"


def requests(job: Any) -> Any:
    (task,) = job.tasks
    return dict(task.spec.containers[0].resources.requests)


@pytest.fixture(scope="module")
def jobs() -> Any:
    return {job.name: job for job in openb.read_pods(TRACES / "openb_pods.csv").jobs}


def test_a_pod_arrives_when_created_and_runs_from_when_it_was_scheduled(jobs: Any) -> None:
    assert [job.arrival for job in jobs.values()] == [0.0, 30.0, 40.0, 50.0]
    assert [job.run_seconds for job in jobs.values()] == [580.0, 300.0, 500.0, 45.0]


def test_parts_of_a_gpu_are_thousandths_and_whole_ones_are_multiplied(jobs: Any) -> None:
    assert requests(jobs["first"])["nvidia.com/gpu"] == "1000m"
    assert requests(jobs["part"]) == {"cpu": "1500m", "memory": "2048Mi", "nvidia.com/gpu": "250m"}
    assert requests(jobs["picky"])["nvidia.com/gpu"] == "2000m"
    assert "nvidia.com/gpu" not in requests(jobs["plain"])


def test_models_are_a_node_affinity_to_any_of_them(jobs: Any) -> None:
    (task,) = jobs["picky"].tasks
    (term,) = task.spec.affinity.node_affinity.required.node_selector_terms
    (asked,) = term.match_expressions
    assert (asked.key, asked.operator, asked.values) == ("gpu-model", "In", ("T4", "V100"))


def test_the_quality_of_service_is_the_queue(jobs: Any) -> None:
    assert [job.queue for job in jobs.values()] == ["ls", "be", "ls", "burstable"]


def test_nodes_offer_what_their_row_says_and_carry_their_model() -> None:
    first, _, last = openb.read_nodes(TRACES / "openb_nodes.csv")
    offered = {"cpu": "32000m", "memory": "131072Mi", "pods": "110", "nvidia.com/gpu": "4"}
    assert first.status.allocatable == offered
    assert first.metadata.labels["gpu-model"] == "T4"
    assert "nvidia.com/gpu" not in last.status.allocatable
    assert "gpu-model" not in last.metadata.labels


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,many,1,0,0,0,5", r"t\.csv:3: cpu_milli: expected a number"),
        ("a,1,1,0,0,0,", r"t\.csv:3: deletion_time: expected a number"),
        ("a,1,1,nan,0,0,5", r"t\.csv:3: num_gpu: expected a number"),
        ("a,1,1,0,0,9,5", r"t\.csv:3: deletion_time: expected a deletion after the start"),
    ],
)
def test_a_bad_row_is_reported_with_file_line_and_column(
    tmp_path: Path, row: str, message: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}good,1,1,0,0,0,5\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        openb.read_pods(path)


def test_a_bad_node_is_reported_with_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,x,\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"n\.csv:2: gpu: expected a number"):
        openb.read_nodes(path)

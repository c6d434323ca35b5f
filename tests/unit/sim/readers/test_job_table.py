"""Pumice's own table of jobs, and tables in Parquet files."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from pumice.errors import InputError
from pumice.sim.inputs import read_cluster, read_workload
from pumice.sim.readers import table_files as parquet_files

TRACES = Path(__file__).parents[3] / "data" / "traces"


def test_a_row_is_a_job_with_what_it_states() -> None:
    etl, train = read_workload(TRACES / "jobs.csv").jobs
    assert (etl.name, etl.arrival, etl.size, etl.min_member, etl.queue) == (
        *("etl", 0, 10, 1, "default"),
    )
    assert (etl.priority_class, etl.user, etl.walltime) == ("high", "bob", None)
    assert etl.tasks[0].spec.containers[0].resources.requests == {"cpu": "500m"}
    assert (train.arrival, train.run_seconds, train.walltime) == (10, 3600, 7200)
    assert train.tasks[0].spec.containers[0].resources.requests == {
        "cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "1", "rdma/hca": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("arrival,run,colour\n0,1,red\n", "t.csv:1: unknown column 'colour'"),
        ("arrival,run\n0,soon\n", "t.csv:2: run: expected a number from 0, got 'soon'"),
        ("arrival,run\n0,\n", "t.csv:2: run: expected a number from 0, got nothing"),
        ("arrival,run,pods\n0,1,2000000000\n", "t.csv:2: pods: expected at most 100,000 pods"),
        ("arrival,run,pods\n0,1,2.9\n", "t.csv:2: pods: expected a whole number from 1, got 2.9"),
        ("arrival,run,needed\n0,1,.5\n", "t.csv:2: needed: expected a whole number from 1, got"),
        ("arrival,run\n-1,1\n", "t.csv:2: arrival: expected a number from 0, got -1"),
        ("arrival,run\n0,1\n\n0\n", "t.csv:4: expected 2 cells, one for each column, got 1"),
        ("arrival,run\n0,1,2\n", "t.csv:2: expected 2 cells, one for each column, got 3"),
        ("arrival,run,cpu\n0,1,much\n", "t.csv:2: cpu: expected a quantity"),
        ("arrival,run,gpu\n0,1,-1\n", "t.csv:2: gpu: expected an amount of zero or more, got '-1'"),
        ("arrival,run,request.x/y\n0,1,a\n", "t.csv:2: request.x/y: expected a quantity"),
        ("arrival,run,request\n0,1,gpu\n", "t.csv:2: request: expected amounts by resource"),
    ],
)
def test_a_bad_row_is_reported_with_file_line_and_column(
    tmp_path: Path, text: str, reported: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_workload(path)
    assert reported in str(caught.value)
    assert not str(caught.value).endswith(".0")


def test_numbers_of_pods_may_be_written_with_a_point(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arrival,run,pods,needed\n0,1,3.0,\n")
    (job,) = read_workload(path).jobs
    assert (job.size, job.min_member) == (3, 3)


@pytest.mark.parametrize(
    "name", ["jobs.csv", "philly.csv", "openb_pods.csv", "alibaba2018_list.csv", "alibaba2025.csv"]
)
def test_a_table_in_parquet_is_read_like_the_one_in_csv(tmp_path: Path, name: str) -> None:
    path = tmp_path / "trace"
    parquet.write_table(csv.read_csv(TRACES / name), path)
    found, wanted = read_workload(path), read_workload(TRACES / name)
    assert (found.format, len(found.jobs)) == (wanted.format, len(wanted.jobs))
    for one, other in zip(found.jobs, wanted.jobs, strict=True):
        assert (one.name, one.arrival, one.run_seconds) == (
            *(other.name, other.arrival, other.run_seconds),
        )
        assert one.tasks == other.tasks


def test_nodes_in_parquet_are_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    parquet.write_table(csv.read_csv(TRACES / "openb_nodes.csv"), path)
    assert [n.metadata.name for n in read_cluster(path)] == ["big-0", "big-1", "cpu-0"]


def table(**columns: Any) -> pa.Table:
    return pa.table({"arrival": [0], "run": [1]} | columns)


@pytest.mark.parametrize("columns", ["arrival,run," + "c," * (1 << 20), "a," * (1 << 20)])
def test_a_table_with_a_very_long_line_is_refused(tmp_path: Path, columns: str) -> None:
    """Cells by the million would take all memory before any of them is looked at."""
    path = tmp_path / "t.csv"
    path.write_text(columns)
    with pytest.raises(InputError, match=r"t\.csv:1: expected at most 1,048,576 characters"):
        read_workload(path, trace_format="jobs")


@pytest.mark.parametrize(
    ("made", "reported"),
    [
        (table(cpu=[[1, 2]]), "expected columns of plain values, got 'cpu'"),
        (table(name=["x" * 100_000]), "expected at most 65,536 bytes in a cell"),
        (table(**{f"c{i}": [1] for i in range(1000)}), "expected at most 1,000 columns"),
    ],
)
def test_odd_parquet_is_refused(tmp_path: Path, made: pa.Table, reported: str) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(made, path)
    with pytest.raises(InputError, match=reported):
        read_workload(path)


def test_very_many_rows_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that repeat take no room in a file: their number is looked at, not their size."""
    path = tmp_path / "t.parquet"
    zeros = pa.array([0] * 1_000_000, type=pa.int8())
    writer = parquet.ParquetWriter(path, pa.schema([("arrival", pa.int8()), ("run", pa.int8())]))
    for _ in range(6):
        writer.write_table(pa.table({"arrival": zeros, "run": zeros}))
    writer.close()
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(parquet_files, "_texts", None)  # nothing may be read
    with pytest.raises(InputError, match="expected at most 5,000,000 rows, got 6000000"):
        read_workload(path)


@pytest.mark.parametrize("data", [b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"PAR1\0\0\0\0PAR1"])
def test_a_broken_parquet_file_is_reported(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.parquet: expected a readable Parquet file"):
        read_workload(path)

"""Logs as found in the wild: no header, titles, more columns, what is not known everywhere."""

from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.sim.inputs import load, read_workload, recognise
from pumice.sim.readers import swf

TRACES = Path(__file__).parents[3] / "data" / "traces"
ROW = "{n} {at} -1 10 2 -1 -1 -1 {walltime} {memory} -1 {user} -1 -1 -1 -1 -1 -1{more}"


@pytest.fixture
def log(tmp_path: Path) -> Any:
    def write(*rows: str, head: str = "") -> Path:
        path = tmp_path / "wild"
        path.write_text(head + "".join(f"{row}\n" for row in rows), encoding="utf-8")
        return path

    return write


def row(n: int = 1, at: float = 0, **more: Any) -> str:
    stated = {"walltime": -1, "memory": -1, "user": -1, "more": ""}
    return ROW.format(n=n, at=at, **(stated | more))


@pytest.mark.parametrize(
    ("head", "more"),
    [
        ("", " 7 eight {9,9}"),
        ("# a comment\n", ""),
        ("\n\n", " 1"),
        (" ".join(f"column_{i}" for i in range(20)) + "\n", " DAG-1 1"),
        ("id\t" + "\t".join("abcdefghijklmnopqrs") + "\n", "\tDAG-1\t1"),
    ],
)
def test_it_is_recognised_and_read_whatever_stands_around_the_numbers(
    log: Any, head: str, more: str
) -> None:
    path = log(row(more=more), row(2, at=7, more=more), head=head)
    assert recognise(path) == "swf"
    assert [(job.arrival, job.size) for job in read_workload(path).jobs] == [(0, 2), (7, 2)]


def test_a_line_that_is_cut_off_is_reported_with_its_number(log: Any) -> None:
    with pytest.raises(InputError, match=r"wild:2: expected 18 numbers, got '2 7 -1'"):
        swf.read(log(row(), "2 7 -1"))


def test_a_log_that_knows_nothing_is_refused_with_the_reason(log: Any) -> None:
    path = log(" ".join(["-1"] * 18), " ".join(["-1"] * 18))
    with pytest.raises(InputError, match=r"expected at least one job.*2 jobs without a run time"):
        read_workload(path)


def test_requested_times_are_what_policies_and_forecasts_see(log: Any) -> None:
    first, second = swf.read(log(row(walltime=1164297), row(2, at=1))).jobs
    assert first.annotations == {"pumice.dev/run-seconds": "1164297"}
    assert (first.walltime, first.run_seconds) == (1164297, 10)
    assert (second.walltime, second.annotations) == (None, {})


def test_users_are_known_where_they_are_stated(log: Any) -> None:
    assert [job.user for job in swf.read(log(row(user=7), row(2, at=1))).jobs] == ["user-7", ""]


def test_submit_times_since_1970_tell_when_the_log_begins(log: Any) -> None:
    assert swf.read(log(row(at=1_356_996_147))).start == 1_356_996_147
    assert swf.read(log(row(at=60))).start is None


def test_nodes_without_a_header_are_as_many_as_the_work_fills(log: Any) -> None:
    setup = load(log(*(row(n, at=10 * (n - 1)) for n in range(1, 500))))
    assert "1 node with 64 cpu" in setup.notes[-1]
    assert "3.12 % of them would be in use while jobs arrive" in setup.notes[-1]


def test_nodes_have_room_for_the_memory_that_processors_ask_for(log: Any) -> None:
    path = log(row(memory=8 << 20), head="; MaxNodes: 2\n; MaxProcs: 4\n")
    hint = swf.read(path).node_hint
    assert hint is not None
    assert (hint.count, hint.allocatable["memory"]) == (2, "16Gi")


def test_a_log_of_metacentrum_has_a_pod_for_each_part_of_a_node() -> None:
    workload = read_workload(TRACES / "metacentrum.swf")
    first, second, third = workload.jobs
    assert [(task.count, requests(task)) for task in first.tasks] == [
        (2, {"cpu": "4", "memory": "8388608Ki"})
    ]
    assert [(task.count, requests(task)["cpu"]) for task in second.tasks] == [(1, "1"), (1, "3")]
    assert (second.min_member, second.queue, second.walltime) == (2, "q-2w", 1209600)
    # what is stated of its nodes is not what it used: a pod for each processor
    assert [(task.count, requests(task)) for task in third.tasks] == [
        (3, {"cpu": "1", "memory": "1024000Ki"})
    ]
    assert workload.notes[0].startswith("of 2 jobs each node's part is one pod")
    assert workload.notes[1].startswith("1 job without")


def requests(task: Any) -> Any:
    return task.spec.containers[0].resources.requests

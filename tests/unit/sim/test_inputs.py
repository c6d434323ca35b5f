"""From files to something that can run: which reader, which nodes."""

import re
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.objects import Node, Queue
from pumice.errors import InputError
from pumice.sim.inputs import load, read_cluster, read_workload, recognise, simulate
from pumice.sim.measure import Measures
from pumice.sim.options import FORMATS, SimulationOptions
from pumice.sim.readers.registry import READERS

ROOT = Path(__file__).parents[3]
TRACES = ROOT / "tests" / "data" / "traces"
EXAMPLES = ROOT / "examples" / "sim"
FILES = {
    "openb": TRACES / "openb_pods.csv",
    "philly": TRACES / "philly.csv",
    "swf": TRACES / "small.swf",
    "synthetic": EXAMPLES / "synthetic.yaml",
    "manifests": EXAMPLES / "manifests.yaml",
    "alibaba2018": TRACES / "alibaba2018_tasks.csv",
    "alibaba2025": TRACES / "alibaba2025.csv",
    "jobs": TRACES / "jobs.csv",
}


def nodes(setup: Any) -> Any:
    return [thing for thing in setup.cluster if isinstance(thing, Node)]


def test_there_is_a_file_of_every_format() -> None:
    assert set(FILES) == set(FORMATS)


def test_every_format_has_a_reader_and_stands_in_the_documentation() -> None:
    assert set(FORMATS) == set(READERS)
    page = (ROOT / "docs" / "sim.md").read_text(encoding="utf-8")
    described = re.findall(r"(?m)^\| `(\w+)`", page[page.index("## Traces") :])
    assert set(FORMATS) - set(described) == {"manifests", "synthetic"}  # these have sections
    assert "## Manifests" in page
    assert "kind: SyntheticWorkload" in page or "`SyntheticWorkload`" in page


@pytest.mark.parametrize("name", ["alibaba2018_instances.csv", "alibaba2018_list.csv"])
def test_the_other_tables_of_2018_are_recognised_too(name: str) -> None:
    assert recognise(TRACES / name) == "alibaba2018"


@pytest.mark.parametrize("name", FORMATS)
def test_a_trace_is_recognised_by_its_content_alone(tmp_path: Path, name: Any) -> None:
    path = tmp_path / "trace"
    path.write_bytes(FILES[name].read_bytes())
    assert recognise(path) == name
    assert read_workload(path).format == name


def test_a_log_without_comments_is_recognised_by_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("1 0 -1 10 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n", encoding="utf-8")
    assert recognise(path) == "swf"


@pytest.mark.parametrize("text", ["", "hello\n", "a,b\n1,2\n"])
def test_what_is_none_of_them_is_refused_with_the_names_of_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="known: manifests, openb, philly, swf, synthetic"):
        recognise(path)


def test_a_trace_without_jobs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("timestamp,duration,num_gpus\n", encoding="utf-8")
    with pytest.raises(InputError, match="expected at least one job"):
        read_workload(path)


def test_nodes_of_a_file_take_the_place_of_those_of_the_trace() -> None:
    setup = load(FILES["manifests"], nodes=TRACES / "openb_nodes.csv")
    assert [node.metadata.name for node in nodes(setup)] == ["big-0", "big-1", "cpu-0"]
    assert [t.metadata.name for t in setup.cluster if isinstance(t, Queue)] == ["research"]


def test_nodes_are_as_many_as_the_trace_states() -> None:
    assert len(nodes(load(FILES["swf"]))) == 4
    assert len(nodes(load(FILES["synthetic"]))) == 4


def test_made_nodes_take_the_largest_job_of_a_trace_that_lists_none(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("timestamp,duration,num_gpus\n0,1,33\n99999,1,1\n", encoding="utf-8")
    assert len(nodes(load(path))) == 5  # of 8 GPUs


def test_made_nodes_fill_to_what_their_note_states(tmp_path: Path) -> None:
    """Eight pods run at any time while jobs come; one of them runs on for as long again."""
    rows = "".join(f"{10 * i},80,1\n" for i in range(100)) + "0,2000,8\n"
    path = tmp_path / "trace"
    path.write_text(f"timestamp,duration,num_gpus\n{rows}", encoding="utf-8")
    setup = load(path)
    [while_coming, until_end] = map(float, re.findall(r"([0-9.]+) %", setup.notes[-1]))
    summary = Measures("", simulate(setup, parse_conf(DEFAULT_CONF), SimulationOptions())).summary()
    assert summary["wait"]["max"] == 0
    assert len(nodes(setup)) == 3
    assert while_coming == pytest.approx(100 * (8 * 990 + 7640) / (24 * 990), abs=0.05)
    assert until_end == pytest.approx(100 * summary["utilisation"]["nvidia.com/gpu"], abs=0.1)


def test_a_workload_that_tells_of_no_nodes_asks_for_some(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "apiVersion: pumice.dev/v1\nkind: SyntheticWorkload\njobs: 1\npod: {cpu: 1}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="name a file with --nodes"):
        load(path)


def test_a_cluster_without_a_node_is_refused() -> None:
    path = ROOT / "examples" / "train-job.yaml"
    with pytest.raises(InputError, match=path.name):
        read_cluster(path)


def test_a_limit_keeps_the_jobs_that_come_first() -> None:
    names = [job.name for job in load(FILES["philly"], limit=2).workload.jobs]
    assert names == [job.name for job in load(FILES["philly"]).workload.jobs][:2]

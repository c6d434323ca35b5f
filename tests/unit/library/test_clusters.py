"""Clusters, explanations and what-if answers for programs, equal to those of the commands."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.main import main
from pumice.errors import ConfError, InputError

EXAMPLES = Path(__file__).parents[3] / "examples"
FIRST = EXAMPLES / "first-cluster.yaml"


@pytest.fixture(scope="module")
def cluster() -> pumice.Cluster:
    return pumice.load(FIRST)


def command(*words: str) -> Any:
    result = CliRunner().invoke(main, [*words, "-o", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail)


def waiting_job(cluster: pumice.Cluster) -> str:
    return str(cluster.waiting()["job"][0])


def test_a_cluster_counts_its_objects(cluster: pumice.Cluster) -> None:
    assert f"{len(cluster.objects('Node'))} nodes" in repr(cluster)
    assert "Cluster" in cluster._repr_html_()


def test_a_cycle_decides_what_run_prints(cluster: pumice.Cluster) -> None:
    assert dict(cluster.decide().binds) == command("run", str(FIRST))["binds"]


def test_an_explanation_is_that_of_the_command(cluster: pumice.Cluster) -> None:
    job = waiting_job(cluster)
    found = pumice.explain(cluster, job)
    assert found.to_dict() == command("explain", job, "-f", str(FIRST))
    assert found.state == "waits"
    assert found.codes[0] in cluster.waiting()["cause"]
    assert str(found).startswith(f"{job} waits: ")
    assert found.codes[0] in found._repr_html_()


def test_a_what_if_answer_is_that_of_the_command(cluster: pumice.Cluster) -> None:
    job = waiting_job(cluster)
    found = pumice.whatif(cluster, job, add_nodes=2)
    reported = command("whatif", "-f", str(FIRST), "--job", job, "--add-nodes", "2")
    assert json.loads(json.dumps(found.to_dict())) == reported
    assert found.settled
    assert found.starts_in == reported["job"]["in_s"]
    assert "add 2 nodes" in found._repr_html_()


def test_changes_are_made_one_after_the_other(cluster: pumice.Cluster) -> None:
    node = cluster.objects("Node")[0]["metadata"]["name"]
    found = pumice.whatif(
        cluster,
        settings={"queue/batch.weight": 3},
        drain=[node],
        conf=EXAMPLES / "volcano-scheduler.conf",
        default_runtime="10m",
    )
    assert len(found.details.changes) == 3
    assert found.victims == []


def test_a_new_job_is_read_from_a_file(cluster: pumice.Cluster) -> None:
    found = pumice.whatif(cluster, EXAMPLES / "train-job.yaml")
    assert found.details.job is not None
    assert str(found)


def test_a_text_is_a_source_and_a_configuration() -> None:
    text = FIRST.read_text()
    cluster = pumice.load(text, conf='actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n')
    assert cluster.state.scheduler_conf.actions == ("allocate",)


@pytest.mark.parametrize("conf", ["tiers: 5\n", "tiers: {\n"])
def test_a_bad_configuration_is_refused(conf: str) -> None:
    with pytest.raises(ConfError, match="the given configuration"):
        pumice.load(FIRST, conf=conf)


def test_an_unknown_job_is_refused(cluster: pumice.Cluster) -> None:
    with pytest.raises(InputError, match="no-such-job"):
        pumice.explain(cluster, "no-such-job")


def test_no_answer_holds_a_number_that_json_cannot_express(cluster: pumice.Cluster) -> None:
    for job in cluster.waiting()["job"]:
        json.dumps(pumice.explain(cluster, job).to_dict(), allow_nan=False)
        json.dumps(pumice.whatif(cluster, job, drain=["node-a"]).to_dict(), allow_nan=False)
    command("run", str(FIRST))


def test_a_request_lists_what_the_pod_asks_for_and_nothing_else(cluster: pumice.Cluster) -> None:
    """A pod that asks for no GPU says nothing about GPUs, even if nodes have some."""
    causes = pumice.explain(cluster, "ai/sweep").to_dict()["causes"]
    asked = [each["numbers"]["requests"] for each in causes if "requests" in each["numbers"]]
    assert asked
    assert all(each.keys() == {"cpu", "memory"} for each in asked)


def test_one_node_to_drain_needs_no_list(cluster: pumice.Cluster) -> None:
    one, several = (pumice.whatif(cluster, drain=each) for each in ("node-a", ["node-a"]))
    assert one.to_dict() == several.to_dict()


def test_settings_without_effect_are_logged_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    conf = tmp_path / "odd.conf"
    conf.write_text(
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n'
        "  - {name: gang, arguments: {x: 1}}\n  - name: predicates\n"
    )
    loaded = pumice.load(FIRST, conf=conf)
    (line,) = caplog.messages
    assert line.startswith(f"{conf}: line 4: ")
    loaded.decide()
    pumice.explain(loaded, waiting_job(loaded))
    pumice.whatif(loaded, add_nodes=1)
    assert caplog.messages == [line]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"add_nodes": "many"}, "add_nodes: expected a number of nodes such as 2 or 2=NODE, got "),
        ({"add_nodes": -1}, "add_nodes: expected a number of nodes such as 2 or 2=NODE, got '-1'"),
        ({"add_nodes": "1=nope"}, "add_nodes: expected .*, got 'nope'"),
        ({"drain": "nope"}, "drain: expected .*, got 'nope'"),
        ({"settings": {"colour": "red"}}, "settings: expected a setting .*, got 'colour=red'"),
        (
            {"drain": (), "add_nodes": 1, "default_runtime": "soon"},
            "default_runtime: expected a dur",
        ),
    ],
)
def test_errors_name_the_argument(cluster: pumice.Cluster, arguments: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^{problem}"):
        pumice.whatif(cluster, **arguments)


def test_a_wrong_time_is_named() -> None:
    with pytest.raises(InputError, match=r"^now: expected an RFC 3339 time .*, got 'today'"):
        pumice.load(FIRST, now="today")


def test_a_question_about_nothing_is_refused(cluster: pumice.Cluster) -> None:
    with pytest.raises(TypeError, match="nothing to try; pass job, conf, settings, add_nodes or"):
        pumice.whatif(cluster, default_runtime="1h")

"""`pumice whatif`: questions as options, answers as tables or data."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from pumice.api import manifests
from pumice.api.text_files import read_text
from pumice.cli.main import main
from pumice.testing import node, pod, pod_group, queue

RUNNING = {"pumice.dev/run-seconds": "3600"}
OBJECTS = [
    queue("default"),
    node("n1", cpu=4),
    pod_group("old", phase="Running"),
    pod(
        "old-0",
        group="old",
        cpu=4,
        node="n1",
        annotations=RUNNING,
        created="2026-01-15T10:00:00Z",
    ),
    pod_group("j"),
    pod("j-0", group="j", cpu=2),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return str(path)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, ["whatif", *arguments])


def test_when_a_job_starts_is_reported_with_what_it_waits_for(cluster: Any) -> None:
    result = run("-f", cluster, "--job", "j")
    assert result.exit_code == 0
    assert "default/j starts in 1 h, once default/old has ended" in result.output
    assert "  That is at 2026-01-15T11:00:00Z." in result.output
    assert "  default/j-0 on n1" in result.output


def test_a_default_runtime_is_a_duration(cluster: Any) -> None:
    found = json.loads(
        run("-f", cluster, "--job", "j", "--default-runtime", "90m", "-o", "json").output
    )
    assert found["job"]["in_s"] == 3600.0


def test_more_nodes_are_a_change_with_tables(cluster: Any) -> None:
    result = run("-f", cluster, "--add-nodes", "1", "--job", "j")
    note = "note: no configuration was given: the built-in configuration is used\n\n"
    asked = "If you add a node like n1:\n\ndefault/j starts now: 1 pod"
    assert result.output.startswith(f"{note}{asked}")
    assert "Jobs, once nothing changes any more" in result.output
    assert "n1-new-1" in result.output


def test_several_changes_are_made_together(cluster: Any) -> None:
    result = run("-f", cluster, "--set", "queue/default.weight=4", "--remove-node", "n1")
    assert "\nIf you set weight of queue default to 4, remove node n1:\n" in result.output


def test_gpu_is_a_short_name_as_in_scenarios(cluster: Any) -> None:
    result = run("-f", cluster, "--set", "queue/default.capability.gpu=4")
    assert "set capability.nvidia.com/gpu of queue default to 4:" in result.output


def test_a_change_without_effect_is_reported_as_such(cluster: Any) -> None:
    result = run("-f", cluster, "--set", "queue/default.weight=4")
    assert "nothing changes" in result.output


def test_a_manifest_that_is_not_applied_is_a_new_job(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    path.write_text(json.dumps(pod("lone", cpu=1)))
    found = json.loads(run("-f", cluster, "--job", str(path), "-o", "json").output)
    assert found["changes"] == ["submit default/lone"]
    assert found["job"]["state"] == "later"


def test_another_configuration_is_a_change(cluster: Any, tmp_path: Path) -> None:
    conf = tmp_path / "new.conf"
    conf.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')
    result = run("-f", cluster, "--conf", str(conf), "--current-conf", str(conf), "--job", "j")
    assert result.output.startswith(f"If you use the configuration {conf}:")
    named = run("-f", cluster, "--new-conf", str(conf), "--current-conf", str(conf), "--job", "j")
    assert named.output == result.output


def test_settings_of_another_configuration_without_effect_are_named(
    cluster: Any, tmp_path: Path
) -> None:
    conf = tmp_path / "new.conf"
    conf.write_text(
        'actions: "enqueue"\ntiers:\n- plugins:\n'
        "  - {name: binpack, arguments: {binpack.wieght: 2}}\n"
    )
    result = run("-f", cluster, "--new-conf", str(conf))
    assert f"warning: {conf}: line 4: binpack.wieght" in result.stderr


def test_all_errors_of_another_configuration_are_named(cluster: Any, tmp_path: Path) -> None:
    conf = tmp_path / "new.conf"
    conf.write_text(
        'actions: "prempt"\ntiers:\n- plugins:\n  - {name: gang, enabledJobRedy: true}\n'
    )
    result = run("-f", cluster, "--new-conf", str(conf))
    assert result.exit_code == 2
    assert "2 problems in the configuration" in result.output


def test_unknown_fields_of_a_new_job_are_named(cluster: Any, tmp_path: Path) -> None:
    container = {"name": "c", "image": "i"}
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "new"},
        "spec": {"minAvailble": 1, "tasks": [task]},
    }
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job))
    result = run("-f", cluster, "--job", str(file))
    meant = "did you mean spec.minAvailable?"
    assert f"warning: {file}:1: unknown field spec.minAvailble; {meant}\n" in result.stderr


def test_the_file_of_a_new_job_is_read_once(cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(pod("new", cpu=1)))
    with patch.object(manifests, "read_text", wraps=read_text) as reads:
        assert run("-f", cluster, "--job", str(file)).exit_code == 0
    assert [call.args[0] for call in reads.call_args_list].count(file) == 1


def test_a_configuration_that_is_not_text_is_named(cluster: Any, tmp_path: Path) -> None:
    conf = tmp_path / "new.conf"
    conf.write_bytes(b'actions: "enqueue"\n# \xe9t\xe9\n')
    result = run("-f", cluster, "--new-conf", str(conf))
    assert result.exit_code == 2
    assert f"{conf}:2: expected UTF-8 text, got byte 0xe9" in result.output


def test_input_that_is_not_text_is_named() -> None:
    arguments = ["whatif", "-f", "-", "--add-nodes", "1"]
    result = CliRunner().invoke(main, arguments, input=b"kind: List\n# \xe9t\xe9\n")
    assert result.exit_code == 2
    assert "<stdin>:2: expected UTF-8 text, got byte 0xe9" in result.output


def test_a_question_is_needed(cluster: Any) -> None:
    result = run("-f", cluster)
    assert result.exit_code == 2
    assert "nothing to try; give --job, --set" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--job", "jj"), "did you mean 'default/j'"),
        (
            ("--job", "nosuch.yaml"),
            (
                "--job: expected a file or a job of this cluster, got 'nosuch.yaml' "
                "(no such file and no such job; there are default/j, default/old)"
            ),
        ),
        (("--job", "/"), "(not a file and no such job;"),
        (("--add-nodes", "99999999999"), "expected at most 10,000 new nodes, got '99999999999'"),
        (("--add-nodes", "9" * 5000), "expected at most 10,000 new nodes"),
        (("--add-nodes", "00"), "--add-nodes: expected a number of nodes such as 2"),
        (("--set", "queue/defaultx.weight=1"), "did you mean 'default'"),
        (("--set", "weight"), "--set: expected a setting such as"),
        (("--set", "queue/default=1"), "expected a field of it, as in queue/default.FIELD=1"),
        (("--set", "queue/default.status=1"), "expected a field of the status, got 'status'"),
        (("--set", "queue/default.metadata=1"), "expected a field of the metadata"),
        (("--set", "queue/default.weight=["), "expected a value in YAML, got '['"),
        (("--set", "queue/default.weight=1\n---\n2"), "expected one value"),
        (("--drain", "n2"), "--drain: expected a node of this cluster, got 'n2'"),
        (("--remove-node", "n2"), "--remove-node: expected a node of this cluster, got 'n2'"),
        (("--remove-node", "n2"), "did you mean 'n1'"),
        (("--add-nodes", "1", "--now", "soon"), "--now: expected an RFC 3339 time such as"),
        (("--add-nodes", "many"), "a number of nodes"),
        (
            ("--job", "j", "--default-runtime", "1 day"),
            "--default-runtime: expected a duration such as",
        ),
        (
            ("--job", "j", "--default-runtime=-2h"),
            "--default-runtime: expected 0 or more, got '-2h'",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_a_hint(
    cluster: Any, arguments: Any, message: str
) -> None:
    result = run("-f", cluster, *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_job_that_starts_in_part_has_the_reason_why_the_rest_waits(
    cluster: Any, tmp_path: Path
) -> None:
    new = [pod_group("new"), *(pod(f"new-{i}", group="new", cpu=3) for i in range(2))]
    path = tmp_path / "new.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": new}))
    output = run("-f", cluster, "--add-nodes", "2", "--job", str(path)).output
    waiting = output.partition("Jobs that still wait\n")[2]
    assert "default/new   no node fits default/new-1" in waiting


SIGNED = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""


def test_the_sign_off_comes_first_and_conditions_decide_the_exit_code(
    cluster: Any, tmp_path: Path
) -> None:
    conf = tmp_path / "new.conf"
    conf.write_text(SIGNED)
    change = ("-f", cluster, "--new-conf", str(conf), "--within", "1m", "--evicted", "requeue")
    result = run(*change, "--fail-on", "gangs-broken, evictions>10, wait.p95>1.2x")
    assert result.exit_code == 0
    assert result.output.index("Sign-off") < result.output.index("nothing changes")
    drained = ("-f", cluster, "--drain", "n1", "--fail-on", "jobs-lost, evictions")
    result = run(*drained)
    assert (result.exit_code, "refused: jobs-lost: 1, before 0" in result.output) == (1, True)
    assert "refused: evictions" not in result.output
    found = json.loads(run(*drained, "-o", "json").stdout)
    assert found["breaches"] == ["jobs-lost: 1, before 0"]
    assert found["signoff"]["after"]["jobs_lost"] == ["default/old"]
    assert "one of evictions" in run(*drained, "--fail-on", "evicted").output


def test_a_job_alone_is_not_a_change_to_sign(cluster: Any) -> None:
    assert json.loads(run("-f", cluster, "--job", "j", "-o", "json").stdout)["signoff"] is None

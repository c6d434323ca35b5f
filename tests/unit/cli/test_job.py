"""`pumice job`: on an embedded cluster, with the outputs that the original does not have."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cli.vcctl.command import run_vcctl
from pumice.cluster.embedded.store import EmbeddedCluster

KIND = "Job.batch.volcano.sh"


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster()


@pytest.fixture
def pumice_command(cluster: Any) -> Any:
    return lambda *words: CliRunner().invoke(main, list(words), obj=lambda _: nullcontext(cluster))


def run(pumice_command: Any, name: Any, *more: Any) -> None:
    assert (
        pumice_command("job", "run", "-N", name, *more).output == f"run job {name} successfully\n"
    )


def test_a_job_runs_in_the_queue_that_is_named(cluster: Any, pumice_command: Any) -> None:
    run(pumice_command, "here", "--queue", "research")
    assert cluster.get(KIND, "default", "here")["spec"]["queue"] == "research"
    run(pumice_command, "anywhere")
    assert cluster.get(KIND, "default", "anywhere")["spec"]["queue"] == "default"


def test_limits_that_nobody_stated_are_not_below_the_requests(
    cluster: Any, pumice_command: Any
) -> None:
    run(pumice_command, "large", "--requests", "cpu=4")
    (task,) = cluster.get(KIND, "default", "large")["spec"]["tasks"]
    asked = task["template"]["spec"]["containers"][0]["resources"]
    assert asked == {"requests": {"cpu": "4"}, "limits": {"cpu": "4", "memory": "100Mi"}}


def test_a_job_is_run_listed_viewed_and_deleted(cluster: Any, pumice_command: Any) -> None:
    run(pumice_command, "sleepy", "-r", "3", "-m", "2", "-R", "cpu=1500m", "-L", "memory=0.5Gi")
    spec = cluster.get(KIND, "default", "sleepy")["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert (spec["minAvailable"], spec["tasks"][0]["replicas"]) == (2, 3)
    assert container["resources"] == {"limits": {"memory": "512Mi"}, "requests": {"cpu": "1500m"}}
    title, row = pumice_command("job", "list").output.splitlines()
    assert row.split()[:4] == ["sleepy", "2026-01-01", "Batch", "3"]
    assert row.index("Batch") == title.index("JobType")
    assert "  Min Available:     \t2\n" in pumice_command("job", "view", "-N", "sleepy").output
    assert pumice_command("job", "delete", "-N", "sleepy").exit_code == 0
    assert pumice_command("job", "list").output == "No resources found\n"


@pytest.mark.parametrize(("verb", "action"), [("suspend", "AbortJob"), ("resume", "ResumeJob")])
def test_suspend_and_resume_post_an_order_about_the_job(
    cluster: Any, pumice_command: Any, verb: str, action: str
) -> None:
    run(pumice_command, "j", "-n", "lab")
    assert pumice_command("job", verb, "-N", "j", "-n", "lab").output == ""
    (order,), _ = cluster.list("Command.bus.volcano.sh", "lab")
    assert order["action"] == action
    assert order["metadata"]["name"].startswith(f"j-{action.lower()}-")
    assert order["target"]["uid"] == cluster.get(KIND, "lab", "j")["metadata"]["uid"]
    assert order["target"] == order["metadata"]["ownerReferences"][0]


def test_other_outputs_hold_whole_objects_or_names(pumice_command: Any) -> None:
    run(pumice_command, "a")
    run(pumice_command, "b")
    listed = json.loads(pumice_command("job", "list", "-o", "json").output)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    viewed = yaml.safe_load(pumice_command("job", "view", "-N", "b", "-o", "yaml").output)
    assert viewed == listed["items"][1]
    assert pumice_command("job", "list", "-o", "name").output == (
        "job.batch.volcano.sh/a\njob.batch.volcano.sh/b\n"
    )
    assert json.loads(pumice_command("job", "list", "-n", "x", "-o", "json").output)["items"] == []


def test_wide_adds_columns_and_no_headers_drops_the_title(pumice_command: Any) -> None:
    run(pumice_command, "a")
    title, row = pumice_command("job", "list", "-o", "wide").output.splitlines()
    assert title.split()[-3:] == ["Queue", "Scheduler", "Age"]
    assert row.split()[-2:] == ["volcano", "0s"]
    narrow = pumice_command("job", "list").output.splitlines()
    assert pumice_command("job", "list", "--no-headers").output == f"{narrow[1]}\n"


def test_a_failure_is_one_line_with_the_exit_code_of_the_original(pumice_command: Any) -> None:
    result = pumice_command("job", "view", "-N", "ghost")
    assert result.output == 'Failed to view job: jobs.batch.volcano.sh "ghost" not found\n'
    assert result.exit_code == 255


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a Job, got an empty file"),
        ("# nothing\n---\n", "expected a Job, got an empty file"),
        ("[]", "j.yaml:1: expected a Job, a mapping, got []"),
        ("a: [b\n", "j.yaml:2: expected readable YAML, got no ',' or ']' in a list in brackets"),
        ("a: 1\nb: 2\na: 3\n", "j.yaml:3: expected each key once, got 'a' twice"),
        ("a:\n\tb: 1\n", "j.yaml:2: expected readable YAML, got a tab, where YAML wants spaces"),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: x}\n",
            "j.yaml:1: Node x: apiVersion: expected 'batch.volcano.sh/v1alpha1', got 'v1'",
        ),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: x}\n",
            "j.yaml:2: CronJob default/x: kind: expected 'Job', got 'CronJob'",
        ),
        ("kind: 5", "j.yaml:1: kind: expected 'Job', got 5"),
        (
            "metadata: {name: a}\n---\nmetadata: {name: b}\n",
            "j.yaml: expected one Job, got 2 objects",
        ),
        (
            "spec: {tasks: [{replicas: 1.5}]}",
            "j.yaml:1: spec.tasks[0].replicas: expected a whole number of 32 bits, got 1.5",
        ),
        (
            "kind: Job\nmetadata: {name: a}\nspec:\n  tasks: {}\n",
            "j.yaml:4: Job default/a: spec.tasks: expected a list, got {}",
        ),
        (
            "spec: {tasks: [{template: {spec: {containers: [{resources: {limits: {cpu: x}}}]}}}]}",
            "containers[0].resources.limits.cpu: expected a quantity such as",
        ),
        (
            "metadata: {namespace: lab}",
            "expected 'default', the namespace of the command, got 'lab' (add --namespace lab)",
        ),
    ],
)
def test_a_file_that_cannot_be_run_is_reported_why(
    tmp_path: Path, cluster: Any, pumice_command: Any, text: str, problem: str
) -> None:
    path = tmp_path / "j.yaml"
    path.write_text(text)
    result = pumice_command("job", "run", "-f", str(path))
    assert result.exit_code == 255
    assert problem in result.output
    assert cluster.list(KIND, "")[0] == []


def test_a_job_is_read_from_standard_input(cluster: Any) -> None:
    result = CliRunner().invoke(
        main,
        ["job", "run", "-f", "-"],
        obj=lambda _: nullcontext(cluster),
        input='{"metadata": {"name": "piped"}}',
    )
    assert result.output == "run job piped successfully\n"


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("job.txt", "", "only support yaml file"),
        ("j.yaml", "a: [b\n", "yaml: line 1: did not find expected ',' or ']'"),
        (
            "j.yaml",
            "spec: {tasks: [{replicas: 1.5}]}",
            (
                "json: cannot unmarshal number 1.5 into Go struct field "
                "TaskSpec.spec.tasks.replicas of type int32"
            ),
        ),
        (
            "j.yaml",
            "spec: {tasks: {}}",
            (
                "json: cannot unmarshal object into Go struct field JobSpec.spec.tasks of type "
                "[]v1alpha1.TaskSpec"
            ),
        ),
        (
            "j.yaml",
            "spec: {tasks: [{template: {spec: {containers: [{resources: {limits: {cpu: x}}}]}}}]}",
            "quantities must match the regular expression",
        ),
        ("j.yaml", "metadata: {namespace: lab}", "does not match the namespace sent"),
    ],
)
def test_the_original_has_words_of_its_own(
    tmp_path: Path, cluster: Any, file: str, text: str, problem: str
) -> None:
    path = tmp_path / file
    path.write_text(text)
    out: list[str] = []
    words = ["job", "run", "-f", str(path)]
    assert run_vcctl(words, lambda _: nullcontext(cluster), out.append, out.append) == 255
    assert problem in "".join(out)


def test_numbers_become_texts_where_texts_are_wanted(
    tmp_path: Path, cluster: Any, pumice_command: Any
) -> None:
    path = tmp_path / "j.yml"
    path.write_text("metadata: {name: 12, labels: {on: true}}\nspec: {strange: [1]}\n")
    assert pumice_command("job", "run", "-f", str(path)).output == "run job 12 successfully\n"
    stored = cluster.get(KIND, "default", "12")
    assert stored["metadata"]["labels"] == {"true": "true"}  # as in kubectl, for keys too
    assert stored["spec"]["strange"] == [1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["--requests", "cpu"],
            "--requests: expected a resource and its amount, such as cpu=2,memo",
        ),
        (["--requests", "=1"], "--requests: expected a resource and its amount"),
        (["--requests", "cpu=NaN"], "--requests cpu: expected a quantity such as"),
        (
            ["--limits", "cpu=1,memory=-1"],
            "--limits memory: expected an amount of zero or more, got",
        ),
        (["-f", "j.yaml"], "-f, --name: expected a file or the name of a new job, got both"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_wanted(
    cluster: Any, pumice_command: Any, words: list[str], problem: str
) -> None:
    result = pumice_command("job", "run", "--name", "x", *words)
    assert result.exit_code == 255
    assert problem in result.output
    assert cluster.list(KIND, "")[0] == []


@pytest.mark.parametrize("number", ["-1", "99999999999", "x", "1.5"])
def test_numbers_of_pods_are_checked_before_anything_is_sent(
    pumice_command: Any, number: str
) -> None:
    result = pumice_command("job", "run", "--name", "x", "--replicas", number)
    assert result.exit_code == 2
    assert f"Invalid value for '--replicas' / '-r': {number.strip()}" in result.output.replace(
        f"'{number}'", number
    )

"""Volcano jobs that are not well formed: one sentence with file, field, found and wanted."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.testing import node, queue

JOB: Any = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "minAvailable": 1,
        "tasks": [
            {
                "name": "w",
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
            }
        ],
    },
}
TASK = ("spec", "tasks", 0)
GONE = object()
ODD = [
    (("spec", "tasks"), {"a": 1}, "spec.tasks: expected a list, got {'a': 1}"),
    (("spec", "tasks"), None, "spec.tasks: expected at least one task"),
    (TASK, "w", "spec.tasks[0]: expected a mapping, got 'w'"),
    (TASK, None, "spec.tasks[0].template.spec.containers: expected a list, got nothing"),
    (
        (*TASK, "replicas"),
        "many",
        "spec.tasks[0].replicas: expected a whole number of 32 bits, got 'many'",
    ),
    (
        (*TASK, "replicas"),
        1.5,
        "spec.tasks[0].replicas: expected a whole number of 32 bits, got 1.5",
    ),
    ((*TASK, "replicas"), -1, "spec.tasks[0].replicas: expected at least 0"),
    ((*TASK, "replicas"), 2**40, "spec.tasks[0].replicas: expected a whole number of 32 bits"),
    ((*TASK, "template"), GONE, "spec.tasks[0].template.spec.containers: expected a list"),
    ((*TASK, "template"), [], "spec.tasks[0].template: expected"),
    ((*TASK, "template", "spec"), None, "spec.tasks[0].template.spec.containers: expected a list"),
    ((*TASK, "dependsOn"), ["a"], "spec.tasks[0].dependsOn: expected"),
    ((*TASK, "partitionPolicy"), {"partitionSize": "x"}, "partitionPolicy.partitionSize: expected"),
    (("metadata",), None, "metadata.name: expected a value"),
    (("metadata",), [1], "metadata: expected an object, got [1]"),
    (("metadata", "name"), 5, "metadata.name: expected a text (quote it), got 5"),
    (("metadata", "labels"), ["a"], "metadata.labels: expected"),
    (("metadata", "annotations"), {"a": 5}, "metadata.annotations.a: expected a text (quote it)"),
    (("spec",), None, "spec: expected an object"),
    (("spec",), GONE, "spec: expected an object, got nothing"),
    (("spec", "plugins"), ["svc"], "spec.plugins: expected"),
    (("spec", "plugins"), {"nope": []}, "spec.plugins: expected one of env, hcclrank, mpi"),
    (("spec", "minAvailable"), "two", "spec.minAvailable: expected a whole number of 32 bits"),
    (("spec", "queue"), 3, "spec.queue: expected a text (quote it), got 3"),
    (("spec", "volumes"), "x", "spec.volumes: expected a list, got 'x'"),
    (("spec", "networkTopology"), "hard", "spec.networkTopology: expected"),
    (("status",), {"state": "x"}, "status.state: expected"),
]


def odd(path: Any, value: Any) -> Any:
    """A job with one thing wrong."""
    job = copy.deepcopy(JOB)
    at = job
    for step in path[:-1]:
        at = at[step]
    if value is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return job


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("n1"), queue("default")]))

    def run_verb(verb: Any, job: Any) -> Any:
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        arguments = {
            "explain": ["-f", "cluster.yaml", "-f", "job.yaml"],
            "whatif": ["-f", "cluster.yaml", "--job", "job.yaml"],
            "sim": ["--trace", "job.yaml", "--nodes", "cluster.yaml", "-o", "out"],
            "lint": ["job.yaml"],
        }
        result = CliRunner().invoke(main, [verb, *arguments[verb]])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run_verb


@pytest.mark.parametrize("verb", ["explain", "whatif", "sim"])
@pytest.mark.parametrize(("path", "value", "reported"), ODD)
def test_an_odd_job_is_reported_with_file_field_found_and_wanted(
    run: Any, verb: Any, path: Any, value: Any, reported: Any
) -> None:
    result = run(verb, odd(path, value))
    assert result.exit_code == 2
    (line,) = [line for line in result.output.splitlines() if line]
    assert re.match(r"Error: job\.yaml:\d+: Job default/", line)
    assert reported in line


@pytest.mark.parametrize(("path", "value"), [case[:2] for case in ODD])
def test_lint_finds_fault_with_an_odd_job(run: Any, path: Any, value: Any) -> None:
    assert run("lint", odd(path, value)).exit_code == 1


def test_lint_tells_what_an_api_server_would_refuse_in_the_pods_of_a_job(run: Any) -> None:
    job = odd(("spec", "volumes"), [{"mountPath": "/data", "volumeClaimName": "data"}])
    spec = job["spec"]["tasks"][0]["template"]["spec"]
    spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/data"}]
    result = run("lint", job)
    assert result.exit_code == 1
    assert result.output.splitlines()[0].endswith(
        "spec.tasks[0].template.spec.containers[0].volumeMounts[1].mountPath: "
        "got /data, expected unique (in pod train-w-0)"
    )


def test_lint_looks_at_the_pod_with_the_longest_name(run: Any) -> None:
    job = odd(("spec", "plugins"), {"svc": []})
    job["metadata"]["name"] = "x" * 59  # with -w-0 a host name of 63 letters, the most there may be
    assert run("lint", job).exit_code == 0
    job["spec"]["tasks"][0]["replicas"] = 11
    result = run("lint", job)
    assert "spec.tasks[0].template.spec.hostname" in result.output

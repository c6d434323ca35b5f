"""`pumice config check` and everything that starts a scheduler agree on a configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cli.up import _read_conf
from pumice.errors import ConfError
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.conf_reload import ConfFile

TIERS = "tiers:\n- plugins: [{name: gang}, {name: binpack%s}]\n"
GOOD = 'actions: "enqueue, allocate"\n' + TIERS % ""
GUARDS = "tiers:\n- plugins: [{name: conformance}]\n- plugins: [{name: drf}]\n"

# name: the file, how many errors, how many warnings
CASES = {
    "nothing to say": (GOOD, 0, 0),
    "an unknown action": (GOOD.replace("allocate", "alocate"), 1, 0),
    "an unknown plugin": (GOOD.replace("gang", "gnag"), 1, 0),
    "an unknown switch": (GOOD.replace("{name: gang}", "{name: gang, enableJobOrdr: true}"), 1, 0),
    "a switch that is no boolean": (
        GOOD.replace("{name: gang}", "{name: gang, enableJobOrder: 'yes'}"),
        1,
        0,
    ),
    "a switch without a value": (
        GOOD.replace("{name: gang}", "{name: gang, enableJobOrder: }"),
        0,
        1,
    ),
    "a switch of old": (GOOD.replace("{name: gang}", "{name: gang, disableJobOrder: true}"), 0, 1),
    "a switch in both spellings": (
        GOOD.replace("{name: gang}", "{name: gang, enableJobOrder: true, enabledJobOrder: true}"),
        1,
        0,
    ),
    "an unknown key": (GOOD + "unknown: {}\n", 1, 0),
    "a key twice": (GOOD + "tiers: []\n", 1, 0),
    "no YAML": ("actions: [\n", 1, 0),
    "nothing at all": ("", 1, 0),
    "no actions": (TIERS % "", 1, 0),
    "an unknown argument": (GOOD.replace("binpack}", "binpack, arguments: {x: 1}}"), 0, 1),
    "an argument of a wrong type": (
        GOOD.replace("binpack}", "binpack, arguments: {binpack.weight: high}}"),
        0,
        1,
    ),
    "an argument out of bounds": (
        GOOD.replace("binpack}", "usage, arguments: {thresholds: {cpu: 500}}}"),
        0,
        1,
    ),
    "a plugin twice": (GOOD.replace("binpack", "gang"), 0, 1),
    "an action twice": (GOOD.replace("allocate", "allocate, allocate"), 0, 1),
    "arguments for no action": (GOOD + "configurations: [{name: x, arguments: {}}]\n", 0, 1),
    "protected pods that may go": ('actions: "allocate, preempt"\n' + GUARDS, 0, 1),
    "a part that counts nothing": (
        GOOD.replace(
            "binpack}",
            "resource-strategy-fit, arguments: {sra: {enable: true, resources: a/b}}}",
        ),
        0,
        1,
    ),
    "proportion beside a tree of drf": (
        GOOD.replace("gang", "proportion").replace("binpack", "drf, enableHierarchy: true"),
        1,
        0,
    ),
    "an unknown source of measurements": (GOOD + "metrics: {type: graphite}\n", 1, 0),
    "two mistakes about measurements": (
        GOOD + "metrics: {type: prometheus, address: x, interval: soon}\n",
        2,
        0,
    ),
    "measurements of Elasticsearch": (
        GOOD + "metrics: {type: elasticsearch, address: 'http://x', tls: {insecureSkipVerify: "
        "'true'}}\n",
        0,
        0,
    ),
    "measurements of the custom metrics API": (
        GOOD + "metrics: {type: prometheus_adaptor}\n",
        0,
        0,
    ),
    "errors of reading and of meaning, and a warning": (
        GOOD.replace("gang", "gnag").replace("binpack}", "binpack, arguments: {x: 1}}") + "y: 1\n",
        2,
        1,
    ),
}


@pytest.fixture(params=CASES)
def case(request: Any, tmp_path: Path) -> tuple[Path, int, int]:
    text, errors, warnings = CASES[request.param]
    path = tmp_path / "my.conf"
    path.write_text(text)
    return path, errors, warnings


def checked(path: Path) -> tuple[list[str], list[str]]:
    """Return errors and warnings that `config check` prints."""
    result = CliRunner().invoke(main, ["config", "check", str(path)])
    start = f"{path}: line "
    errors = [line for line in result.stdout.splitlines() if line.startswith(start)]
    assert result.exit_code == (1 if errors else 0)
    assert ("hook" in result.stdout) is not bool(errors)
    return [line.removeprefix(f"{path}: ") for line in errors], _warnings(result.stderr, path)


def _warnings(text: str, path: Path) -> list[str]:
    start = f"warning: {path}: "
    return [line.removeprefix(start) for line in text.splitlines() if line.startswith(start)]


def _lines(error: ConfError) -> list[str]:
    return [str(problem) for problem in error.problems]


def test_a_check_counts_right(case: tuple[Path, int, int]) -> None:
    path, errors, warnings = case
    found = checked(path)
    assert (len(found[0]), len(found[1])) == (errors, warnings)


def test_a_served_scheduler_agrees(
    case: tuple[Path, int, int], caplog: pytest.LogCaptureFixture
) -> None:
    path, _, _ = case
    errors, warnings = checked(path)
    caplog.clear()
    if errors:
        with pytest.raises(ConfError) as caught:
            ConfFile(str(path), Scheduler, strict=True)
        assert _lines(caught.value) == errors
        return
    scheduler = ConfFile(str(path), Scheduler, strict=True).current
    bare = [line.removesuffix("; it has no effect") for line in warnings]
    assert [str(problem) for problem in scheduler.warnings] == bare
    scheduler.log_warnings()
    reported = [record.message for record in caplog.records if record.name == "pumice.scheduler"]
    assert reported == [f"configuration: {line}" for line in bare]


def test_a_file_that_a_check_refuses_is_not_used(case: tuple[Path, int, int]) -> None:
    path, errors, _ = case
    conf_file = ConfFile(str(path), Scheduler)
    assert (conf_file.problem is not None) is bool(errors)


def test_a_cluster_in_one_process_agrees(
    case: tuple[Path, int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _, _ = case
    errors, warnings = checked(path)
    capsys.readouterr()
    if errors:
        with pytest.raises(ConfError) as caught:
            _read_conf(path)
        assert _lines(caught.value) == errors
    else:
        assert _read_conf(path) == path.read_text()
    assert _warnings(capsys.readouterr().err, path) == ([] if errors else warnings)


def test_a_run_agrees(case: tuple[Path, int, int], tmp_path: Path) -> None:
    path, _, _ = case
    errors, warnings = checked(path)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"name": "s", "conf": GOOD, "objects": [node]}))
    result = CliRunner().invoke(main, ["run", str(scenario), "--conf", str(path)])
    assert result.exit_code == (2 if errors else 0)
    assert all(line in str(result.stderr) for line in errors)
    assert _warnings(result.stderr, path) == ([] if errors else warnings)

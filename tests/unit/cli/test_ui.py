"""`pumice ui` reports at once what it cannot do."""

import os
import socket
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.demo.living_cluster import demo_runs
from pumice.cli.main import main
from pumice.dashboard.runs import RunLibrary
from pumice.errors import InputError
from tests.unit.dashboard.test_live import eventually


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["ui", *words])


def test_without_a_cluster_it_names_what_else_can_be_shown(nowhere: None) -> None:
    result = run()
    assert result.exit_code == 1
    assert "name files with -f, or see --demo" in result.output


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--listen", "192.0.2.1"), "--tls-cert and --tls-key"),
        (("--demo", "--listen", "::"), "--tls-cert and --tls-key"),
    ],
)
def test_it_is_not_shown_to_other_machines_by_itself(words: Any, wanted: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert wanted in result.output


@pytest.mark.parametrize("words", [("--demo",), ("-f", "examples/first-cluster.yaml"), ()])
def test_a_port_that_is_taken_is_reported_before_anything_is_loaded(words: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(*words, "--port", str(port))
    assert result.exit_code == 2
    assert result.stdout == ""
    said = f"--port: expected a port that is free on 127.0.0.1, got {port} (Address already in use)"
    assert said in result.stderr


def test_files_do_not_know_people() -> None:
    result = run("-f", "examples/first-cluster.yaml", "--cluster-login")
    assert result.exit_code == 2
    assert "a cluster that knows people" in result.output


def test_help_is_answered_without_loading_what_is_served() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for option in ("--demo", "--sim", "--listen", "--cluster-login", "--token-file"):
        assert option in result.output


@pytest.mark.parametrize("kind", ["pipe", "deep", "folder"])
def test_what_is_no_run_is_an_answer_and_holds_nobody(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "run" / "summary.json"
    file.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_text("[" * 100_000)
    library = RunLibrary([tmp_path])
    if kind == "deep":
        with pytest.raises(InputError, match=r"expected a file of a run"):
            library.list()
    else:
        assert library.list() == {"runs": []}


def test_the_demo_has_two_simulations_to_compare() -> None:
    with demo_runs() as folder:
        library = RunLibrary([folder])
        eventually(lambda: list(folder.glob("*/report.html")))  # the last file that is written
        runs = [each["id"] for each in library.list()["runs"]]
        assert runs == ["demo:lending", "demo:reclaiming"]
        assert all(library.run(each) for each in runs)
    assert not folder.exists()


def test_the_configuration_of_the_demo_gives_no_warnings(tmp_path: Path) -> None:
    demo = resources.files("pumice.cli.demo").joinpath("living_cluster.yaml").read_text("utf-8")
    file = tmp_path / "demo.conf"
    file.write_text(yaml.safe_load(demo)["conf"])
    result = CliRunner().invoke(main, ["config", "check", str(file)])
    assert "no problems" in result.output

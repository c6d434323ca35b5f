"""`pumice serve` finds its process, prints help and version, and refuses what it cannot read."""

from typing import Any

import pytest
from click.testing import CliRunner

from pumice import __version__
from pumice.cli.main import main


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, ["serve", *words])


@pytest.mark.parametrize("process", ["scheduler", "controllers", "webhooks", "all"])
def test_help_lists_the_flags_and_those_without_effect(process: str) -> None:
    result = run(process, "--help")
    assert result.exit_code == 0
    assert "--kubeconfig" in result.output
    assert "Accepted without effect" in result.output
    assert "--logtostderr" in result.output


def test_version() -> None:
    assert run("scheduler", "--version").output == f"pumice {__version__}\n"


def test_an_unknown_flag_ends_with_code_2_and_a_hint() -> None:
    result = run("controllers", "--worker-thread=3")
    assert result.exit_code == 2
    assert "did you mean --worker-threads?" in result.output


def test_the_group_lists_its_processes() -> None:
    output = run("--help").output
    for process in ("scheduler", "controllers", "webhooks", "all"):
        assert process in output

"""Every command names a plugin that failed, and does not pretend that it answered."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "first-cluster.yaml"
FAILING = """
from pumice.plugin import Plugin


class Failing(Plugin, name="failing"):
    def order_queues(self, queues):
        raise ValueError("no hours")
"""
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: failing
  - name: predicates
"""


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    plugin, conf = tmp_path / "failing.py", tmp_path / "failing.conf"
    plugin.write_text(FAILING)
    conf.write_text(CONF)
    return ["--plugin", str(plugin), "--conf", str(conf)]


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "-f", str(EXAMPLE)],
        ["explain", "ai/sweep", "-f", str(EXAMPLE)],
        ["explain", "ai/sweep", "-f", str(EXAMPLE), "-o", "json"],
        ["whatif", "-f", str(EXAMPLE), "--add-nodes", "1"],
        ["queue", "order", "-f", str(EXAMPLE)],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_an_answer_that_a_failing_plugin_spoilt_is_no_success(
    command: list[str], options: list[str]
) -> None:
    done = CliRunner().invoke(main, [*command, *options])
    assert done.exit_code == 1
    said = "error: plugin failing failed in order_queues: ValueError: no hours"
    assert f"{said} ({options[1]}:7)\n" in done.stderr


def test_a_sweep_shows_it_as_the_error_of_the_run(options: list[str], tmp_path: Path) -> None:
    synthetic = EXAMPLE.parent / "sim" / "synthetic.yaml"
    words = ["sweep", "--trace", str(synthetic), "--limit", "3", "-j", "1", *options]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "plugin failing failed in order_queues" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'class A(Plugin, name="a"):\n    weight: int = arg("a.weight", default=1)\n',
            "write @dataclass(kw_only=True) above class A",
        ),
        (
            'class A(Plugin, name="a"):\n    def __init__(self, foo):\n        self.foo = foo\n',
            "expected a plugin that can be made without arguments, got 'A'",
        ),
    ],
)
def test_a_class_that_no_session_could_use_is_refused_when_it_is_loaded(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"from pumice.plugin import Plugin, arg\n\n\n{text}")
    done = CliRunner().invoke(main, ["plugin", "show", "a", "--plugin", str(file)])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_a_module_that_is_not_there_has_no_line() -> None:
    done = CliRunner().invoke(main, ["plugin", "list", "--plugin", "nowhere_to_be_found"])
    assert done.exit_code == 2
    assert "line" not in done.output


def test_a_name_that_is_no_class_of_the_file_is_answered_with_its_classes(tmp_path: Path) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    done = CliRunner().invoke(main, ["plugin", "list", "--plugin", f"{file}:its-failing"])
    assert done.exit_code == 2
    assert "its classes are Failing" in " ".join(done.output.split())

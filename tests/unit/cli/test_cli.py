"""The command line: what it prints, where, and its exit codes."""

import importlib
import json
import pkgutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from click.testing import CliRunner

import pumice
from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.cli.main import COMMANDS, main
from pumice.framework.arguments import arg
from pumice.framework.plugin import Plugin
from pumice.testing.builders import node, pod, pod_group
from tests.present import present

OBJECTS = [node("n1"), pod_group("pg", namespace="ns"), pod("a", namespace="ns", group="pg")]


class FakeScheduler:
    """Binds ns/a to n1; a world with a node named lost crashes it."""

    def __init__(
        self, conf: Any, *, seed: Any = 0, plugins: Any = (), services: Any = None
    ) -> None:
        self.conf, self.seed, self.services = conf, seed, services

    def cycle(self, objects: Any, now: Any, node_usage: Any) -> Any:
        assert now > 0
        assert node_usage == {}
        if any(one["metadata"]["name"] == "lost" for one in objects):
            raise KeyError("lost")
        stuck = Condition("Unschedulable", "True", "NotEnoughResources")
        return Decisions(
            binds={"ns/a": "n1"},
            evictions=["ns/old"],
            pipelined={"ns/next": "n2"},
            pod_groups={"ns/pg": PodGroupState("Inqueue", [stuck])},
            explanations={"ns/pg": "waits for one more node"},
        )


@dataclass(kw_only=True)
class Packing(Plugin, name="binpack"):
    """Prefer full nodes.

    The second paragraph.
    """

    weight: int = arg("binpack.weight", default=1, doc="factor of the score")

    def score_nodes(self, task: Any, nodes: Any) -> None:
        """Fill one node after the other."""
        raise NotImplementedError


@dataclass(kw_only=True)
class Gangs(Plugin, name="gang"):
    """Keep gangs together."""


def module(name: Any, **attributes: Any) -> Any:
    made = ModuleType(name)
    vars(made).update(attributes)
    return made


@pytest.fixture(autouse=True, scope="module")
def all_is_loaded() -> None:
    """Load every module first: one that is loaded beside the fakes would keep them for ever."""
    for found in pkgutil.walk_packages(pumice.__path__, "pumice."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch, all_is_loaded: Any) -> None:
    for fake in (
        module("pumice.scheduler", Scheduler=FakeScheduler, Observer=object),
        module("pumice.plugins", builtin_plugins=lambda: {"binpack": Packing, "gang": Gangs}),
        module("pumice.actions", ACTIONS={"allocate": object}),
    ):
        monkeypatch.setitem(sys.modules, fake.__name__, fake)
    monkeypatch.delenv("PUMICE_DEBUG", raising=False)


@pytest.fixture
def pumice_command() -> Any:
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


CONF = "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n"


def save(path: Any, **changes: Any) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"objects": OBJECTS, "conf": CONF, **changes}, indent=1))
    return path


HEAVY = ("aiohttp", "asyncio", "cryptography", "jinja2", "msgspec", "numpy", "re2", "rich", "yaml")


LIGHT = [
    ["--help"],
    ["--version"],
    ["explainn"],
    ["explain", "--no-such-option"],
    *([name, "--help"] for name in COMMANDS),
    ["config", "check", "--help"],
    ["job", "run", "--help"],
    ["plugin", "show", "--help"],
    ["queue", "order", "--help"],
    ["serve", "scheduler", "--help"],
    ["snapshot", "diff", "--help"],
    ["snapshot", "showw"],
]


def test_help_and_mistyped_words_are_answered_at_once() -> None:
    """They load nothing that decides, serves or draws; the first that does is named."""
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom pumice.cli.main import main\n"
        f"for words in {LIGHT!r}:\n"
        "    out = CliRunner().invoke(main, words)\n"
        "    assert out.exit_code in (0, 2), (words, out.output)\n"
        f"    loaded = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "    assert not loaded, (words, loaded)\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "pumice", "explain", "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stdout.startswith("Usage: python -m pumice explain")


@pytest.mark.parametrize("words", [["run"], ["whatif", "--job", "ns/pg", "-f"]])
def test_a_command_loads_no_other_answers_and_no_client(words: list[str], tmp_path: Path) -> None:
    others = ("importlib.metadata", "pumice.actions.preempt", "pumice.diagnosis.explain", "ssl")
    words = [*words, str(save(tmp_path / "scenario.json"))]
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom pumice.cli.main import main\n"
        f"assert CliRunner().invoke(main, {words!r}).exit_code == 0\n"
        f"print([each for each in {others!r} if each in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_has_help(name: Any, pumice_command: Any) -> None:
    assert name in pumice_command("--help").output
    result = pumice_command(name, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output


@pytest.mark.parametrize("words", [[], ["queue"], ["serve"]])
def test_a_command_alone_prints_its_help_line_by_line(words: Any, pumice_command: Any) -> None:
    result = pumice_command(*words)
    assert result.exit_code == 2
    assert "\nCommands:\n" in result.output


def test_a_missing_option_is_explained(pumice_command: Any) -> None:
    result = pumice_command("history")
    assert "Missing option '-f' / '--filename'. The record, made by" in result.output


def test_version(pumice_command: Any) -> None:
    assert pumice_command("--version").output == f"pumice {pumice.__version__}\n"


def test_all_passed_ends_with_a_plain_line_and_exit_0(tmp_path: Path, pumice_command: Any) -> None:
    save(tmp_path / "a" / "1.json", expect={"binds": {"ns/a": "n1"}})
    save(tmp_path / "b" / "2.json", expect={"bindsNum": 1})
    result = pumice_command("test", tmp_path)
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "2 passed, 0 failed"
    assert str(tmp_path / "a") in result.output
    assert "FAIL" not in result.output


def test_a_failure_is_reported_briefly_and_exits_1(tmp_path: Path, pumice_command: Any) -> None:
    wanted = {f"ns/{number:02}": "n0" for number in range(16)}
    save(tmp_path / "1.json", expect={"binds": {"ns/a": "n0", **wanted}})
    save(tmp_path / "2.json", objects=[node("lost")], expect={"binds": {}})
    result = pumice_command("test", tmp_path)
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert lines[0] == f"FAIL  {tmp_path / '1.json'}"
    assert lines[1].strip() == "ns/a: bound to n1, expected n0"
    assert lines[11].strip() == "… and 7 more"
    assert lines[12] == f"ERROR {tmp_path / '2.json'}"
    assert lines[13].strip().startswith("KeyError: 'lost'")
    assert lines[-1] == "0 passed, 1 failed, 1 error"


def test_junit_is_written(tmp_path: Path, pumice_command: Any) -> None:
    save(tmp_path / "1.json", expect={"bindsNum": 0})
    report = tmp_path / "report.xml"
    assert pumice_command("test", "--junit", report, tmp_path).exit_code == 1
    failure = present(ET.parse(report).find(".//failure"))  # noqa: S314  (our own text)
    assert failure.text == "1 bind, expected 0"


def test_options_choose_files_and_facts(tmp_path: Path, pumice_command: Any) -> None:
    save(tmp_path / "1.json", expect={"nominated": {"ns/x": "n1"}})
    save(tmp_path / "2.json", expect={"unschedulable": {"ns/pg": "x"}})
    assert pumice_command("test", tmp_path).exit_code == 0
    chosen = pumice_command("test", "--nominated", "-k", "2.json", tmp_path)
    assert chosen.output.splitlines()[-1] == "1 passed, 0 failed"
    assert pumice_command("test", "--nominated", tmp_path).exit_code == 1
    assert pumice_command("test", "--messages", tmp_path).exit_code == 1
    stopped = pumice_command("test", "--nominated", "--messages", "-x", tmp_path)
    assert stopped.output.splitlines()[-1] == "0 passed, 1 failed"


def test_nothing_to_run_is_bad_usage(tmp_path: Path, pumice_command: Any) -> None:
    (tmp_path / "pods.yaml").write_text("kind: Pod\n")
    result = pumice_command("test", tmp_path)
    assert result.exit_code == 2
    assert "no scenario found" in result.stderr
    assert pumice_command("test").exit_code == 2
    assert pumice_command("test", tmp_path / "absent").exit_code == 2


def test_run_prints_groups_then_placements(tmp_path: Path, pumice_command: Any) -> None:
    result = pumice_command("run", save(tmp_path / "1.json"))
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["ns/pg", "Inqueue", "waits", "for", "one", "more", "node"] in rows
    assert ["ns/a", "bound", "n1"] in rows
    assert ["ns/old", "evicted"] in rows
    assert ["ns/next", "pipelined", "n2"] in rows


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_run_prints_the_keys_of_expect(
    form: str, read: Any, tmp_path: Path, pumice_command: Any
) -> None:
    result = pumice_command("run", save(tmp_path / "1.json"), "-o", form)
    record = read(result.stdout)
    assert record["bindOrder"] == ["ns/a"]
    assert record["podGroups"]["ns/pg"]["phase"] == "Inqueue"


def test_run_write_makes_the_file_pass(tmp_path: Path, pumice_command: Any) -> None:
    path = save(tmp_path / "1.json", expect={"binds": {}})
    assert pumice_command("test", path).exit_code == 1
    result = pumice_command("run", path, "--write")
    assert "the rest is unchanged" in result.stderr
    assert pumice_command("test", path).exit_code == 0
    assert json.loads(path.read_text())["objects"] == OBJECTS


def test_run_write_is_done_before_a_closed_pipe_ends_the_printing(
    tmp_path: Path, pumice_command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("pumice.cli.run.print_decisions", closed)
    path = save(tmp_path / "1.json")
    pumice_command("run", path, "--write")
    assert json.loads(path.read_text())["expect"]["binds"] == {"ns/a": "n1"}


def test_run_warns_of_arguments_said_in_vain(tmp_path: Path, pumice_command: Any) -> None:
    conf = f"{CONF}    arguments:\n      binpack.weightz: 2\n"
    result = pumice_command("run", save(tmp_path / "1.json", conf=conf), "-o", "json")
    assert result.exit_code == 0
    assert "line 6" in result.stderr
    assert "did you mean 'binpack.weight'?" in result.stderr
    assert json.loads(result.stdout)["binds"] == {"ns/a": "n1"}


def test_run_warns_of_names_of_nothing_and_of_objects_reported_twice(
    tmp_path: Path, pumice_command: Any
) -> None:
    odd = [*OBJECTS, node("n1"), pod("b", namespace="ns", group="pq")]
    path = save(tmp_path / "1.json", objects=odd)
    result = pumice_command("run", path)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert [line.partition(" Node")[2] for line in lines[:1]] == [
        " n1 occurs 2 times; the last one counts"
    ]
    assert "PodGroup ns/pg names queue 'default', which does not exist" in lines[1]
    assert "Pod ns/b names pod group 'ns/pq', which does not exist" in lines[2]
    assert "(did you mean 'ns/pg'?)" in lines[2]
    line = path.read_text().splitlines().index('    "name": "b",')
    assert line - 4 <= int(lines[2].split(":")[2]) <= line + 1


def test_run_names_a_plugin_that_failed_and_exits_1(
    tmp_path: Path, pumice_command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "plugin binpack failed in score_nodes: ValueError: oops"
    cycle = FakeScheduler.cycle

    def failing(self: Any, *args: Any) -> Any:
        decisions = cycle(self, *args)
        decisions.failures = [line]
        return decisions

    monkeypatch.setattr(FakeScheduler, "cycle", failing)
    path = save(tmp_path / "1.json")
    before = path.read_text()
    result = pumice_command("run", path, "--write")
    assert result.exit_code == 1
    assert f"error: {line}" in result.stderr.splitlines()
    assert "bound" in result.stdout
    assert path.read_text() == before
    path = save(tmp_path / "2.json", expect={"binds": {"ns/a": "n1"}})
    result = pumice_command("test", path)
    assert result.exit_code == 1
    assert line in result.output


def test_tables_are_not_padded_when_nobody_looks(tmp_path: Path, pumice_command: Any) -> None:
    result = pumice_command("run", save(tmp_path / "1.json"))
    assert all(line == line.rstrip() for line in result.stdout.splitlines())
    assert max(map(len, result.stdout.splitlines())) < 60


def test_an_error_of_pumice_is_one_message(
    tmp_path: Path, pumice_command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.json"
    path.write_text("{}")
    result = pumice_command("run", path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {path}: objects: expected")
    assert len(result.stderr.splitlines()) == 1
    monkeypatch.setenv("PUMICE_DEBUG", "1")
    assert "ScenarioError" in repr(pumice_command("run", path).exception)


def test_config_check_shows_who_decides(tmp_path: Path, pumice_command: Any) -> None:
    path = tmp_path / "my.conf"
    path.write_text(CONF)
    result = pumice_command("config", "check", path)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["score_nodes", "enableNodeOrder", "sum", "binpack"] in rows
    assert not [row for row in rows if row[:1] == ["job_ready"]]


def test_config_check_lists_every_problem_with_line_and_hint(
    tmp_path: Path, pumice_command: Any
) -> None:
    path = tmp_path / "my.conf"
    path.write_text(
        "actions: allocatex\ntiers:\n- plugins:\n  - name: binpak\n"
        "  - name: gang\n    enableJobOrdr: true\n"
    )
    result = pumice_command("config", "check", path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["line 1", "line 4", "line 6"]
    assert "did you mean 'allocate'?" in lines[0]
    assert "did you mean 'binpack'?" in lines[1]


def test_config_check_warns_of_what_a_run_warns_of_and_refuses_it_if_asked(
    tmp_path: Path, pumice_command: Any
) -> None:
    path = tmp_path / "my.conf"
    path.write_text(f"{CONF}    arguments:\n      binpack.weight: high\n")
    result = pumice_command("config", "check", path)
    assert result.exit_code == 0
    assert f"warning: {path}: line 6: " in result.stderr
    assert result.stderr.endswith("; it has no effect\n")
    assert result.stdout.startswith(f"{path}: no errors\n")
    strict = pumice_command("config", "check", "--strict", path)
    assert (strict.exit_code, strict.stderr) == (1, result.stderr)


def test_config_check_looks_at_the_section_of_measurements(
    tmp_path: Path, pumice_command: Any
) -> None:
    path = tmp_path / "my.conf"
    path.write_text(f"{CONF}metrics:\n  type: prometeus\n  interval: soon\n")
    lines = pumice_command("config", "check", path).stdout.splitlines()
    assert [line.split(": ")[1:3] for line in lines] == [
        ["line 6", "metrics.type"],
        ["line 7", "metrics.interval"],
    ]


def test_config_check_does_not_ask_for_files_of_the_pod(
    tmp_path: Path, pumice_command: Any
) -> None:
    path = tmp_path / "my.conf"
    path.write_text(f"{CONF}metrics:\n  type: metrics-server\n")
    assert pumice_command("config", "check", path).exit_code == 0


def test_run_refuses_a_plugin_that_does_not_exist(tmp_path: Path, pumice_command: Any) -> None:
    result = pumice_command("run", save(tmp_path / "1.json", conf=CONF.replace("pack", "pak")))
    assert result.exit_code == 2
    assert "did you mean 'binpack'?" in result.stderr
    assert result.stdout == ""


def test_plugins_are_listed_and_described(pumice_command: Any) -> None:
    rows = [line.split() for line in pumice_command("plugin", "list").stdout.splitlines()]
    assert ["binpack", "Prefer", "full", "nodes."] in rows
    shown = pumice_command("plugin", "show", "binpack").stdout
    assert "The second paragraph." in shown
    assert ["binpack.weight", "integer", "1", "factor", "of", "the", "score"] in [
        line.split() for line in shown.splitlines()
    ]
    assert ["score_nodes", "NodeOrder", "enableNodeOrder", "sum"] in [
        line.split() for line in shown.splitlines()
    ]
    assert "order_jobs" not in shown
    assert "Fill one node after the other." in shown
    assert "no arguments" in pumice_command("plugin", "show", "gang").stdout
    unknown = pumice_command("plugin", "show", "binpak")
    assert unknown.exit_code == 2
    assert "did you mean 'binpack'?" in unknown.stderr


def test_a_name_without_its_option_is_answered_with_the_option(pumice_command: Any) -> None:
    assert "a name is given as --name NAME" in pumice_command("job", "delete", "mine").stderr


@pytest.mark.parametrize(("typed", "meant"), [("simm", "sim"), ("explainn", "explain")])
def test_a_mistyped_command_is_answered_with_what_was_meant(typed: str, meant: str) -> None:
    result = CliRunner().invoke(main, [typed])
    assert result.exit_code == 2
    assert f"Did you mean {meant!r}?" in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_words_are_completed_in_a_shell(shell: str) -> None:
    script = CliRunner().invoke(
        main, prog_name="pumice", env={"_PUMICE_COMPLETE": f"{shell}_source"}
    )
    assert "pumice" in script.output
    words = {"bash": {"COMP_WORDS": "pumice exp", "COMP_CWORD": "1"}}
    env = {"_PUMICE_COMPLETE": f"{shell}_complete", **words.get(shell, {})}
    if shell != "bash":
        env |= {"COMP_WORDS": "pumice exp", "COMP_CWORD": "exp" if shell == "fish" else "1"}
    found = CliRunner().invoke(main, prog_name="pumice", env=env)
    assert "explain" in found.output


def test_a_folder_names_the_scenarios_that_are_run_by_name_only(tmp_path: Path) -> None:
    apart, plain = tmp_path / "a.scenario", tmp_path / "b.yaml"
    apart.write_text("objects: []\nexpect: {binds: {ns/a: n1}}\n")
    said = f"1 .scenario file not run: {apart}; name one, with its --plugin\n"
    result = CliRunner().invoke(main, ["test", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Error: {tmp_path}: no scenario found; {said}")
    plain.write_text(apart.read_text())
    result = CliRunner().invoke(main, ["test", str(tmp_path)])
    assert (result.exit_code, result.stderr) == (0, f"note: {said}")
    result = CliRunner().invoke(main, ["test", str(tmp_path), str(apart)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "2 passed" in result.stdout

"""Every example of the documentation runs, and its tables agree with the code.

A fenced `yaml` block with `objects` is a scenario, a `python runnable` block a program, a line
`$ pumice …` of a `console` block a command (`console refused` if it exits with 1). A page of a
plugin or an action has a scenario that does not hold without it.
"""

import dataclasses
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.actions import ACTIONS
from pumice.api.yaml_text import parse_yaml
from pumice.cli.main import main
from pumice.framework.arguments import ACTION_ARGUMENTS, NoArguments, describe_arguments
from pumice.plugins import builtin_plugins
from pumice.scenarios import scenario as scenario_files
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.runner import check, default_scheduler

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
STAND_INS = {
    "volcano-scheduler.conf": "volcano-scheduler.conf",
    "new.conf": "volcano-scheduler.conf",
    "objects.yaml": "sim/manifests.yaml",
    "now.yaml": "first-cluster.yaml",
    "job.yaml": "train-job.yaml",
}
"""Files that pages speak of as the reader's own, and the examples that take their place."""
PLUGINS = builtin_plugins()
WITHOUT_SCENARIO = {"extender"}  # its other half is a service of your own
SEEDS = range(3)

_FENCE = re.compile(r"^(```+)([^\n`]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CELL = re.compile(r"(?<!\\)\|")


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block; `words` is the text after the fence, the language first."""

    page: Path
    line: int
    words: tuple[str, ...]
    text: str

    @property
    def id(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def blocks_of(page: Any) -> Any:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, tuple(match[2].split()), match[3])
        for match in _FENCE.finditer(text)
    ]


def blocks(*words: Any) -> Any:
    """List the blocks of all pages whose fence begins with these words."""
    return [b for page in PAGES for b in blocks_of(page) if b.words[: len(words)] == words]


@cache
def scenarios_of(page: Any) -> Any:
    found = []
    for block in blocks_of(page):
        if block.words[:1] == ("yaml",):
            documents = parse_yaml(block.text, block.id)
            if len(documents) == 1 and scenario_files.is_scenario(documents[0]):
                found.append(scenario_files.scenario_from(documents[0], Path(block.id)))
    return found


SCENARIOS = [scenario for page in PAGES for scenario in scenarios_of(page)]
PLUGIN_PAGES = [DOCS / "plugins" / f"{name}.md" for name in sorted(PLUGINS)]
ACTION_PAGES = [DOCS / "actions" / f"{name}.md" for name in ACTIONS]


def by_name(page: Any) -> Any:
    return page.stem


def rows_below(page: Any, heading: Any) -> Any:
    """Return the cells of the table right below a heading, its two first lines left out."""
    text = page.read_text(encoding="utf-8")
    match = re.search(rf"^## {heading}\n+((?:\|.*\n)*)", text, re.MULTILINE)
    assert match, f"{page.name} has no part '{heading}'"
    lines = match[1].splitlines()
    return [tuple(cell.strip() for cell in _CELL.split(line)[1:-1]) for line in lines[2:]]


# Examples


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.path))
def test_a_scenario_holds_whatever_the_seed(scenario: Any) -> None:
    for seed in SEEDS:
        played = dataclasses.replace(scenario, seed=seed)
        assert check(played, default_scheduler, CompareOptions(messages=True, nominated=True)) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.path))
def test_a_scenario_expects_something_to_happen(scenario: Any) -> None:
    decisive = {"binds", "evictions", "pipelined", "openedGates"}
    decisive |= {"podGroups", "phases"}
    decisive |= {f"{what}PerPodGroup" for what in ("bound", "evicted", "pipelined")}
    assert any(record.get(key) for record in scenario.expect for key in decisive)


@pytest.mark.parametrize("page", PLUGIN_PAGES, ids=by_name)
def test_the_example_of_a_plugin_does_not_hold_without_it(page: Any) -> None:
    if page.stem in WITHOUT_SCENARIO:
        assert scenarios_of(page) == []
        return
    assert any(fails(without_plugin(each, page.stem)) for each in scenarios_of(page))


@pytest.mark.parametrize("page", ACTION_PAGES, ids=by_name)
def test_the_example_of_an_action_does_not_hold_without_it(page: Any) -> None:
    assert any(fails(without_action(each, page.stem)) for each in scenarios_of(page))


def fails(scenario: Any) -> Any:
    """Return whether a scenario breaks with every seed, so that no lucky choice hides it."""
    tries = [dataclasses.replace(scenario, seed=seed) for seed in SEEDS]
    return all(check(each, default_scheduler, CompareOptions()) for each in tries)


def without_plugin(scenario: Any, name: Any) -> Any:
    conf = yaml.safe_load(scenario.conf)
    for tier in conf["tiers"]:
        tier["plugins"] = [each for each in tier["plugins"] if each["name"] != name]
    return dataclasses.replace(scenario, conf=yaml.safe_dump(conf))


def without_action(scenario: Any, name: Any) -> Any:
    conf = yaml.safe_load(scenario.conf)
    left = [each for each in re.split(r",\s*", conf["actions"]) if each != name]
    assert left, "an example needs a second action, so that the first can be taken out"
    return dataclasses.replace(scenario, conf=yaml.safe_dump(conf | {"actions": ", ".join(left)}))


@pytest.mark.parametrize("block", blocks("python", "runnable"), ids=lambda block: block.id)
def test_a_program_marked_runnable_runs(
    block: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_copy_of_examples(tmp_path, monkeypatch)
    program = compile("\n" * block.line + block.text, str(block.page), "exec")
    exec(program, {"__name__": "example"})  # noqa: S102  our own documentation


def in_copy_of_examples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a copy of `examples`, so that commands and programs may write."""
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", folder / "examples")
        for name, example in STAND_INS.items():
            shutil.copy(ROOT / "examples" / example, folder / name)
    (folder / "tests").mkdir()
    (folder / "tests" / "golden").symlink_to(ROOT / "tests" / "golden")
    monkeypatch.chdir(folder)


def commands(block: Any) -> Any:
    lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ pumice ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def run(arguments: list[str]) -> Any:
    """Run a command; `> FILE` takes what it prints."""
    words, _, target = " ".join(arguments).partition(" > ")
    result = CliRunner().invoke(main, arguments[: len(words.split())] if target else arguments)
    if target:
        Path(target).write_text(result.stdout, encoding="utf-8")
    return result


@pytest.mark.parametrize(
    "block", [b for b in blocks("console") if commands(b)], ids=lambda block: block.id
)
def test_a_command_of_the_console_succeeds(
    block: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_copy_of_examples(tmp_path, monkeypatch)
    for arguments in commands(block):
        result = run(arguments)
        wanted = 1 if block.words[1:] == ("refused",) else 0
        assert result.exit_code == wanted, f"{shlex.join(arguments)}\n{result.output}"


def outputs() -> Iterator[Any]:
    """Pair each block of output with the last command before it."""
    for page in PAGES:
        last: list[Any] = []
        for block in blocks_of(page):
            last = commands(block)[-1:] if block.words[:1] == ("console",) else last
            if block.words[:2] == ("text", "output"):
                yield block, last


@pytest.mark.parametrize(
    ("block", "command"), list(outputs()), ids=lambda each: getattr(each, "id", "")
)
def test_output_that_is_shown_is_what_the_command_prints(
    block: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines may be wrapped; an ellipsis stands for anything, and so does a line left out."""
    in_copy_of_examples(tmp_path, monkeypatch)
    printed = " ".join(run(command[0]).output.split())
    for line in block.text.splitlines():
        for part in line.split("…"):
            assert " ".join(part.split()) in printed


# Pages and tables


@pytest.mark.parametrize("folder", ["plugins", "actions"])
def test_every_plugin_and_action_has_a_page_and_a_line_in_the_index(folder: str) -> None:
    names = set(PLUGINS if folder == "plugins" else ACTIONS)
    pages = {page.stem for page in (DOCS / folder).glob("*.md")} - {"README"}
    index = (DOCS / folder / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[([\w-]+)\]\(\1\.md\) \|", index, re.MULTILINE)
    assert pages == names
    assert sorted(listed) == sorted(names)


@pytest.mark.parametrize("page", [*PLUGIN_PAGES, *ACTION_PAGES], ids=by_name)
def test_the_table_of_arguments_is_what_the_code_declares(page: Any) -> None:
    cls = PLUGINS.get(page.stem) or ACTION_ARGUMENTS.get(page.stem, NoArguments)
    declared = [
        (f"`{row.key}`", row.type, row.default, row.bounds, row.doc.replace("|", "\\|"))
        for row in describe_arguments(cls)
    ]
    wanted = "\n".join(f"| {' | '.join(row)} |" for row in declared)
    assert rows_below(page, "Arguments") == declared, f"the table should be:\n{wanted}"


@pytest.mark.parametrize("page", [*PLUGIN_PAGES, *ACTION_PAGES], ids=by_name)
def test_pages_of_plugins_and_actions_have_one_shape(page: Any) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^## (.+)$", prose, re.MULTILINE)
    wanted = ["Arguments", "Example", "When a job waits", "Differences from Volcano"]
    assert [each for each in headings if each in wanted] == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_file_or_heading_of_ours_leads_there(page: Any) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} does not exist"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{target}: no such heading"


def anchors(page: Any) -> Any:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}

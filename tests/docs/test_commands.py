"""No page shows a command of ours that nobody runs.

A `$ pumice …` line of a `console` block is run by test_examples.  Any other command must be in the
table below, with the test that runs it elsewhere, and its words must be ones that it takes.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pumice.cli.main import main
from pumice.cli.serve import ServeCommand
from pumice.serve.options import read_options
from tests.docs.test_examples import _FENCE, PAGES, ROOT, blocks_of

RUN_ELSEWHERE = {
    "pumice up": "tests/unit/cli/test_up.py",  # serves until it is stopped
    "pumice ui": "tests/unit/cli/test_ui.py",  # so does this
    "pumice serve scheduler --ui": "tests/browser",
    "pumice serve scheduler --scheduler-name=pumice": "tests/e2e_kube/test_migration.py",
    "pumice record": "tests/unit/cli/test_record.py",  # runs until it is stopped
    "pumice replay": "tests/unit/replay/test_exact.py",
    "pumice tune": "tests/unit/tuning/test_tune.py",
    "pumice canary": "tests/unit/replay/test_compare.py",
    "pumice history": "tests/unit/cli/test_record.py",  # a record of the reader's own
    "pumice run DIR": "tests/unit/cli/test_record.py",
    "pumice queue order -f DIR": "tests/unit/cli/test_record.py",
    "pumice queue list -f DIR": "tests/unit/cli/test_record.py",
    "pumice snapshot show DIR": "tests/unit/cli/test_record.py",
    "pumice snapshot save DIR": "tests/unit/cli/test_record.py",
    "pumice snapshot diff DIR": "tests/unit/cli/test_record.py",
    "pumice whatif -f DIR": "tests/unit/cli/test_record.py",
    "pumice diff old.conf new.conf -f DIR": "tests/unit/cli/test_record.py",
    "pumice config check new.conf --cluster DIR": "tests/unit/cli/test_record.py",
    "pumice serve scheduler --record": "tests/unit/serve/test_start.py",
    "pumice serve webhooks": "tests/e2e_kube/test_admission.py",
    "pumice job": "tests/unit/cli/test_job.py",  # asks a running cluster
    "pumice queue create": "tests/unit/cli/test_queue.py",  # so does this
    "pumice explain my-job -f": "tests/unit/cli/test_explain.py",  # the reader's own files
    "pumice explain my-job": "tests/unit/cli/test_live_sources.py",  # asks a running cluster
    "pumice doctor": "tests/unit/diagnosis/test_doctor.py",
}
"""Commands that a page cannot run by itself, and where they are run."""
_COMMAND = re.compile(r"^(?:\$ )?((?:pumice|make) .*)$")


def shown() -> Iterator[tuple[str, str]]:
    """Return the commands of all pages that test_examples does not run, with their places."""
    for page in PAGES:
        for block in blocks_of(page):
            is_run = block.words[:1] == ("console",)
            for line in block.text.replace("\\\n", " ").splitlines():
                found = _COMMAND.match(line)
                if found and not (is_run and line.startswith("$ pumice ")):
                    yield block.id, found[1]


SHOWN = sorted(set(shown()))
OURS = [(place, command) for place, command in SHOWN if command.startswith("pumice ")]


@pytest.mark.parametrize(("place", "command"), OURS, ids=[command for _, command in OURS])
def test_a_command_that_is_not_run_here_is_run_elsewhere(place: str, command: str) -> None:
    tests = [test for start, test in RUN_ELSEWHERE.items() if command.startswith(start)]
    assert tests, f"{place}: '{command}' is run by no test: make it a console block"
    assert (ROOT / tests[0]).exists()
    verb = command.split()[1]
    files = [ROOT / tests[0]] if tests[0].endswith(".py") else (ROOT / tests[0]).glob("*.py")
    assert any(verb in file.read_text(encoding="utf-8") for file in files)


def in_prose() -> Iterator[tuple[str, str]]:
    """Return the commands that sentences name, but for those with gaps and choices."""
    for page in PAGES:
        prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
        for command in re.findall(r"`(pumice [a-z][^`\n]*)`", prose):
            if not set(command) & set("…[|<{"):
                yield page.name, command


NAMED = sorted({*OURS, *in_prose()})


@pytest.mark.parametrize(("place", "command"), NAMED, ids=[command for _, command in NAMED])
def test_the_words_of_a_command_are_ones_that_it_takes(place: str, command: str) -> None:
    words = shlex.split(command, comments=True)[1:]
    node: click.Command = main
    ctx = click.Context(main, info_name="pumice")
    while isinstance(node, click.Group) and words:
        found = node.get_command(ctx, words[0])
        assert found is not None, f"{place}: no verb {words[0]}"
        node, ctx, words = found, click.Context(found, parent=ctx, info_name=words[0]), words[1:]
    if isinstance(node, ServeCommand):
        read_options(node.process, words)
        return
    try:
        node.make_parser(ctx).parse_args(words)
    except click.BadOptionUsage as error:  # a sentence may name an option without its value
        if not command.endswith(error.option_name):
            raise


def test_every_entry_of_the_table_is_needed() -> None:
    needed = {
        next(start for start in RUN_ELSEWHERE if command.startswith(start)) for _, command in OURS
    }
    assert needed == set(RUN_ELSEWHERE)


def test_every_verb_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z0-9]+):.*## ", makefile, re.MULTILINE))
    named = {command.split()[1] for _, command in SHOWN if command.startswith("make ")}
    prose = "\n".join(Path(page).read_text(encoding="utf-8") for page in PAGES)
    named |= set(re.findall(r"`make ([a-z0-9]+)", prose))
    assert named <= verbs

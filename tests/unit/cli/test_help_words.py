"""The help of verbs: plain sentences, though Volcano's verbs have their own words."""

import click
import pytest
from click.testing import CliRunner

from pumice.cli.main import main


def verbs() -> list[tuple[str, click.Command]]:
    found = []
    for name in ("job", "queue", "pod", "jobflow", "jobtemplate"):
        group = main.get_command(click.Context(main), name)
        assert isinstance(group, click.Group)
        found += [(f"{name} {verb}", command) for verb, command in group.commands.items()]
    return found


@pytest.mark.parametrize(("name", "command"), verbs())
def test_verbs_and_their_options_are_described_by_sentences(
    name: str, command: click.Command
) -> None:
    texts = [command.help or ""]
    texts += [each.help or "" for each in command.params if isinstance(each, click.Option)]
    for text in texts:
        said = text.partition("  [")[0]
        assert said[:1].isupper(), (name, text)
        assert said.endswith("."), (name, text)


def test_vcctl_keeps_the_words_of_volcano() -> None:
    assert dict(verbs())["queue list"].help == "List all queues."
    printed = CliRunner().invoke(main, ["vcctl", "queue", "--help"]).output
    assert "lists all the queue\n" in printed


def test_descriptions_of_plugins_have_no_marks_of_code() -> None:
    printed = CliRunner().invoke(main, ["plugin", "list"]).output
    assert "minMember tasks" in printed
    assert "``" not in printed

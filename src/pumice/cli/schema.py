"""`pumice schema`: JSON schemas of the files that users write."""

import click

from pumice.cli.printing import print_data

FILES = ("changes", "conf", "explanation", "scenario")


@click.command()
@click.argument("file", metavar="|".join(FILES), type=click.Choice(FILES))
def schema(*, file: str) -> None:
    """Print the JSON schema of a kind of file, for an editor.

    In VS Code, the first line of a file "# yaml-language-server: $schema=PATH" names it.
    """
    from pumice.scenarios.file_schemas import file_schema

    print_data(file_schema(file), "json")

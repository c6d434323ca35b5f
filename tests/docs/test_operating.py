"""The page on operating agrees with the code: flags, figures, controllers."""

import re
from pathlib import Path
from typing import Any

import pytest

from pumice.cli.serve import shown, written_default
from pumice.metrics import CATALOGUE
from pumice.serve.controllers import NAMES
from pumice.serve.options import FEATURE_GATES, FLAGS

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()


def section(name: Any) -> Any:
    """Return the rows of the table between two marks, without its head."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert found, name
    rows = [line for line in found[1].splitlines() if line.startswith("|")]
    return rows[2:]


def flag_rows(process: Any) -> Any:
    """Write the rows of a table of flags."""
    rows = []
    for flag in FLAGS[process]:
        default = written_default(flag)
        if flag.kind == "gates":
            default = "see above"
        meaning = f"no effect: {flag.ignored}" if flag.ignored else flag.help
        rows.append(f"| `{shown(flag)}` | {f'`{default}`' if default else ''} | {meaning} |")
    return rows


def figure_rows() -> Any:
    """Write the rows of the table of figures."""
    return [
        f"| `{figure.name}` | {figure.kind} | {', '.join(figure.labels)} | {figure.help} |"
        for figure in CATALOGUE
    ]


@pytest.mark.parametrize("process", ["scheduler", "controllers", "webhooks"])
def test_the_tables_of_flags_are_those_of_the_code(process: str) -> None:
    assert section(f"flags {process}") == flag_rows(process)


def test_the_table_of_figures_is_that_of_the_code() -> None:
    assert section("figures") == figure_rows()


def test_the_feature_gates_are_named_with_their_defaults() -> None:
    for name, on in FEATURE_GATES.items():
        assert f"`{name}={str(on).lower()}`" in PAGE


def test_the_controllers_are_named() -> None:
    for name in NAMES.values():
        assert f"`{name}`" in PAGE

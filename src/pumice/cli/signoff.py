"""How a sign-off is asked for and printed: assumptions, tables, conditions that a change breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pumice.api.wording import value_of
from pumice.cli.options import runtime_option, together, within_option
from pumice.cli.printing import echo, print_heading, print_rows, print_text

if TYPE_CHECKING:
    from pumice.api.conditions import Condition
    from pumice.diagnosis.played import Terms
    from pumice.diagnosis.signoff import SignOff
    from pumice.diagnosis.signoff_tables import Table

_F = TypeVar("_F", bound=Callable[..., Any])
_SHOWN = 20
"""Rows of a table before the rest is only counted."""


@dataclass(frozen=True)
class Signing:
    """What a sign-off assumes, and the conditions that a change must keep to."""

    evicted: str
    fail_on: str
    default_runtime: float | None
    within: float | None

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions; reading them may raise an InputError."""
        from pumice.api.conditions import conditions
        from pumice.diagnosis.signoff import FIGURES

        with value_of("--fail-on"):
            return conditions(self.fail_on, FIGURES) if self.fail_on else []

    def terms(self) -> Terms:
        """Return how both sides are played, from now on."""
        from pumice.clock import Deadline
        from pumice.diagnosis.played import Terms

        return Terms(
            default_runtime_s=self.default_runtime,
            requeues=self.evicted == "requeue",
            deadline=Deadline.of(self.within),
        )

    def breaches(self, signed: SignOff | None) -> list[str]:
        """Describe the conditions that a change breaks."""
        if signed is None:
            return []
        sides = signed.figures()
        return [each.words(*sides) for each in self.conditions if each.is_met(*sides)]


def signing_options(command: _F) -> Callable[..., Any]:
    """Add the options of a sign-off; the command receives them as ``signing``."""

    @wraps(command)
    def gathered(*args: Any, **given: Any) -> Any:
        names = ("evicted", "fail_on", "default_runtime", "within")
        signing = Signing(**{name: given.pop(name) for name in names})
        return command(*args, signing=signing, **given)

    return together(
        click.option(
            "--evicted",
            type=click.Choice(["requeue", "gone"]),
            default="gone",
            show_default=True,
            help="What becomes of evicted pods that no controller makes again.",
        ),
        click.option(
            "--fail-on",
            metavar="CONDITIONS",
            default="",
            help="Exit with 1 if the change breaks one of these, such as 'gangs-broken, "
            "evictions>10, wait.p95>1.2x' (1.2 times as long as before).",
        ),
        runtime_option,
        within_option,
    )(gathered)


def print_signoff(signed: SignOff) -> None:
    """Print the figures of both sides, and what is not known."""
    from pumice.diagnosis.signoff_tables import tables_of

    print_tables(tables_of(signed))


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables with their titles; those of one column as lines."""
    for table in tables:
        print_heading(table.title)
        if len(table.columns) > 1:
            print_table(table.columns, table.rows)
            continue
        for (line,) in table.rows:
            print_text(f"- {line}")


def print_breaches(breaches: Sequence[str]) -> None:
    """Print the conditions that a change breaks."""
    if breaches:
        echo()
        for line in breaches:
            print_text(f"refused: {line}", bold=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the first rows of a table, and how many more there are."""
    print_rows(columns, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        echo(f"… and {len(rows) - _SHOWN} more (-o json has all)")

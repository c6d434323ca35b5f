"""`pumice history`: what became of jobs, from a record, and where waiting time went."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pumice.api.output_files import write_file
from pumice.api.times import rfc3339
from pumice.api.wording import span, value_of
from pumice.cli.options import RECORD
from pumice.cli.printing import echo, echo_lines, print_data, print_rows

if TYPE_CHECKING:
    from pumice.diagnosis.job_history import Share, Span
    from pumice.records.history import History

_BAR: Final = 24
"""Characters of the longest bar."""
_BY: Final = ("cause", "queue", "job")


@click.command()
@click.argument("job", metavar="[JOB]", required=False)
@click.option(
    "-f",
    "--filename",
    "folder",
    metavar="DIR",
    required=True,
    type=RECORD,
    help="The record, made by 'pumice record' or --record.",
)
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option(
    "--by",
    "by",
    type=click.Choice(_BY),
    multiple=True,
    help="Sum waiting time by this; may be given several times.  [default: queue and cause]",
)
@click.option("--from", "since", metavar="TIME", help="From when on: 03:10, -2h, RFC 3339.")
@click.option("--to", "until", metavar="TIME", help="Until when.")
@click.option("--report", metavar="FILE", type=click.Path(path_type=Path), help="Also as a chart.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "csv", "json", "yaml")),
    default="table",
    show_default=True,
    help="How to print the answer.",
)
def history(
    *,
    job: str | None,
    folder: Path,
    queue: str | None,
    by: tuple[str, ...],
    since: str | None,
    until: str | None,
    report: Path | None,
    output: str,
) -> None:
    """Show what became of JOB: each state with its cause, and how long it held.

    Without JOB, show where the waiting time of all jobs went, by queue and cause.
    """
    from pumice.diagnosis.history_page import page
    from pumice.diagnosis.job_history import WAITS, of_job, of_queue, shares, spans_of
    from pumice.records.history import History

    known = History(folder)
    wanted = ("cause",) if job else tuple(dict.fromkeys(by)) or ("queue", "cause")
    spans = spans_of(known, _time(known, since, "--from"), _time(known, until, "--to"))
    if queue:
        with value_of("--queue"):
            spans = [*of_queue(spans, queue)]
    if job is not None:
        title, spans = f"The life of {job}", of_job(spans, job)
        _print_job(spans, output)
    else:
        title = "Where waiting time went"
        spans = [each for each in spans if each.state == WAITS]
        _print_shares(shares(spans, wanted), wanted, output)
    if report is not None:
        write_file(report, page(spans, wanted, title))
    for problem in known.problems:
        echo(f"note: {problem}", err=True)


def _time(known: History, text: str | None, option: str) -> float | None:
    if text is None:
        return None
    with value_of(option):
        return known.time(text)


def _print_job(spans: Sequence[Span], output: str) -> None:
    from pumice.diagnosis.job_history import in_words

    if output in ("json", "yaml"):
        print_data([each.to_dict() for each in spans], output)
        return
    if output == "csv":
        rows = [each.to_dict() for each in spans]
        _print_csv([*rows[0]], [[str(value) for value in row.values()] for row in rows])
        return
    echo(f"{spans[0].job} in queue {spans[-1].queue}: {in_words(spans) or 'no time'}")
    echo()
    print_rows(
        ("since", "state", "cause", "held", "why"),
        [
            (
                rfc3339(each.since),
                each.state,
                each.cause,
                f"{span(each.seconds)}{' so far' if each.is_open else ''}",
                each.why,
            )
            for each in spans
        ],
    )


def _print_shares(found: Sequence[Share], by: Sequence[str], output: str) -> None:
    total = sum(each.seconds for each in found)
    if output in ("json", "yaml", "csv"):
        columns = [*by, "seconds", "jobs", "longest_s", "longest_job"]
        rows = [
            (*each.of, round(each.seconds, 3), each.jobs, round(each.longest, 3), each.longest_job)
            for each in found
        ]
        if output == "csv":
            _print_csv(columns, [[str(cell) for cell in row] for row in rows])
        else:
            print_data([dict(zip(columns, row, strict=True)) for row in rows], output)
        return
    if not found:
        echo("no job waited")
        return
    most = max(each.seconds for each in found)
    print_rows(
        (*by, "waited", "share", "", "jobs", "longest"),
        [
            (
                *each.of,
                span(each.seconds),
                f"{100 * each.seconds / total:.0f} %" if total else "-",
                "█" * round(_BAR * each.seconds / most) if most else "",
                str(each.jobs),
                f"{span(each.longest)} {each.longest_job}",
            )
            for each in found
        ],
    )


def _print_csv(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from pumice.sim.readers.table_files import write_csv

    text = io.StringIO()
    write_csv(text, columns, rows)
    echo_lines(text.getvalue())

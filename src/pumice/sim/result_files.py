"""The files of finished simulations: the report, the summary, two tables for each configuration."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pumice.api.output_files import write_file
from pumice.sim import output
from pumice.sim.measure import Measures
from pumice.sim.report.data import chart_data
from pumice.sim.report.page import render

REPORT: Final = "report.html"


class ResultFiles:
    """The files for configurations with given names; tables end in ``suffix``."""

    def __init__(self, names: Sequence[str], suffix: str = ".csv") -> None:
        self._names = names
        self._suffix = suffix

    def all_files(self) -> list[str]:
        """Return the names of all files."""
        return [REPORT, output.SUMMARY, output.CHARTS, "timing.json", *self._tables()]

    def _tables(self) -> list[str]:
        stems = ("decisions", "jobs")
        return [self._table(stem, name) for name in self._names for stem in stems]

    def _table(self, stem: str, name: str) -> str:
        tail = "" if len(self._names) == 1 else f"-{name}"
        return f"{stem}{tail}{self._suffix}"

    def write(self, folder: Path, measured: Sequence[Measures], summary: dict[str, Any]) -> None:
        """Write all of them."""
        for each in measured:
            contents: tuple[tuple[str, Sequence[str], Iterable[Sequence[Any]]], ...] = (
                ("decisions", output.DECISION_COLUMNS, output.decisions(each)),
                ("jobs", output.JOB_COLUMNS, output.jobs(each)),
            )
            for stem, columns, rows in contents:
                output.write_table(folder / self._table(stem, each.name), columns, rows)
        output.write_json(folder / output.SUMMARY, summary)
        charts = chart_data(measured)
        output.write_compact(folder / output.CHARTS, charts)
        output.write_json(folder / "timing.json", output.timings(measured))
        page = render(summary, measured, [output.SUMMARY, *self._tables()], charts=charts)
        write_file(folder / REPORT, page)

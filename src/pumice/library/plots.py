"""Plots of simulations with Matplotlib; each returns the axes it drew on."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pumice.api.output_files import make_folder, write_file
from pumice.errors import InputError
from pumice.library.tables import extra
from pumice.sim.measure import Measures
from pumice.sim.options import is_count
from pumice.sim.statistics import WIDTHS, by_class

_UNITS = ((172800.0, 86400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"))
"""Minimum seconds for a unit, its seconds and its name."""

_FORMS = ("svg", "pdf", "png")
_NAMED = 30
"""Jobs up to which each line of a plot has a name: more do not fit."""


class Plots:
    """Draws one simulation or several; every method takes ``ax`` to draw on."""

    def __init__(self, measured: Sequence[Measures]) -> None:
        self._measured = measured
        self._unit, name = _unit(max(each.end for each in measured))
        self._time = f"time ({name})"

    def waits(self, ax: Any = None) -> Any:
        """Draw the cumulative part of all jobs by wait time; it ends at the part that started."""
        ax = _axes(ax)
        longest = max((float(each.waits().max(initial=0.0)) for each in self._measured), default=0)
        unit, name = _unit(longest)
        for each in self._measured:
            waits = np.concatenate([[0.0], each.waits()]) / unit
            parts = np.arange(len(waits)) / max(1, len(each.outcome.runs))
            ax.step(waits, parts, where="post", label=each.name)
        ax.set_ylim(0, 1.02)
        return self._finish(ax, f"wait ({name})", "part of all jobs", "Time from arrival to start")

    def utilisation(self, resource: str = "", ax: Any = None) -> Any:
        """Draw the part of a resource in use over time; the scarcest one if none is named."""
        ax = _axes(ax)
        for each in self._measured:
            at = _place(each, resource)
            ax.stairs(each.utilisation[at], each.bins.edges / self._unit, label=each.name)
        ax.set_ylim(0, 1.02)
        name = resource or self._measured[0].resources[self._measured[0].main_resource]
        return self._finish(ax, self._time, "part in use", f"{name} in use")

    def queue_lengths(self, ax: Any = None) -> Any:
        """Draw how many jobs wait over time, in all queues together."""
        ax = _axes(ax)
        for each in self._measured:
            ax.stairs(each.queue_lengths.sum(axis=0), each.bins.edges / self._unit, label=each.name)
        return self._finish(ax, self._time, "jobs", "Pending jobs")

    def shares(self, resource: str = "", ax: Any = None) -> Any:
        """Draw what each queue holds of a resource over time, of the first simulation."""
        ax, first = _axes(ax), self._measured[0]
        at = _place(first, resource)
        held = first.allocated[:, at] / max(float(first.total[at]), 1e-9)
        middles = (first.bins.edges[:-1] + first.bins.edges[1:]) / 2 / self._unit
        ax.stackplot(middles, held, labels=list(first.queues.names))
        title = f"{first.resources[at]} held by queue, {first.name}"
        return self._finish(ax, self._time, "part of the cluster", title, legend=True)

    def gantt(self, most: int = 200, ax: Any = None) -> Any:
        """Draw when jobs waited and ran, of the first simulation, one line for each job."""
        if not is_count(most):
            raise InputError(wanted="a whole number from 1", found=most, field="most")
        ax, first = _axes(ax), self._measured[0]
        runs = first.outcome.runs[:most]
        for line, (run, periods) in enumerate(first.run_periods(runs), start=1):
            begin = run.spec.arrival / self._unit
            end = (run.started if run.started == run.started else first.end) / self._unit
            ax.plot([begin, end], [line, line], color="0.75", linewidth=1)
            spans = [(start / self._unit, (stop - start) / self._unit) for start, stop in periods]
            ax.broken_barh(spans, (line - 0.4, 0.8))
        ax.set_ylim(len(runs) + 0.6, 0.4)
        if len(runs) <= _NAMED:
            ax.set_yticks(range(1, len(runs) + 1), [run.key for run in runs], fontsize="small")
        else:
            ax.yaxis.get_major_locator().set_params(integer=True)
        order = "" if len(runs) <= _NAMED else ", in order of arrival"
        total = len(first.outcome.runs)
        which = "Jobs" if len(runs) == total else f"The first {len(runs)} of {total:,} jobs"
        title = f"{which} under {first.name}: grey waits, colour runs"
        return self._finish(ax, self._time, f"job{order}", title, legend=False)

    def slowdowns(self, ax: Any = None) -> Any:
        """Draw mean bounded slowdowns by the width of jobs, one bar for each simulation."""
        ax = _axes(ax)
        widths = [name for _, name in WIDTHS]
        wide = 0.8 / len(self._measured)
        for at, each in enumerate(self._measured):
            jobs, total = dict.fromkeys(widths, 0), dict.fromkeys(widths, 0.0)
            for width, _, n, _, _, slowdown in by_class(each):
                jobs[str(width)] += int(str(n))
                total[str(width)] += int(str(n)) * float(str(slowdown))
            means = [total[width] / jobs[width] if jobs[width] else 0.0 for width in widths]
            ax.bar(np.arange(len(widths)) + at * wide, means, wide, label=each.name)
        ax.set_xticks(np.arange(len(widths)) + 0.4 - wide / 2, widths)
        title = "Mean bounded slowdown by width of jobs"
        return self._finish(ax, "pods of a job", "bounded slowdown", title)

    def save(self, folder: str | Path, form: str = "svg") -> list[Path]:
        """Write all plots into a folder, as vectors (svg, pdf) or as pictures (png)."""
        if form not in _FORMS:
            raise InputError(wanted=f"one of {', '.join(_FORMS)}", found=form, field="form")
        with extra("plot"):
            from matplotlib import pyplot as plt  # noqa: PLC0415
        make_folder(Path(folder))
        found = []
        for name in ("waits", "utilisation", "queue_lengths", "shares", "slowdowns", "gantt"):
            figure = getattr(self, name)().figure
            drawn = io.BytesIO()
            figure.savefig(drawn, format=form)
            found.append(Path(folder) / f"{name}.{form}")
            write_file(found[-1], drawn.getvalue())
            plt.close(figure)
        return found

    def _finish(
        self, ax: Any, across: str, up: str, title: str, *, legend: bool | None = None
    ) -> Any:
        ax.set_xlabel(across)
        ax.set_ylabel(up)
        ax.set_title(title)
        if len(self._measured) > 1 if legend is None else legend:
            ax.legend()
        return ax


def _place(measures: Measures, resource: str) -> int:
    """Return the place of a resource, that of the scarcest if none is named."""
    if not resource:
        return measures.main_resource
    if resource not in measures.resources:
        wanted = f"one of {', '.join(measures.resources)}"
        raise InputError(wanted=wanted, found=resource, field="resource")
    return list(measures.resources).index(resource)


def _unit(seconds: float) -> tuple[float, str]:
    """Return the unit that suits a span of time, in seconds, and its name."""
    found = ((unit, name) for least, unit, name in _UNITS if seconds >= least)
    return next(found, (1.0, "seconds"))


def _axes(ax: Any) -> Any:
    """Return the axes to draw on."""
    if ax is not None:
        return ax
    with extra("plot"):
        from matplotlib import pyplot as plt  # noqa: PLC0415
    return plt.subplots(layout="constrained")[1]

"""Write the generated pages of the reference, docs/flags.md and docs/metrics.md.

``python -m tools.reference``; a test compares the pages with what this writes.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file
from pumice.cli.serve import shown, written_default
from pumice.metrics import CATALOGUE
from pumice.serve.options import FLAGS, Flag

DOCS: Final = Path(__file__).parents[1] / "docs"
PROCESSES: Final = ("scheduler", "controllers", "webhooks")
_FLAGS_INTRO: Final = (
    "A cell holds the default; it is empty if there is none, and a dash if the process does not "
    "have the flag. `pumice serve all` takes the flags of all three. "
    "[How flags are read](operating.md#how-flags-are-read)."
)
_IGNORED_INTRO: Final = (
    "Flags of Volcano's that mean nothing here. If the value is not Volcano's default, one line "
    "of the log says so."
)
_METRICS_INTRO: Final = (
    "Served at `/metrics` of `--listen-address` with `--enable-metrics`. Names, labels and buckets "
    "are Volcano's, so dashboards and alerts keep working; names that begin with `pumice_` are our "
    "own. The metrics of a job or a queue disappear with it. Amounts of queues are computed at "
    "most every five seconds."
)
_QUEUE: Final = "volcano_queue_"
_UNITS: Final = ("_milli_cpu", "_memory_bytes", "_scalar_resources")


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        write_file(DOCS / name, text)


def pages() -> dict[str, str]:
    """Return the text of each generated page by its name."""
    return {"flags.md": _flags(), "metrics.md": _metrics()}


def _flags() -> str:
    known: dict[str, dict[str, Flag]] = {}
    for process in PROCESSES:
        for flag in FLAGS[process]:
            known.setdefault(shown(flag), {})[process] = flag
    used = [name for name, by in known.items() if not next(iter(by.values())).ignored]
    lines = [
        "# Flags of `pumice serve`",
        "",
        _FLAGS_INTRO,
        "",
        *_table(("Flag", *PROCESSES, "Meaning"), (_flag_row(name, known[name]) for name in used)),
        "",
        "## Accepted without effect",
        "",
        _IGNORED_INTRO,
        "",
        *_table(("Flags", "Reason"), _ignored_rows(known)),
    ]
    return "\n".join(lines) + "\n"


def _flag_row(name: str, by_process: dict[str, Flag]) -> tuple[str, ...]:
    cells = [_default(by_process.get(process)) for process in PROCESSES]
    return (f"`{name}`", *cells, next(iter(by_process.values())).help)


def _default(flag: Flag | None) -> str:
    if flag is None:
        return "-"
    if flag.kind == "gates":
        return "[gates](operating.md#how-flags-are-read)"
    text = written_default(flag)
    return f"`{text}`" if text else ""


def _ignored_rows(known: dict[str, dict[str, Flag]]) -> Iterator[tuple[str, str]]:
    reasons: dict[str, list[str]] = {}
    for name, by_process in known.items():
        flag = next(iter(by_process.values()))
        if flag.ignored:
            reasons.setdefault(flag.ignored, []).append(f"`{name}`")
    for reason, names in reasons.items():
        yield ", ".join(names), reason


def _metrics() -> str:
    lines = [
        "# Metrics",
        "",
        _METRICS_INTRO,
        "",
        *_table(("Name", "Kind", "Labels", "What it tells"), _metric_rows()),
    ]
    return "\n".join(lines) + "\n"


def _metric_rows() -> Iterator[tuple[str, ...]]:
    """Return a row for each metric; the three of a queue's amount, by resource, share one."""
    for metric in CATALOGUE:
        unit = next((unit for unit in _UNITS if metric.name.endswith(unit)), None)
        if not (metric.name.startswith(_QUEUE) and unit):
            labels = ", ".join(metric.labels)
            yield f"`{metric.name}`", metric.kind, labels, metric.help
        elif unit == _UNITS[0]:
            stem = metric.name.removesuffix(unit)
            names = ", ".join(f"`{stem}{each}`" for each in _UNITS)
            amount = stem.removeprefix(_QUEUE).replace("_", " ")
            labels = "queue_name; resource for the last"
            yield names, metric.kind, labels, f"Amounts of a queue: {amount}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    main()

"""Write the generated pages of the reference: docs/flags.md, docs/metrics.md, docs/hooks.md.

``python -m tools.reference``; a test compares the pages with what this writes.
"""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file
from pumice.cli.serve import shown, written_default
from pumice.framework.plugin import HOOKS
from pumice.metrics import CATALOGUE
from pumice.serve.options import FLAGS, Flag

DOCS: Final = Path(__file__).parents[1] / "docs"
PROCESSES: Final = ("scheduler", "controllers", "webhooks")
_FLAGS_INTRO: Final = (
    "`pumice serve all` takes the flags of all processes. "
    "[How flags are read](operating.md#how-flags-are-read)."
)
_IGNORED_INTRO: Final = (
    "Flags of Volcano's that mean nothing here. If the value is not Volcano's default, one line "
    "of the log says so."
)
_METRICS_INTRO: Final = (
    "Served at `/metrics` of `--listen-address` with `--enable-metrics`. Names that begin with "
    "`volcano_` have Volcano's labels and buckets, so dashboards and alerts keep working. The "
    "metrics of a job or a queue disappear with it; amounts of queues are at most five seconds old."
)
_HOOKS_INTRO: Final = (
    "A hook is a question that a cycle asks its plugins; a plugin answers those it has a method "
    "for. Tiers and switches are those of the configuration. A plugin that raises, or answers "
    "what a hook cannot answer, affects only itself: the answer that changes least is used, and "
    "the cycle reports plugin and hook."
)
_QUEUE: Final = "volcano_queue_"
_UNITS: Final = ("_milli_cpu", "_memory_bytes", "_scalar_resources")


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        write_file(DOCS / name, text)


def pages() -> dict[str, str]:
    """Return the text of each generated page by its name."""
    return {"flags.md": _flags(), "metrics.md": _metrics(), "hooks.md": _hooks()}


def _hooks() -> str:
    head = ("hook", "what it decides", "how answers combine", "switch", "in Volcano")
    rows = [
        (
            f"`{hook.name}({', '.join(hook.parameters)})`",
            (inspect.getdoc(hook.method) or "").partition("\n")[0].rstrip("."),
            hook.rule.words,
            f"`{hook.switch}`" if hook.switch else "",
            hook.volcano,
        )
        for hook in HOOKS.values()
    ]
    return "\n".join(["# Hooks", "", _HOOKS_INTRO, "", "## All hooks", "", *_table(head, rows), ""])


def _flags() -> str:
    known: dict[str, dict[str, Flag]] = {}
    for process in PROCESSES:
        for flag in FLAGS[process]:
            known.setdefault(shown(flag), {})[process] = flag
    lines = ["# Flags of `pumice serve`", "", _FLAGS_INTRO, ""]
    for title, processes in (("Shared", None), *((each.title(), each) for each in PROCESSES)):
        rows = [
            _flag_row(name, by)
            for name, by in known.items()
            if not next(iter(by.values())).ignored
            and (len(by) > 1 if processes is None else [*by] == [processes])
        ]
        lines += [f"## {title}", "", *_table(("Flag", "Default", "Meaning"), rows), ""]
    lines += ["## Accepted without effect", "", _IGNORED_INTRO, ""]
    lines += _table(("Flags", "Reason"), _ignored_rows(known))
    return "\n".join(lines) + "\n"


def _flag_row(name: str, by_process: dict[str, Flag]) -> tuple[str, ...]:
    """Return a row; where the processes differ, each default has its process."""
    defaults = {process: _default(flag) for process, flag in by_process.items()}
    if len({*defaults.values()}) == 1:
        cell = next(iter(defaults.values()))
    else:
        cell = ", ".join(f"{one} {text}" for one, text in defaults.items() if text)
    return (f"`{name}`", cell, next(iter(by_process.values())).help)


def _default(flag: Flag) -> str:
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
        *_table(("Name", "Kind", "Labels", "Meaning"), _metric_rows()),
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

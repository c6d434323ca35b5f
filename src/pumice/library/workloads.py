"""Configurations and workloads that programs name."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pumice.actions import ACTIONS
from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.named_files import read_conf_file
from pumice.api.objects import Node
from pumice.errors import InputError, Words
from pumice.framework.conf_check import check_conf
from pumice.framework.plugin import Plugin
from pumice.framework.registry import known_plugins
from pumice.library.arguments import check_kind
from pumice.plugins import builtin_plugins
from pumice.sim.inputs import equal_nodes
from pumice.sim.options import check_nodes, is_count
from pumice.sim.readers.job_table import AMOUNTS, check_asked, jobs_from
from pumice.sim.readers.node_sizes import node_for
from pumice.sim.workload import Workload, in_order

log = logging.getLogger(__name__)

Configuration = str | Path | None
"""A file, a text of several lines, or None for the built-in configuration."""


@dataclass(frozen=True)
class ReadConfiguration:
    """A usable configuration, and its source."""

    text: str
    source: str
    conf: SchedulerConf


def read_configuration(given: Configuration) -> ReadConfiguration:
    """Read a configuration.

    Raises:
        InputError: The file cannot be read.
        ConfError: It is not a configuration.
    """
    if given is None:
        text, source = DEFAULT_CONF, "the built-in configuration"
    elif isinstance(given, str) and "\n" in given:
        text, source = given, "the given configuration"
    else:
        text, source = read_conf_file(Path(given))
    return ReadConfiguration(text, source, parse_conf(text, source=source))


def log_warnings(conf: SchedulerConf, source: str, plugins: Mapping[str, type[Plugin]]) -> None:
    """Log settings without effect, once for a configuration that a program passes.

    Its errors are raised where it is used.
    """
    for problem in check_conf(conf, known_plugins(builtin_plugins(), plugins), ACTIONS):
        if problem.severity != "error":
            log.warning("%s: %s", source, problem)


@runtime_checkable
class PandasFrame(Protocol):
    """A data frame of pandas, or one with its method."""

    def to_dict(self, orient: Literal["records"]) -> list[dict[str, Any]]:
        """Return its rows."""
        ...


@runtime_checkable
class PolarsFrame(Protocol):
    """A data frame of polars, or one with its method."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return its rows."""
        ...


_ROWS = 'rows such as {"arrival": 0, "run": 60}, or a data frame of them'
Rows = Iterable[Mapping[str, Any]] | PandasFrame | PolarsFrame


def workload(jobs: Rows, *, name: str = "workload") -> Workload:
    """Make a workload from rows, one for each job, or a data frame of them.

    A row has ``arrival`` and ``run`` in seconds, and as it needs: ``name``, ``pods`` (1),
    ``needed`` (all of them), ``cpu`` (1), ``memory``, ``gpu``, ``request`` (resource to amount),
    ``queue``, ``priority_class``, ``user``, ``walltime`` (the seconds that its user asked for).
    Empty cells of a data frame say nothing.

    Raises:
        InputError: A row lacks something, or has an unknown column.
    """
    found = list(jobs_from((f"jobs[{number}]", row) for number, row in enumerate(_rows(jobs))))
    if not found:
        raise InputError(wanted="at least one job", found=Words("none"), file=name)
    return Workload(name=name, format="rows", jobs=in_order(found), node_hint=node_for(found))


def _rows(jobs: Rows) -> Iterable[Mapping[str, Any]]:
    """Return rows; a data frame writes an empty cell as None or as a number unequal to itself."""
    if isinstance(jobs, PolarsFrame):
        rows = jobs.to_dicts()
    elif isinstance(jobs, PandasFrame):
        rows = jobs.to_dict("records")
    else:
        if isinstance(jobs, str | Path):
            wanted = f"{_ROWS} (a file is given to pumice.simulate as it is)"
            raise InputError(wanted=wanted, found=jobs, field="jobs")
        check_kind("jobs", jobs, Iterable, _ROWS)
        return map(_checked, jobs)
    return [
        {name: cell for name, cell in row.items() if cell is not None and cell == cell}  # noqa: PLR0124
        for row in rows
    ]


def _checked(row: Mapping[str, Any]) -> Mapping[str, Any]:
    check_kind("jobs", row, Mapping, _ROWS)
    return row


class NodeList(list[Node]):
    """Nodes that show themselves in one line."""

    def __repr__(self) -> str:
        if not self:
            return "<no nodes>"
        sizes = {tuple(each.status.allocatable.items()) for each in self}
        if len(sizes) > 1:
            return f"<{len(self):,} nodes of {len(sizes)} sizes>"
        amounts = ", ".join(f"{name} {amount}" for name, amount in next(iter(sizes)))
        return f"<{len(self):,} {'node' if len(self) == 1 else 'nodes, each'} with {amounts}>"


def nodes(count: int, **amounts: str | float) -> NodeList:
    """Make equal nodes, as in ``nodes(8, cpu=32, memory="128Gi", gpu=4)``; 110 pods fit each.

    Raises:
        InputError: None, or too many, or no amounts.
    """
    if not is_count(count):
        raise InputError(wanted="a whole number from 1", found=count, field="count")
    if not amounts:
        raise InputError(
            wanted="amounts, as in nodes(8, cpu=32)", found=Words("none"), field="nodes"
        )
    check_nodes(count, "nodes")
    check_asked(amounts)
    named = {AMOUNTS.get(name, name): str(amount) for name, amount in amounts.items()}
    return NodeList(equal_nodes(count, {"pods": "110", **named}))


NodesSource = str | Path | list[Node] | None
"""A file of nodes, nodes made by :func:`nodes`, or None for what the workload says."""

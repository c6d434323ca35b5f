"""Write docs/performance.md from bench/results.json: ``python -m bench.report``.

``make bench`` runs the cases and then this.  The figures of Volcano are constants, measured once on
a machine of the same kind; everything else is computed from the results.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from pumice.api.output_files import write_file

RESULTS = Path("bench/results.json")
TEMPLATE = Path("bench/performance.template.md")
PAGE = Path("docs/performance.md")


@dataclass(frozen=True)
class Line:
    """One line of the first table: a case, Volcano's figure and our goal, in ms."""

    what: str
    name: str
    volcano: float
    sampled: str
    goal: float
    per_pod: bool = True


LINES = [
    Line("default, 1,000 nodes, gangs of 100", "default-1000n-1000p-g100-r0", 11.1, "3.9", 0.08),
    Line("default, 5,000 nodes", "default-5000n-1000p-g100-r0", 77.3, "7.6", 0.15),
    Line("default, 10,000 nodes", "default-10000n-500p-g100-r0", 147.7, "6.6", 0.15),
    Line("default, 1,000 nodes, gangs of 1", "default-1000n-1000p-g1-r0", 12.8, "-", 0.2),
    Line("200 request shapes, gangs of 20", "shapes-1000n-1000p-g20-r0", 12.4, "-", 0.2),
    Line("binpack, 1,000 nodes", "binpack-1000n-1000p-g100-r0", 8.8, "3.1", 0.08),
    Line("capacity tree of 111 queues", "capacity-1000n-1000p-g20-r0", 13.3, "-", 0.15),
    Line("anti-affinity inside gangs of 20", "affinity-1000n-400p-g20-r0", 11.5, "-", 0.2),
    Line("preempt, 1,000 full nodes", "preempt-1000n-100p-g10-r0", 63.0, "-", 1.0),
    Line("reclaim, 1,000 full nodes", "reclaim-1000n-100p-g10-r0", 5.0, "-", 0.3),
    Line(
        "idle cycle, 10,000 nodes, 100,000 pods",
        "idle-10000n-0p-g1-r100000",
        5700.0,
        "-",
        5.0,
        per_pod=False,
    ),
    Line(
        "1 % of 100,000 pods changed",
        "changed-10000n-0p-g1-r100000",
        5700.0,
        "-",
        50.0,
        per_pod=False,
    ),
]


@dataclass(frozen=True)
class PolicyLine:
    """One line of the table of single policies, in CPU ms a pod or, without pods, a cycle."""

    what: str
    name: str
    goal: float | None
    per_pod: bool = True


POLICIES = [
    PolicyLine(
        "topology-aware preemption, 1,000 full nodes",
        "topology-preempt-1000n-100p-g10-r0",
        2.0,
    ),
    PolicyLine("gangpreempt, 1,000 full nodes", "gangpreempt-1000n-100p-g10-r0", 0.5),
    PolicyLine("gangreclaim, 1,000 full nodes", "gangreclaim-1000n-100p-g10-r0", 0.5),
    PolicyLine("preempt, 1,000 full nodes", "preempt-1000n-100p-g10-r0", 0.2),
    PolicyLine("preempt, 5,000 full nodes", "preempt-5000n-100p-g10-r0", 0.4),
    PolicyLine("reclaim, 1,000 full nodes", "reclaim-1000n-100p-g10-r0", 0.15),
    PolicyLine("reclaim, 5,000 full nodes", "reclaim-5000n-100p-g10-r0", 0.3),
    PolicyLine("anti-affinity inside gangs of 20", "affinity-1000n-400p-g20-r0", 0.08),
    PolicyLine("hard spread over ten zones", "spread-1000n-400p-g20-r0", 0.08),
    PolicyLine("one host port", "ports-1000n-400p-g20-r0", 0.08),
    PolicyLine("task-topology, 1,000 nodes", "task-topology-1000n-400p-g20-r0", 0.2),
    PolicyLine("task-topology, 5,000 nodes", "task-topology-5000n-400p-g20-r0", 0.3),
    PolicyLine("800 local volumes on 1,000 nodes", "volumes-1000n-400p-g20-r0", 0.5),
    PolicyLine("numa-aware, 1,000 nodes", "numa-1000n-400p-g20-r0", 0.5),
    PolicyLine("numa-aware, idle cycle", "numa-idle-1000n-0p-g1-r10000", 1.0, per_pod=False),
    PolicyLine("network topology, 1,157 HyperNodes", "network-16000n-640p-g20-r0", 0.3),
    PolicyLine("elastic jobs, minAvailable 1 of 100", "elastic-1000n-10000p-g100-r0", 0.03),
    PolicyLine("soft spread, 1,000 nodes", "soft-spread-1000n-1000p-g20-r0", 0.08),
    PolicyLine("soft spread, 10,000 nodes", "soft-spread-10000n-1000p-g20-r0", 0.1),
    PolicyLine("every pod of a gang distinct, 1,000 nodes", "distinct-1000n-1000p-g20-r0", 0.2),
    PolicyLine("every pod of a gang distinct, 10,000 nodes", "distinct-10000n-1000p-g20-r0", 0.2),
    PolicyLine(
        "required affinity and anti-affinity, gangs of 1", "hard-affinity-1000n-400p-g1-r0", 0.1
    ),
    PolicyLine(
        "gangs of 64 larger than a rack, 5,000 HyperNodes", "racks-17500n-640p-g64-r0", 0.06
    ),
    PolicyLine("preempt, gangs of 1", "preempt-1000n-100p-g1-r0", 0.3),
    PolicyLine("reclaim, gangs of 1", "reclaim-1000n-100p-g1-r0", 0.3),
    PolicyLine("reclaim among 2,000 queues", "reclaim-queues-1000n-100p-g10-r0", 0.5),
    PolicyLine("usage, 1,000 nodes", "usage-1000n-1000p-g20-r0", 0.06),
    PolicyLine(
        "a plugin of a user that ranks nodes, gangs of 1", "user-rank-1000n-1000p-g1-r0", 0.1
    ),
    PolicyLine(
        "a plugin of a user that follows placements, gangs of 1",
        "user-place-1000n-1000p-g1-r0",
        0.1,
    ),
    PolicyLine(
        "a plugin of a user that judges queues, gangs of 1", "user-overused-1000n-1000p-g1-r0", 0.1
    ),
    PolicyLine("extender, 1,000 nodes, its own time aside", "extender-1000n-40p-g20-r0", None),
]
TABLED: list[Line | PolicyLine] = [*LINES, *POLICIES]
"""The rows that the page must have."""


def main() -> None:
    """Write the page; results that lack a line of its tables are refused."""
    rows = {row["name"]: row for row in json.loads(RESULTS.read_text())}
    if lacking := [line.name for line in TABLED if line.name not in rows]:
        raise SystemExit(
            f"{RESULTS}: expected all cases of the tables, got none of {', '.join(lacking[:3])} "
            f"({len(lacking)} are missing); run python -m bench.run first"
        )
    page = Template(TEMPLATE.read_text())
    write_file(
        PAGE,
        page.substitute(
            against=_against(rows),
            policies=_policies(rows),
            growth=_growth(rows),
        ),
    )


def _value(line: Line | PolicyLine, row: dict[str, Any]) -> float:
    return float(row["cpu_ms_per_pod"] if line.per_pod else 1000 * row["cpu_s"])


def _against(rows: dict[str, Any]) -> str:
    out = [
        "## Against Volcano\n",
        "CPU milliseconds for each pod placed; for the last two lines for the whole cycle.\n",
        "| one cycle | Volcano | sampled | Pumice | times faster | goal | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in LINES:
        ours = _value(line, rows[line.name])
        met = "yes" if ours <= line.goal else f"no, {ours / line.goal:.1f} times the goal"
        out.append(
            f"| {line.what} | {line.volcano:,.4g} | {line.sampled} | {ours:.3g} | "
            f"{line.volcano / ours:,.0f} | {line.goal:g} | {met} |"
        )
    return "\n".join(out)


def _policies(rows: dict[str, Any]) -> str:
    out = [
        "## Single policies\n",
        "CPU milliseconds for each pod placed; for the idle cycle for the whole of it.\n",
        "| one cycle | Pumice | goal |",
        "|---|---|---|",
    ]
    out += [
        f"| {line.what} | {_value(line, rows[line.name]):.3g} | "
        f"{'-' if line.goal is None else format(line.goal, 'g')} |"
        for line in POLICIES
    ]
    return "\n".join(out)


_GROWTH = (
    ("time per pod grows with queues", "capacity-1000n-1000p-g1-r0", "tree-1000n-1000p-g1-r0", 45),
    (
        "time per pod grows with shapes",
        "shapes-10000n-1000p-g1-r0",
        "many-shapes-10000n-1000p-g1-r0",
        5,
    ),
)
"""Two cases, and how many times larger the second is."""


def _growth(rows: dict[str, Any]) -> str:
    """Fit time against size as a power, between the ends of the grid."""
    lines = []
    for words, small, large, times in _GROWTH:
        if small in rows and large in rows:
            ratio = rows[large]["cpu_ms_per_pod"] / rows[small]["cpu_ms_per_pod"]
            lines.append(f"- {words} to the power {math.log(ratio) / math.log(times):.2f}")
    for gang in (1, 20, 100):
        few, many = (rows.get(f"default-{n}n-1000p-g{gang}-r0") for n in (100, 10000))
        if few and many:
            power = math.log(many["cpu_ms_per_pod"] / few["cpu_ms_per_pod"]) / math.log(100)
            lines.append(
                f"- gangs of {gang}: time per pod grows with nodes to the power {power:.2f}"
            )
        few, many = (rows.get(f"default-10000n-{p}p-g{gang}-r0") for p in (1000, 5000))
        if few and many:
            power = math.log(many["cpu_s"] / few["cpu_s"]) / math.log(5)
            lines.append(
                f"- gangs of {gang}: time of a cycle grows with pods to the power {power:.2f}"
            )
    return "\n".join(["## Growth\n", *lines]) if lines else ""


if __name__ == "__main__":
    main()

"""Time the cycles of a live scheduler while jobs wait: ``python -m bench.waiting [OTHER]``.

OTHER is the folder of a second checkout.  On a full cluster in memory gangs wait, and the scheduler
states why on each pod group.  The causes that each checkout wrote are compared first; then the CPU
seconds of its longest cycle and of the mean one are printed.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.checkouts import HERE, environment
from bench.full_cluster import CONFIGURATIONS, FullCluster
from pumice.api.annotations import WAITING_WHY
from pumice.api.conf import parse_conf
from pumice.api.kinds import POD_GROUP
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.embedded import EmbeddedControlPlane

CYCLES: Final = 8
NOW: Final = 1768500000.0


def measure(conf: str, nodes: int, gangs: int) -> dict[str, Any]:
    """Run cycles of this checkout; return the causes that were written, and CPU seconds."""
    clock = VirtualClock(NOW)
    cluster = EmbeddedCluster(clock)
    cluster.restore(FullCluster(nodes, gangs).objects())
    plane = EmbeddedControlPlane(
        parse_conf(CONFIGURATIONS[conf]), cluster=cluster, controllers=[], write_causes=True
    )
    spent = []
    for _ in range(CYCLES):
        before = time.process_time()
        plane.step()
        spent.append(time.process_time() - before)
        clock.advance_to(clock.now() + 1)
    groups = cluster.list(POD_GROUP)[0]
    marks = ((each["metadata"].get("annotations") or {}) for each in groups)
    causes = Counter(each[WAITING_WHY] for each in marks if each)
    return {"causes": causes, "first": spent[0], "longest": max(spent[1:]), "sum": sum(spent[1:])}


def _of(checkout: Path, conf: str, nodes: int, gangs: int) -> dict[str, Any]:
    code = "import json; from bench.waiting import measure; print(json.dumps(measure{}))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code.format((conf, nodes, gangs))],
        check=True,
        capture_output=True,
        env=environment(checkout),
        cwd=HERE,
    )
    return dict(json.loads(done.stdout))


def main() -> None:
    """Measure both checkouts and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="another checkout")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=500)
    args = parser.parse_args()
    print(f"{'configuration':14} {'checkout':8} {'first s':>8} {'longest s':>9} {'mean ms':>8}")
    for conf in CONFIGURATIONS:
        checkouts = {"this": HERE} | ({"other": args.other} if args.other else {})
        found = {name: _of(each, conf, args.nodes, args.gangs) for name, each in checkouts.items()}
        assert found["this"]["causes"], "no job has a cause"
        assert all(each["causes"] == found["this"]["causes"] for each in found.values())
        for name, each in found.items():
            mean = 1000 * each["sum"] / (CYCLES - 1)
            print(f"{conf:14} {name:8} {each['first']:8.3f} {each['longest']:9.3f} {mean:8.1f}")


if __name__ == "__main__":
    main()

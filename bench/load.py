"""Time the loading of running pods: ``python -m bench.load [--huge]``.

Manifests are made on the fly, as the pages of a list come in; the CPU time of making them is taken
off.  The peak of memory is that of the whole process, Python and NumPy included.
"""

import argparse
import resource
import time
from collections import deque

from bench.clusters import Case
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.garbage_collection import collect_rarely

SIZES = ((1_000, 20_000), (10_000, 100_000))
HUGE = (100_000, 1_000_000)


def load(case: Case) -> float:
    """Load a cluster; return the CPU seconds."""
    started = time.process_time()
    deque(case.stream(), maxlen=0)
    made = time.process_time()
    snapshot = Ingest(Snapshot()).load(map(from_manifest, case.stream()))
    assert len(snapshot.tasks.row_of) == case.running
    return (time.process_time() - made) - (made - started)


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--huge", action="store_true", help="a million pods, too")
    args = parser.parse_args()
    collect_rarely()
    print(f"{'nodes':>8} {'pods':>10} {'cpu s':>8} {'us/pod':>8} {'peak MB':>8}")
    for nodes, running in (*SIZES, HUGE) if args.huge else SIZES:
        seconds = load(Case(nodes=nodes, pods=0, running=running))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        each = 1e6 * seconds / running
        print(f"{nodes:8} {running:10} {seconds:8.2f} {each:8.1f} {peak:8.0f}", flush=True)


if __name__ == "__main__":
    main()

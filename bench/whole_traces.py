"""Compare plugin reservation with the textbooks: ``python -m bench.whole_traces LOG [--limit N]``.

LOG is in the Standard Workload Format.  Prints how many jobs start at another second than in the
textbooks' simulation, and the CPU seconds of both; fails if there are any.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import pumice
from pumice.sim.inputs import read_workload
from pumice.sim.workload import JobSpec
from tests.properties.test_reservations import MODES, conf, rows_of, simulated
from tests.properties.textbook import Job, Machine


def job_of(spec: JobSpec, bounds: str, speed: float) -> Job:
    """Read a job; bounds are the run times, requested times made upper bounds, or as requested."""
    run, asked = max(1, round(spec.run_seconds)), spec.walltime
    if bounds == "true" or asked is None:
        asked = run
    bound = max(asked, run) if bounds == "upper" else asked
    arrival = math.ceil(spec.arrival / speed)
    return Job(spec.name, arrival, run, spec.size, max(1, round(bound)))


def differences(jobs: list[Job], processors: int, mode: str, period: float) -> list[Job]:
    """Simulate both; return the jobs that start at other times."""
    begun = time.process_time()
    nodes = pumice.nodes(processors, cpu=1)
    found = simulated(rows_of(jobs, queues=2), nodes, conf(mode), period=period)
    between = time.process_time()
    Machine(processors, mode).play(jobs)
    spent = between - begun, time.process_time() - between
    print(f"{mode:12} {len(jobs):7} jobs, CPU s: {spent[0]:8.1f}, textbook {spent[1]:.1f}", end="")
    return [job for job in jobs if found[job.name] != job.start]


def main() -> int:
    """Compare all modes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--processors", type=int, default=0, help="0: as the log states")
    parser.add_argument("--bounds", choices=("true", "upper", "asked"), default="upper")
    parser.add_argument("--period", type=float, default=1.0)
    args = parser.parse_args()
    workload = read_workload(args.log)
    hint = workload.node_hint
    processors = args.processors or int((hint and hint.count) or 0)
    failed = False
    for mode in args.mode or MODES:
        specs = workload.jobs[: args.limit or None]
        jobs = [job_of(spec, args.bounds, args.speed) for spec in specs]
        jobs = [job for job in jobs if job.width <= processors]
        wrong = differences(jobs, processors, mode, args.period)
        print(f", {len(wrong)} differ", *wrong[:1], flush=True)
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

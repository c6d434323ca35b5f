"""`python -m tests.faults`: run seeds, report what broke and how to see it again."""

import argparse
import gc
import logging
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from tests.faults.broken import BROKEN, RATES
from tests.faults.world import Outcome, run


_COLLECTED: Final = 20
"""After how many runs garbage is collected."""


def main() -> int:
    """Run the seeds asked for; return how many broke a rule."""
    given = _arguments()
    logging.getLogger("pumice").setLevel(logging.CRITICAL)
    if given.seed is not None:
        outcome = run_broken(given.broken, given.seed) if given.broken else run(given.seed)
        print(*outcome.log, sep="\n")
        return report([outcome])
    seeds = range(given.first, given.first + given.seeds)
    if given.broken:
        return report(until_caught(given.broken, seeds))
    if given.jobs == 1:
        _collect_seldom()
        return report(map(quiet_run, seeds))
    with ProcessPoolExecutor(given.jobs, initializer=_collect_seldom) as pool:
        return report(pool.map(quiet_run, seeds, chunksize=10))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its log")
    parser.add_argument("--first", type=int, default=0, help="the first of several seeds")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--broken", choices=BROKEN, help="run a variant that is wrong on purpose")
    return parser.parse_args()


def _collect_seldom() -> None:
    """Have garbage collected between runs only: it took a sixth of the time, and little is left."""
    logging.getLogger("pumice").setLevel(logging.CRITICAL)
    gc.disable()


def quiet_run(seed: int) -> Outcome:
    """Run one seed; drop its log."""
    outcome = run(seed)
    outcome.log.clear()
    if seed % _COLLECTED == 0:
        gc.collect()
    return outcome


def run_broken(name: str, seed: int) -> Outcome:
    """Run one seed on a variant that is wrong on purpose."""
    with BROKEN[name]():
        return run(seed, RATES.get(name, {}))


def until_caught(name: str, seeds: Iterable[int]) -> Iterable[Outcome]:
    """Run a wrong variant until a rule breaks."""
    for seed in seeds:
        outcome = run_broken(name, seed)
        yield outcome
        if outcome.problems:
            return


def report(outcomes: Iterable[Outcome]) -> int:
    """Print the results of runs; return how many broke a rule."""
    started = time.perf_counter()
    broken, total = 0, Outcome(0)
    count = 0
    for each in outcomes:
        count += 1
        total.add(each)
        if each.problems:
            broken += 1
            print(f"seed {each.seed}: {each.problems[0]}")
            print(f"  again: python -m tests.faults --seed {each.seed}", flush=True)
    print(
        f"{count} seeds, {broken} broken; {total.seconds:.0f} s of virtual time in "
        f"{time.perf_counter() - started:.0f} s: {total.requests} requests, {total.faults} faults, "
        f"{total.kills} processes killed, {total.binds} pods bound, {total.evictions} evicted"
    )
    return broken


if __name__ == "__main__":
    sys.exit(min(main(), 1))

"""`python -m tests.faults`: run seeds, report what broke and how to see it again."""

import argparse
import gc
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from typing import Final

from tests.faults.broken import BROKEN, RATES
from tests.faults.world import Outcome, run

_AT_ONCE: Final = 25
"""Seeds that one worker runs before another takes its place."""


def main() -> int:
    """Run the seeds asked for; return how many broke a rule."""
    given = _arguments()
    option = " --takeovers" if given.takeovers else ""
    logging.getLogger("pumice").setLevel(logging.CRITICAL)
    if given.seed is not None:
        outcome = run_one(given.seed, given.broken, takeover=given.takeovers)
        print(*outcome.log, sep="\n")
        return report([outcome], option=option)
    seeds = range(given.first, given.first + given.seeds)
    one = partial(run_one, broken=given.broken, takeover=given.takeovers)
    if given.broken:
        return report(until_caught(map(one, seeds)), option=option)
    return report(in_workers(one, seeds, given.jobs), given.every, option)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its log")
    parser.add_argument("--first", type=int, default=0, help="the first of several seeds")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--every", type=int, default=0, help="print totals after so many seeds")
    parser.add_argument(
        "--takeovers", action="store_true", help="short runs, each with a takeover after an outage"
    )
    parser.add_argument("--broken", choices=BROKEN, help="run a variant that is wrong on purpose")
    return parser.parse_args()


def in_workers(one: Callable[[int], Outcome], seeds: range, jobs: int) -> Iterator[Outcome]:
    """Run seeds in processes that end before their garbage must be collected.

    It would take a fifth of the time; a worker is a copy of this process, so it starts at once.
    """
    one(seeds.start)  # loads what the workers then share
    gc.collect()
    gc.freeze()
    workers = get_context("fork").Pool(jobs, gc.disable, maxtasksperchild=1)
    with workers:
        yield from workers.imap(partial(quietly, one), seeds, chunksize=_AT_ONCE)


def quietly(one: Callable[[int], Outcome], seed: int) -> Outcome:
    """Run one seed; drop its log."""
    outcome = one(seed)
    outcome.log.clear()
    return outcome


def run_one(seed: int, broken: str | None, *, takeover: bool) -> Outcome:
    """Run one seed, maybe on a variant that is wrong on purpose."""
    with BROKEN[broken]() if broken else nullcontext():
        return run(seed, RATES.get(broken or "", {}), takeover=takeover)


def until_caught(outcomes: Iterable[Outcome]) -> Iterable[Outcome]:
    """Yield what runs of a wrong variant come to, until a rule breaks."""
    for outcome in outcomes:
        yield outcome
        if outcome.problems:
            return


def report(outcomes: Iterable[Outcome], every: int = 0, option: str = "") -> int:
    """Print the results of runs, totals after each ``every``; return how many broke a rule.

    A run is to be seen again with its seed and the ``option``.
    """
    started = time.perf_counter()
    broken, total = 0, Outcome(0)
    count = 0

    def print_total() -> None:
        print(
            f"{count} seeds, {broken} broken; {total.seconds:.0f} s of virtual time in "
            f"{time.perf_counter() - started:.0f} s: {total.requests} requests, "
            f"{total.faults} faults, {total.kills} processes killed, {total.takeovers} takeovers, "
            f"{total.binds} pods bound, {total.evictions} evicted",
            flush=True,
        )

    for each in outcomes:
        count += 1
        total.add(each)
        if each.problems:
            broken += 1
            print(f"seed {each.seed}: {each.problems[0]}")
            print(f"  again: python -m tests.faults --seed {each.seed}{option}", flush=True)
        if every and count % every == 0:
            print(f"up to seed {each.seed}: ", end="")
            print_total()
    print_total()
    return broken


if __name__ == "__main__":
    sys.exit(min(main(), 1))

"""`python -m tests.faults`: run seeds, report what broke and how to see it again."""

import argparse
import logging
import sys
import time

from tests.faults.world import Outcome, run


def main() -> int:
    """Run the seeds asked for; return how many broke a rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its log")
    parser.add_argument("--first", type=int, default=0, help="the first of several seeds")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    given = parser.parse_args()
    logging.getLogger("pumice").setLevel(logging.CRITICAL)
    if given.seed is not None:
        outcome = run(given.seed)
        print(*outcome.log, sep="\n")
        return report([outcome])
    return report([run(seed) for seed in range(given.first, given.first + given.seeds)])


def report(outcomes: list[Outcome]) -> int:
    """Print what came of runs; return how many broke a rule."""
    broken = [each for each in outcomes if each.problems]
    for each in broken:
        print(f"seed {each.seed}: {each.problems[0]}")
        print(f"  again: python -m tests.faults --seed {each.seed}")
    print(
        f"{len(outcomes)} seeds, {len(broken)} broken; "
        f"{sum(each.seconds for each in outcomes):.0f} s of virtual time, "
        f"{sum(each.requests for each in outcomes)} requests, "
        f"{sum(each.faults for each in outcomes)} faults, "
        f"{sum(each.kills for each in outcomes)} processes killed, "
        f"{sum(each.binds for each in outcomes)} pods bound, "
        f"{sum(each.evictions for each in outcomes)} evicted; "
        f"{time.process_time():.0f} s of CPU time"
    )
    return len(broken)


if __name__ == "__main__":
    sys.exit(min(main(), 1))

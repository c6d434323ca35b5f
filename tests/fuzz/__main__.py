"""`make fuzz`: fuzz for some seconds, or replay a find."""

import argparse
import logging
import sys
import traceback
from pathlib import Path

from tests.fuzz.driver import Fuzzer, replay
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Fuzz; return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--replay", type=Path)
    chosen = parser.parse_args()
    if chosen.replay is not None:
        error = replay(chosen.replay)
        if error is not None:
            traceback.print_exception(error)
        print("does harm" if error is not None else "does no harm")  # noqa: T201
        return int(error is not None)
    logging.disable()  # dropped input is logged, a thousand times here
    fuzzer = Fuzzer(chosen.seed, [TARGETS[name] for name in chosen.target or TARGETS])
    fuzzer.run(chosen.seconds)
    for name, count in sorted(fuzzer.counts.items()):
        print(f"{name:15} {count:9,} inputs")  # noqa: T201
    print(f"{sum(fuzzer.counts.values()):,} inputs, {len(fuzzer.finds)} finds")  # noqa: T201
    return int(bool(fuzzer.finds))


sys.exit(main())

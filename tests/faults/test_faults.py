"""The whole live stack under seeded faults: nothing twice, nothing lost, at rest in the end."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.faults.broken import BROKEN, RATES
from tests.faults.world import Outcome, run

SEEDS: Final = range(10)
"""Those of every test run; `make faults SEEDS=…` runs more, and so does every merge."""
LIKELY: Final = {
    "everybody leads": 1,
    "evictions for nobody": 0,
    "gaps stay": 11,
    "lost is undone": 14,
    "no fence": 75,
    "no limits": 3,
    "no looking": 70,
    "nothing assumed": 22,
    "old caches": 0,
    "old events count": 42,
    "shards overlap": 0,
    "torn gangs": 0,
    "writes vanish": 0,
}
"""A seed on which each wrong variant has broken a rule.

Any change of the stack changes what a seed does, so others are tried after it.  That takes long:
`python -m tests.faults --broken NAME` finds the seed to write down here.
"""
TRIED: Final = 60
"""Seeds after which a variant counts as not noticed."""
ROOT: Final = Path(__file__).parents[2]
DIGESTED: Final = range(2, 4)
"""Seeds whose logs once depended on the order of a set."""
DIGEST: Final = """
import hashlib, logging, sys
from tests.faults.world import run
logging.getLogger("pumice").setLevel(logging.CRITICAL)
for seed in map(int, sys.argv[1:]):
    print(seed, hashlib.sha256(repr(run(seed).log).encode()).hexdigest())
"""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Leave the log of simulated processes out: there is much of it."""
    log = logging.getLogger("pumice")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)


def reported(outcome: Outcome) -> str:
    """Return the message of a failure: the rule, and the command that shows it again."""
    return f"{outcome.problems[0]}\nagain: python -m tests.faults --seed {outcome.seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_break_no_rule(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problems, reported(outcome)
    assert outcome.binds


@pytest.mark.parametrize("seed", SEEDS)
def test_takeovers_after_outages_break_no_rule(seed: int) -> None:
    outcome = run(seed, takeover=True)
    assert not outcome.problems, f"{reported(outcome)} --takeovers"
    assert outcome.binds


def test_a_standby_that_takes_over_with_what_it_knew_is_noticed() -> None:
    with BROKEN["old caches"]():
        assert any(run(seed, takeover=True).problems for seed in SEEDS)


def test_the_same_seed_is_the_same_run() -> None:
    first, second = run(7), run(7)
    assert first.log == second.log
    assert (first.requests, first.faults) == (second.requests, second.faults)
    assert first.log != run(8).log


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    first, second = (_digests(hash_seed, DIGESTED) for hash_seed in ("1", "2"))
    assert first == second


def _digests(hash_seed: str, seeds: range) -> list[str]:
    """Run seeds in a process in which sets have an order of their own; return digests of logs."""
    command = [sys.executable, "-c", DIGEST, *map(str, seeds)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", LIKELY)
def test_a_variant_that_is_wrong_is_noticed(name: str) -> None:
    rates = RATES.get(name, {})
    with BROKEN[name]():
        seeds = (LIKELY[name], *range(TRIED))
        noticed = next((seed for seed in seeds if run(seed, rates).problems), None)
    assert noticed is not None
    assert not run(noticed, rates).problems


def test_every_wrong_variant_is_looked_for() -> None:
    assert LIKELY.keys() == BROKEN.keys()

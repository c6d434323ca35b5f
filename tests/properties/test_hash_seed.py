"""The same input gives the same decisions, records and messages in every process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
DIGEST = """
import hashlib, pathlib, sys
from pumice.scenarios.runner import default_scheduler, play
from pumice.scenarios.scenario import load_scenario
for name in sys.argv[1:]:
    played = play(load_scenario(pathlib.Path(name)), default_scheduler)
    text = repr([cycle.decisions for cycle in played])
    print(name, hashlib.sha256(text.encode()).hexdigest())
"""


def digests(hash_seed: Any, files: Any) -> Any:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", DIGEST, *map(str, files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.splitlines()


@pytest.mark.slow
def test_decisions_do_not_depend_on_the_hash_seed() -> None:
    files = sorted(p for folder in GOLDEN.iterdir() for p in sorted(folder.glob("*.json"))[:3])
    assert len(files) > 20
    assert digests("1", files) == digests("2", files)

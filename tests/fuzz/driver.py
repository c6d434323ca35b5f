"""The driver: makes inputs for the targets in turn, and keeps those that do harm."""

import hashlib
import json
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final
from unittest.mock import patch

import numpy as np

from pumice.errors import PumiceError
from pumice.framework import registry
from tests.fuzz.targets import REST, TARGETS, Target

CPU_S: Final = 10.0
"""Processor time of one input, generous: what is linear takes milliseconds."""
MEMORY: Final = 512 << 20
"""Bytes by which one input may raise the memory of the process."""
FOUND: Final = Path("build/fuzz")
_TURN_S: Final = 0.5
"""Seconds of a target before the next has its turn."""


class OverBudgetError(Exception):
    """An input that takes too long or too much memory."""


def run_input(target: Target, data: bytes) -> BaseException | None:
    """Run one input; return what it did that it may not, None if nothing."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    before = _memory()
    try:
        target.run(data)
    except PumiceError:
        return None
    except Exception as error:  # noqa: BLE001  # that is what is looked for
        return error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if _memory() - before > MEMORY:
        return OverBudgetError(f"more than {MEMORY >> 20} MiB")
    return None


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise OverBudgetError(f"more than {CPU_S:g} s of processor time")


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass
class Fuzzer:
    """A run over some targets."""

    seed: int
    targets: Sequence[Target]
    counts: Counter[str] = field(default_factory=Counter)
    finds: dict[str, Path] = field(default_factory=dict)
    """By where they came from: one input is kept for each place in the code."""

    def run(self, seconds: float) -> None:
        """Go round the targets until the time is over."""
        with patch.object(registry, "installed_plugins", cache(registry.installed_plugins)):
            self._go_round(seconds)  # looking for plugins takes longer than most inputs

    def _go_round(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for target in self.targets:
                turn = min(time.monotonic() + _TURN_S, ends)
                while time.monotonic() < turn:
                    self.step(target)

    def step(self, target: Target) -> None:
        """Make and run the next input of a target."""
        number = self.counts[target.name]
        self.counts[target.name] += 1
        name = int.from_bytes(hashlib.sha256(target.name.encode()).digest()[:4])
        data = target.make(np.random.default_rng((self.seed, name, number)))
        error = run_input(target, data)
        if error is not None:
            self._keep(target, data, error)

    def _keep(self, target: Target, data: bytes, error: BaseException) -> None:
        if target.run == REST.run:
            data = json.dumps(REST.history).encode()
            REST.renew()
        stack = traceback.extract_tb(error.__traceback__)
        where = f" {stack[-1].filename}:{stack[-1].lineno}" if stack else ""
        place = f"{target.name} {type(error).__name__}{where}"
        if place in self.finds:
            return
        file = FOUND / target.name / hashlib.sha256(data).hexdigest()[:12]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        self.finds[place] = file
        said = str(error).splitlines()[:1]
        print(f"{place}: {' '.join(said)[:200]}")  # noqa: T201
        print(f"  replay: {sys.executable} -m tests.fuzz --replay {file}", flush=True)  # noqa: T201


def replay(file: Path) -> BaseException | None:
    """Run a kept input again; the name of its folder is that of its target."""
    target = TARGETS[file.parent.name]
    if target.run == REST.run:
        REST.renew()
    return run_input(target, file.read_bytes())

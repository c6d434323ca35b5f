"""Programs run as child processes: a log file each, a check that they are up, an end by pid."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

POLL_S: Final = 0.05
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class NotUpError(Exception):
    """A program ended or stayed silent when it should have come up; holds the end of its log."""


@dataclass(frozen=True)
class Usage:
    """Resources that a process has used so far."""

    cpu_s: float
    rss_mb: float
    peak_mb: float


def free_ports(count: int) -> list[int]:
    """Find ports of loopback that are free."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Process:
    """One child process, started at once."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        # A test run that is killed must not leave servers behind.
        tied = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._child = subprocess.Popen(  # noqa: S603  # programs of the tests
                [*tied, *(str(part) for part in command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else {**os.environ, **environment},
                start_new_session=True,  # the interrupt key is for the tests; they end the rest
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._child.poll()

    def tail(self, lines: int = 30) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until(self, up: Callable[[], bool], timeout_s: float) -> None:
        """Wait until a check holds; a check that raises OSError does not hold yet."""
        deadline = time.monotonic() + timeout_s
        while True:
            if self.exit_code is not None:
                raise NotUpError(f"{self.name} ended with {self.exit_code}:\n{self.tail()}")
            with contextlib.suppress(OSError):
                if up():
                    return
            if time.monotonic() > deadline:
                raise NotUpError(f"{self.name} not up after {timeout_s:.0f} s:\n{self.tail()}")
            time.sleep(POLL_S)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, unless it has ended."""
        if self.exit_code is None:
            self._child.send_signal(number)

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.send(signal.SIGKILL)
        self._child.wait(10)

    def stop(self, grace_s: float = 15) -> int:
        """Ask it to end; kill it when it does not. Return the exit code."""
        self.send(signal.SIGTERM)
        try:
            return self._child.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._child.wait(10)

    def usage(self) -> Usage:
        """Read processor time and memory from the system."""
        directory = Path("/proc") / str(self.pid)
        times = (directory / "stat").read_text().rpartition(")")[2].split()
        status = dict(
            line.split(":", 1) for line in (directory / "status").read_text().splitlines()
        )
        return Usage(
            (int(times[11]) + int(times[12])) / _TICKS,
            int(status["VmRSS"].split()[0]) / 1024,
            int(status["VmHWM"].split()[0]) / 1024,
        )

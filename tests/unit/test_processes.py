"""Worker processes end with the block that uses them."""

import logging
import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import Literal

import pytest

from pumice.processes import worker_processes

ROOT = Path(__file__).resolve().parents[2]
SLOW = """\
from pumice.plugin import Plugin
import time

class Slow(Plugin):
    name = "slow"

    def on_open(self, ssn):
        time.sleep(60)
"""


def test_workers_of_a_block_that_fails_are_gone_at_once() -> None:
    start, others = time.monotonic(), active_children()
    with pytest.raises(KeyboardInterrupt):
        _interrupted()
    assert time.monotonic() - start < 20
    assert active_children() == others


def _interrupted() -> None:
    with worker_processes(2) as pool:
        running = [pool.submit(time.sleep, 60) for _ in range(4)]
        while not any(future.running() for future in running):
            time.sleep(0.01)
        raise KeyboardInterrupt


def test_a_block_that_ends_gets_its_results() -> None:
    with worker_processes(2) as pool:
        assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_warnings_of_workers_are_not_printed(
    method: Literal["fork", "spawn"], capfd: pytest.CaptureFixture[str]
) -> None:
    with worker_processes(1, method) as pool:
        pool.submit(_warn).result()
    assert capfd.readouterr().err == ""


def _warn() -> None:
    logging.getLogger("pumice.api").warning("a weight of zero")


def test_ctrl_c_ends_a_test_run_in_several_processes(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    for number in range(60):
        (tmp_path / f"{number}.yaml").write_text(
            "objects: [{apiVersion: v1, kind: Node, metadata: {name: n1}}]\n"
            "conf: {actions: allocate, tiers: [{plugins: [{name: slow}]}]}\nexpect: {binds: {}}\n"
        )
    command = ["test", "-j", "2", "--plugin", str(tmp_path / "slow.py"), str(tmp_path)]
    # a shell that runs the tests in the background has them ignore Ctrl-C
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{heeds}; from pumice.cli.main import main; main()"
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", script, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    ) as run:
        try:
            _wait_for_workers(run.pid)
            os.kill(run.pid, signal.SIGINT)
            _, said = run.communicate(timeout=20)
        finally:
            run.kill()
    assert run.returncode == 130
    assert b"Traceback" not in said


def _wait_for_workers(pid: int) -> None:
    """Wait until the process has two children."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + 60
    while len(children.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)

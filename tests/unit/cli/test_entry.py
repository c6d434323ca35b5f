"""The start of the command: Ctrl-C, closed pipes and full disks end it in good order."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pumice.cli.interrupts import INTERRUPTED

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
"""
START = """\
import sys
from pumice.cli.entry import main
print("started", file=sys.stderr, flush=True)
main()
"""
VERBS = ["run", "explain", "lint", "queue order", "snapshot", "sim", "whatif", "plugin", "demo"]


def command(verb: str, file: Path) -> list[str]:
    arguments = {
        "explain": ["-f", str(file)],
        "queue order": ["-f", str(file)],
        "snapshot": ["show", str(file)],
        "sim": ["--trace", str(file)],
        "whatif": ["-f", str(file), "--add-nodes", "1"],
        "plugin": ["list"],
        "demo": ["--report", str(file.parent / "report.html")],
        "--help": [],
        "--version": [],
    }.get(verb, [str(file)])
    return [sys.executable, "-c", START, *verb.split(), *arguments]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "node.yaml"
    made.write_text(NODE)
    return made


@pytest.mark.parametrize(
    ("verb", "delay"),
    [("run", 0.0), ("run", 0.1), ("run", 0.25), ("demo", 0.0), ("demo", 0.6), ("lint", 0.03)],
)
def test_ctrl_c_at_any_moment_prints_no_traceback(file: Path, verb: str, delay: float) -> None:
    process = subprocess.Popen(  # noqa: S603
        command(verb, file), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    time.sleep(delay + 0.01)
    process.send_signal(signal.SIGINT)
    _, reported = process.communicate(timeout=60)
    assert "Traceback" not in reported
    # 0: it was done before; killed: Python itself was about to end
    assert process.returncode in (INTERRUPTED, 0, -signal.SIGINT)
    if process.returncode == INTERRUPTED:
        assert reported.strip().endswith("Aborted!")


CALLBACK = [
    "class Kept: pass",
    "kept = Kept()",
    "watch = weakref.ref(kept, lambda _: os.kill(os.getpid(), signal.SIGINT))",
    "forget = lambda: globals().pop('kept')",
]
LIBRARY = [
    "class Odd:",
    "    def __len__(self): os.kill(os.getpid(), signal.SIGINT); return 1",
    "    def __getitem__(self, at): return 1",
    "import numpy",
    "forget = lambda: numpy.asarray([Odd()], dtype=object)",
]


@pytest.mark.parametrize("place", [CALLBACK, LIBRARY], ids=["callback", "library"])
def test_ctrl_c_is_not_lost_where_python_cannot_raise(place: list[str]) -> None:
    lines = [
        "import os, signal, time, weakref",
        # A shell starts what runs in the background with Ctrl-C ignored, and these tests with it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "from pumice.cli.interrupts import leave_on_interrupt, raise_on_interrupt",
        "leave_on_interrupt(); raise_on_interrupt()",
        *place,
        "try:",
        "    forget()",
        "    time.sleep(30)",
        "except KeyboardInterrupt:",
        "    print('interrupted')",
    ]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", "\n".join(lines)],
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_what_is_started_without_ctrl_c_goes_on_without(file: Path) -> None:
    text = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{START}"
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", text, "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("verb", [*VERBS, "--help", "--version"])
def test_a_full_disk_is_one_sentence(file: Path, verb: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603
            command(verb, file), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().endswith(
        "Error: expected a usable file, got 'No space left on device'"
    )


@pytest.mark.parametrize("verb", ["run", "sim", "whatif", "demo"])
def test_a_pipe_that_nobody_reads_is_no_news(file: Path, verb: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(  # noqa: S603
            command(verb, file), stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


@pytest.mark.parametrize("closed", [1, 2])
@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["nosuch"], 2)])
def test_a_closed_stream_does_not_change_the_exit_code(
    closed: int, arguments: list[str], code: int
) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", START.replace("print", "0 and print"), *arguments],
        check=False,
        capture_output=True,
        preexec_fn=lambda: os.close(closed),
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stdout + done.stderr

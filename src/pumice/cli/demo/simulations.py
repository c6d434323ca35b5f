"""Simulations to look at in the demo: one workload under two configurations."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_NAME: Final = "demo"
_CONFS: Final = ("lending", "reclaiming")


@contextmanager
def demo_runs() -> Iterator[Path]:
    """Yield a folder in which the runs appear after some seconds; it is removed in the end.

    Another process computes them, so that the demo's scheduler is not delayed.
    """
    here = resources.files("pumice.cli.demo")
    with (
        resources.as_file(here) as files,
        TemporaryDirectory(prefix="pumice-demo-", ignore_cleanup_errors=True) as folder,
    ):
        words = ["--trace", str(files / "simulation.yaml"), "--dir", str(Path(folder) / _NAME)]
        for name in _CONFS:
            words += ["--conf", str(files / f"{name}.conf")]
        command = [sys.executable, "-m", "pumice", "sim", *words]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(  # noqa: S603  # our own program on our own files
            command, stdin=quiet, stdout=quiet, stderr=quiet
        ) as process:
            try:
                yield Path(folder)
            finally:
                process.terminate()

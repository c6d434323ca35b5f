"""`pumice up` as a process of its own, as a user starts it."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.present import present


@contextmanager
def running_cluster(kubeconfig: Path, *options: str) -> Iterator[str]:
    """Start a cluster with two nodes whose clock is fast; return its address."""
    command = [sys.executable, "-c", "from pumice.cli.main import main; main()", "up"]
    given = ["--nodes", "2", "--speed", "5", "--kubeconfig", str(kubeconfig), *options]
    up = subprocess.Popen(  # noqa: S603  # a fixed program
        [*command, *given], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert select.select([present(up.stdout)], [], [], 60)[0], "pumice up says nothing"
    first = present(up.stdout).readline()
    assert first.startswith("cluster at http://127.0.0.1:"), present(up.stderr).read()
    yield first.split()[-1]
    up.send_signal(signal.SIGINT)
    _, said = up.communicate(timeout=30)
    assert (up.returncode, said) == (0, "stopped\n"), said
    assert not kubeconfig.exists(), "the kubeconfig is left behind"


class Program:
    """Runs a command line of another project against one cluster."""

    def __init__(self, path: str, home: Path, kubeconfig: Path) -> None:
        self._path = path
        self._env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def start(self, *arguments: Any) -> Any:
        return subprocess.Popen(  # noqa: S603  # a fixed program
            [self._path, *arguments], env=self._env, text=True, stdout=subprocess.PIPE
        )

    def run(self, *arguments: Any, given: Any = None) -> Any:
        return subprocess.run(  # noqa: S603  # a fixed program
            [self._path, *arguments],
            env=self._env,
            input=given,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def __call__(self, *arguments: Any, given: Any = None) -> Any:
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout


def program(name: str) -> str | None:
    """Find a program on the path, or among those that `make e2e` builds."""
    from tests.e2e_kube.controlplane.build import Programs  # noqa: PLC0415

    built = Programs.from_environment().find(name)
    return shutil.which(name) or (None if built is None else str(built))

"""The real kubectl, as a user of the cluster runs it."""

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

Manifest = dict[str, Any]
_TIMEOUT_S: Final = 60


class Kubectl:
    """Runs kubectl against one cluster, in one namespace."""

    def __init__(self, program: Path, kubeconfig: Path, namespace: str = "") -> None:
        self.program = program
        self._kubeconfig = kubeconfig
        self.namespace = namespace

    def inside(self, namespace: str) -> "Kubectl":
        """Return the same for another namespace."""
        return Kubectl(self.program, self._kubeconfig, namespace)

    def run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run it, whatever the result."""
        where = ["--namespace", self.namespace] if self.namespace else []
        return subprocess.run(  # noqa: S603  # a fixed program
            [self.program, *where, *arguments],
            env={
                **os.environ,
                "KUBECONFIG": str(self._kubeconfig),
                "HOME": str(self._kubeconfig.parent),  # discovery is cached there
            },
            input=given,
            text=True,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        """Run it and return its output; it must succeed."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def get(self, *arguments: str) -> Manifest:
        """Get an object or a list of them."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def items(self, *arguments: str) -> list[Manifest]:
        """Get the objects of a list."""
        return self.get(*arguments)["items"]

    def create(self, *manifests: Manifest) -> None:
        """Create objects, in this order."""
        if manifests:
            self("create", "-f", "-", given=documents(manifests))

    def apply(self, *manifests: Manifest) -> None:
        """Apply objects on the server's side."""
        self("apply", "--server-side", "--force-conflicts", "-f", "-", given=documents(manifests))

    def refuses(self, *manifests: Manifest) -> str:
        """Try to create objects; it must fail. Return the message for the user."""
        done = self.run("create", "-f", "-", given=documents(manifests))
        assert done.returncode != 0, f"was accepted: {done.stdout}"
        return done.stderr

    def wait(self, what: str, path: str, value: str, timeout_s: float = 45) -> None:
        """Wait until a field has a value; fails with the object as it is then."""
        done = self.run(
            "wait", what, f"--for=jsonpath={{{path}}}={value}", f"--timeout={timeout_s:.0f}s"
        )
        if done.returncode:
            shown = self.run("get", what, "-o", "yaml")
            raise AssertionError(
                f"{what}: {path} is not {value}: {done.stderr}{shown.stdout}{shown.stderr}"
            )


def documents(manifests: Iterable[Manifest]) -> str:
    """Write manifests as one stream; JSON is YAML."""
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)

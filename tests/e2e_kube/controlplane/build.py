"""The programs of a control plane, compiled once from Go modules into a cache directory.

``python -m tests.e2e_kube.controlplane.build`` compiles what is missing and prints its place.
Nothing is downloaded as a binary: modules are named by path and version, and Go checks their sums.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KUBERNETES: Final = "v1.36.1"
KWOK: Final = "v0.8.0"
HELM: Final = "v3.18.6"
PACKAGES: Final[Mapping[str, str]] = {
    "etcd": "go.etcd.io/etcd/server/v3",  # of the version in the go.mod of Kubernetes
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
"""The programs of a control plane."""
CLIENTS: Final[Mapping[str, str]] = {
    "helm": "helm.sh/helm/v3/cmd/helm",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
"""Programs that only some tests or measurements run."""
_APART: Final[Mapping[str, tuple[str, str]]] = {
    "kwok": ("sigs.k8s.io/kwok", KWOK),
    "helm": ("helm.sh/helm/v3", HELM),
}
"""Modules and versions of the programs that are not of Kubernetes itself."""
CACHE_VARIABLE: Final = "PUMICE_E2E_CACHE"
PROGRAMS_VARIABLE: Final = "PUMICE_E2E_BIN"


class MissingToolError(Exception):
    """Something must be installed first; the message names it."""


class BuildError(Exception):
    """The Go tool failed; the message ends with its output."""


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory in which programs stay between runs."""
    if given := environment.get(CACHE_VARIABLE):
        return Path(given)
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pumice-e2e"


def is_program(path: Path) -> bool:
    """Return whether a file can be run."""
    return path.is_file() and os.access(path, os.X_OK)


@dataclass(frozen=True)
class Programs:
    """Finds the programs and compiles those that are missing."""

    cache: Path
    given: Path | None = None
    """A directory with programs that someone else built; looked into first."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Programs":
        """Read both directories from the environment."""
        given = environment.get(PROGRAMS_VARIABLE)
        return cls(cache_directory(environment), Path(given) if given else None)

    @property
    def _built(self) -> Path:
        return self.cache / f"kubernetes-{KUBERNETES}-kwok-{KWOK}"

    def find(self, name: str) -> Path | None:
        """Return a program that is there already."""
        places = [self.given, self._built] if self.given else [self._built]
        return next((place / name for place in places if is_program(place / name)), None)

    def provide(self, names: tuple[str, ...] = tuple(PACKAGES)) -> dict[str, Path]:
        """Return all programs asked for, compiling what is missing.

        Raises:
            MissingToolError: there is something to compile and no Go.
            BuildError: Go could not do it.
        """
        missing = [name for name in names if self.find(name) is None]
        if missing and shutil.which("go") is None:
            raise MissingToolError(
                f"no {', '.join(missing)} in {self._built} and no go to build with: install Go "
                f"1.26 or newer, or set {PROGRAMS_VARIABLE} to a directory with these programs"
            )
        if missing:
            with self._locked():
                for name in missing:
                    if self.find(name) is None:  # another run may have built it meanwhile
                        self._build(name)
        found = {name: self.find(name) for name in names}
        return {name: path for name, path in found.items() if path is not None}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._built.mkdir(parents=True, exist_ok=True)
        with (self.cache / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say(f"another run builds in {self.cache}; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _build(self, name: str) -> None:
        started = time.monotonic()
        _say(f"building {name} into {self._built}; the first time this takes minutes")
        module = self._module_of(name)
        unfinished = self._built / f".{name}.{os.getpid()}"
        package = CLIENTS.get(name) or PACKAGES[name]
        flags = ["-s", "-w", *(_version_flags() if name not in _APART else ())]
        command = ["build", "-mod=mod", "-buildvcs=false", "-ldflags", " ".join(flags)]
        _go(*command, "-o", str(unfinished), package, directory=module)
        unfinished.replace(self._built / name)
        _say(f"built {name} in {time.monotonic() - started:.0f} s")

    def _module_of(self, name: str) -> Path:
        if name not in _APART:
            return self._kubernetes_module()
        required, version = _APART[name]
        module = self.cache / f"module-{name}-{version}"
        module.mkdir(parents=True, exist_ok=True)
        if not (module / "go.mod").exists():
            (module / "go.mod").write_text(
                f"module pumice.test/{name}\n\ngo 1.26.0\n\nrequire {required} {version}\n"
            )
        return module

    def _kubernetes_module(self) -> Path:
        """Make a module that requires Kubernetes as Kubernetes requires its own parts.

        Its go.mod finds these parts in its own source tree, which the module registry leaves out:
        they are published as modules with the same minor and patch version.
        """
        module = self.cache / f"module-kubernetes-{KUBERNETES}"
        module.mkdir(parents=True, exist_ok=True)
        if (module / "go.mod").exists():
            return module
        wanted = f"k8s.io/kubernetes@{KUBERNETES}"
        info = json.loads(_go("mod", "download", "-json", wanted, directory=module))
        text = Path(info["GoMod"]).read_text()
        text = re.sub(r"(?m)^module .*$", "module pumice.test/kubernetes", text)
        part = KUBERNETES.replace("v1.", "v0.", 1)
        text = re.sub(r"(k8s\.io/[a-z0-9-]+) => \./staging/\S+", rf"\1 => \1 {part}", text)
        sums = Path(info["Dir"]) / "go.sum"
        (module / "go.sum").write_bytes(sums.read_bytes())
        (module / "go.mod").write_text(f"{text}\nrequire k8s.io/kubernetes {KUBERNETES}\n")
        return module


def _version_flags() -> list[str]:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    values = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    return [f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items()]


def _go(*arguments: str, directory: Path) -> str:
    """Run the Go tool at low priority, with a sign of life each minute; return its output."""
    nice = ["nice", "-n", "10"] if shutil.which("nice") else []
    started = time.monotonic()
    with subprocess.Popen(  # noqa: S603  # fixed programs
        [*nice, "go", *arguments],
        cwd=directory,
        env={**os.environ, "GOWORK": "off"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        printed = complained = None
        while printed is None:
            try:
                printed, complained = child.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                _say(f"still at it after {time.monotonic() - started:.0f} s")
    if child.returncode:
        said = f"{printed}{complained}"[-2000:]
        raise BuildError(f"go {' '.join(arguments)} failed:\n{said}")
    return printed


def _say(text: str) -> None:
    print(f"control plane: {text}", file=sys.stderr, flush=True)  # noqa: T201  # takes minutes


def main() -> int:
    """Build everything; without Go only print what to install."""
    try:
        found = Programs.from_environment().provide((*PACKAGES, *CLIENTS))
    except MissingToolError as missing:
        _say(str(missing))
        return 0
    except BuildError as failed:
        _say(str(failed))
        return 1
    for path in found.values():
        _say(f"ready: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Operators of other projects, compiled once from their own modules, each run as one process.

``python -m tests.e2e_kube.operators [NAME...]`` compiles those that are missing; that takes minutes
for each.  Programs, custom resources and webhooks stay in the cache of the control plane.
"""

import base64
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e_kube.controlplane.build import _go, _say, cache_directory, is_program
from tests.e2e_kube.controlplane.plane import ControlPlane, _listens
from tests.e2e_kube.controlplane.processes import Process, free_ports
from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.waiting import until

_START_S: Final = 60


@dataclass(frozen=True)
class Operator:
    """Where an operator comes from, and how it is started."""

    module: str
    version: str
    package: str
    files: tuple[str, ...]
    """Custom resources and webhooks, as paths in the module."""
    flags: tuple[str, ...]
    """With places for ``{port}`` and the file ``{configuration}``."""
    configuration: str = ""
    """With the words PORT and WEBHOOK for ports."""

    @property
    def folder(self) -> Path:
        """Where its program and files are kept."""
        return cache_directory() / "operators" / f"{self.module.replace('/', '-')}-{self.version}"

    @property
    def program(self) -> Path:
        """The file to run."""
        return self.folder / "operator"


_CRDS: Final = "config/crd/bases"
_CONFIGURATION: Final = """
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {port: WEBHOOK}
health: {healthProbeBindAddress: "127.0.0.1:PORT"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
"""
OPERATORS: Final[Mapping[str, Operator]] = {
    "jobset": Operator(
        "sigs.k8s.io/jobset",
        "v0.10.1",
        ".",
        ("config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
         "config/components/webhook/manifests.yaml"),
        ("--config={configuration}",),
        _CONFIGURATION,
    ),
    "mpi-operator": Operator(
        "github.com/kubeflow/mpi-operator",
        "v0.7.0",
        "./cmd/mpi-operator",
        ("manifests/base/kubeflow.org_mpijobs.yaml",),
        ("--gang-scheduling=volcano", "--lock-namespace=default"),
    ),
    "kuberay": Operator(
        "github.com/ray-project/kuberay/ray-operator",
        "v1.5.1",
        ".",
        tuple(f"{_CRDS}/ray.io_ray{kind}.yaml" for kind in ("clusters", "jobs", "services")),
        ("--batch-scheduler=volcano", "--enable-leader-election=false", "--metrics-addr=0",
         "--health-probe-bind-address=127.0.0.1:{port}"),
    ),
}  # fmt: skip


def provide(name: str) -> None:
    """Compile an operator, unless it is there, and keep its files."""
    operator = OPERATORS[name]
    if is_program(operator.program):
        return
    started = time.monotonic()
    operator.folder.mkdir(parents=True, exist_ok=True)
    _say(f"building {name} {operator.version} into {operator.folder}")
    wanted = f"{operator.module}@{operator.version}"
    source = Path(
        json.loads(_go("mod", "download", "-json", wanted, directory=operator.folder))["Dir"]
    )
    for file in operator.files:
        shutil.copyfile(source / file, operator.folder / file.replace("/", "-"))
    unfinished = operator.folder / ".unfinished"
    flags = ["-buildvcs=false", "-ldflags", "-s -w", "-o", str(unfinished)]
    _go("build", *flags, operator.package, directory=source)
    unfinished.replace(operator.program)
    _say(f"built {name} in {time.monotonic() - started:.0f} s")


@contextmanager
def running(name: str, plane: ControlPlane, kubectl: Kubectl) -> Iterator[Process]:
    """Install an operator and run it; its webhooks are gone in the end."""
    operator = OPERATORS[name]
    port, webhook = free_ports(2)
    made = [*_objects(operator, webhook, plane)]
    kinds = [one for one in made if one["kind"] == "CustomResourceDefinition"]
    kubectl.apply(*kinds)
    names = [one["metadata"]["name"] for one in kinds]
    served = lambda: [kubectl.run("get", each).returncode for each in names]  # noqa: E731
    until("kinds served", served, lambda codes: not any(codes))
    hooks = [one for one in made if one["kind"].endswith("WebhookConfiguration")]
    home = plane.directory / f"operator-{name}"
    _write_certificates(plane, home)
    configuration = home / "configuration.yaml"
    text = operator.configuration.replace("WEBHOOK", str(webhook)).replace("PORT", str(port))
    configuration.write_text(text)
    places = {"port": port, "configuration": configuration}
    flags = [flag.format(**places) for flag in operator.flags]
    environment = {"KUBECONFIG": str(plane.admin_kubeconfig), "TMPDIR": str(home)}
    log = plane.directory / "logs" / f"{name}.log"
    process = Process(name, [operator.program, *flags], log, environment=environment)
    try:
        if hooks:
            process.wait_until(lambda: _listens(webhook), _START_S)
            kubectl.apply(*hooks)
        yield process
    finally:
        for one in hooks:
            kubectl("delete", one["kind"], one["metadata"]["name"], "--ignore-not-found")
        ended, log_end = process.exit_code, process.tail()
        process.stop()
        assert ended is None, f"{name} ended with {ended}:\n{log_end}"


def _objects(operator: Operator, port: int, plane: ControlPlane) -> Iterator[dict[str, Any]]:
    """Yield what its files hold; webhooks call the process instead of a service."""
    own = base64.b64encode(plane.authority.own.certificate.read_bytes()).decode()
    for file in sorted(operator.folder.glob("*.yaml")):
        for one in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if one["kind"].endswith("WebhookConfiguration"):
                one["metadata"]["name"] = f"{operator.program.parent.name}-{one['kind'].lower()}"
                for hook in one["webhooks"]:
                    path = hook["clientConfig"]["service"]["path"]
                    url = f"https://127.0.0.1:{port}{path}"
                    hook["clientConfig"] = {"url": url, "caBundle": own}
            yield one


def _write_certificates(plane: ControlPlane, home: Path) -> None:
    """Put certificates where a manager looks for them: below the folder of temporary files."""
    folder = home / "k8s-webhook-server" / "serving-certs"
    folder.mkdir(parents=True, exist_ok=True)
    pair = plane.authority.server(home.name)
    shutil.copyfile(pair.certificate, folder / "tls.crt")
    shutil.copyfile(pair.key, folder / "tls.key")


if __name__ == "__main__":
    for each in sys.argv[1:] or OPERATORS:
        provide(each)

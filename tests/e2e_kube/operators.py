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
from contextlib import ExitStack, contextmanager
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
    objects: str = ""
    """What it must find when it starts."""
    needs: tuple[str, ...] = ()
    """Other operators that it makes objects for."""
    certificates: Path | None = None
    """Where it looks for them, unless below the folder of temporary files."""

    @property
    def folder(self) -> Path:
        """Where its program and files are kept."""
        return cache_directory() / "operators" / f"{self.module.replace('/', '-')}-{self.version}"

    @property
    def program(self) -> Path:
        """The file to run."""
        return self.folder / "operator"


_CRDS: Final = "config/crd/bases"
_FIXED: Final = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108  # what they were built with
_MANAGER: Final = """
kind: Configuration
webhook: {port: WEBHOOK, host: 127.0.0.1}
health: {healthProbeBindAddress: "127.0.0.1:PORT"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
"""
_OWN_CERTIFICATES: Final = "internalCertManagement: {enable: false}\n"
# It writes its own authority into this configuration, which calls nobody: the calls come from the
# one that `_objects` makes.
_TRAINING_OBJECTS: Final = """
apiVersion: v1
kind: Secret
metadata: {name: training-operator-webhook-cert, namespace: default}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validator.training-operator.kubeflow.org}
"""
_ARGO_OBJECTS: Final = """
apiVersion: v1
kind: ConfigMap
metadata: {name: workflow-controller-configmap, namespace: default}
"""
OPERATORS: Final[Mapping[str, Operator]] = {
    "jobset": Operator(
        "sigs.k8s.io/jobset",
        "v0.10.1",
        ".",
        ("config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
         "config/components/webhook/manifests.yaml"),
        ("--config={configuration}",),
        f"apiVersion: config.jobset.x-k8s.io/v1alpha1{_MANAGER}{_OWN_CERTIFICATES}",
    ),
    "leaderworkerset": Operator(
        "sigs.k8s.io/lws",
        "v0.8.0",
        "./cmd",
        (f"{_CRDS}/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
         "config/webhook/manifests.yaml"),
        ("--config={configuration}",),
        f"apiVersion: config.lws.x-k8s.io/v1alpha1{_MANAGER}{_OWN_CERTIFICATES}"
        "gangSchedulingManagement: {schedulerProvider: volcano}\n",
        certificates=_FIXED,
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
    "training-operator": Operator(
        "github.com/kubeflow/training-operator",
        "v1.9.3",
        "./cmd/training-operator.v1",
        (*(f"manifests/base/crds/kubeflow.org_{kind}jobs.yaml"
           for kind in ("jax", "mpi", "paddle", "pytorch", "tf", "xgboost")),
         "manifests/base/webhook/manifests.yaml"),
        ("--gang-scheduler-name=volcano", "--metrics-bind-address=0",
         "--health-probe-bind-address=127.0.0.1:{port}", "--webhook-server-port={webhook}"),
        objects=_TRAINING_OBJECTS,
        certificates=_FIXED,
    ),
    "trainer": Operator(
        "github.com/kubeflow/trainer/v2",
        "v2.1.0",
        "./cmd/trainer-controller-manager",
        (*(f"manifests/base/crds/trainer.kubeflow.org_{kind}s.yaml"
           for kind in ("clustertrainingruntime", "trainingruntime", "trainjob")),
         "manifests/base/webhook/manifests.yaml"),
        ("--config={configuration}",),
        f"apiVersion: config.trainer.kubeflow.org/v1alpha1{_MANAGER}"
        "certManagement: {enable: false}\n",
        needs=("jobset",),
    ),
    "argo-workflows": Operator(
        "github.com/argoproj/argo-workflows/v3",
        "v3.6.7",
        "./cmd/workflow-controller",
        tuple(f"manifests/base/crds/minimal/argoproj.io_{kind}s.yaml"
              for kind in ("clusterworkflowtemplate", "cronworkflow", "workflow",
                           "workflowartifactgctask", "workflowtaskresult", "workflowtaskset",
                           "workflowtemplate")),
        ("--namespace=default", "--executor-image=argoexec:1"),
        objects=_ARGO_OBJECTS,
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
def running(name: str, plane: ControlPlane, kubectl: Kubectl) -> Iterator[None]:
    """Install an operator and what it needs, and run them; their webhooks are gone in the end."""
    with ExitStack() as stack:
        for each in (*OPERATORS[name].needs, name):
            stack.enter_context(_running(each, plane, kubectl))
        yield


@contextmanager
def _running(name: str, plane: ControlPlane, kubectl: Kubectl) -> Iterator[None]:
    operator = OPERATORS[name]
    port, webhook = free_ports(2)
    made = [*_objects(operator, webhook, plane)]
    kinds = [one for one in made if one["kind"] == "CustomResourceDefinition"]
    kubectl.apply(*kinds)
    names = [one["metadata"]["name"] for one in kinds]
    served = lambda: [kubectl.run("get", each).returncode for each in names]  # noqa: E731
    until("kinds served", served, lambda codes: not any(codes))
    hooks = [one for one in made if one["kind"].endswith("WebhookConfiguration")]
    if operator.objects:
        kubectl.apply(*yaml.safe_load_all(operator.objects))
    home = plane.directory / f"operator-{name}"
    _write_certificates(plane, home.name, home / "k8s-webhook-server" / "serving-certs")
    if operator.certificates:
        _write_certificates(plane, home.name, operator.certificates)
    configuration = home / "configuration.yaml"
    text = operator.configuration.replace("WEBHOOK", str(webhook)).replace("PORT", str(port))
    configuration.write_text(text)
    places = {"port": port, "webhook": webhook, "configuration": configuration}
    flags = [flag.format(**places) for flag in operator.flags]
    environment = {"KUBECONFIG": str(plane.admin_kubeconfig), "TMPDIR": str(home)}
    environment |= {"MY_POD_NAMESPACE": "default", "LEADER_ELECTION_DISABLE": "true"}
    log = plane.directory / "logs" / f"{name}.log"
    process = Process(name, [operator.program, *flags], log, environment=environment)
    try:
        if hooks:
            process.wait_until(lambda: _listens(webhook), _START_S)
            kubectl.apply(*hooks)
        yield
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


def _write_certificates(plane: ControlPlane, name: str, folder: Path) -> None:
    """Put certificates where a manager looks for them."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = plane.authority.server(name)
    shutil.copyfile(pair.certificate, folder / "tls.crt")
    shutil.copyfile(pair.key, folder / "tls.key")


if __name__ == "__main__":
    for each in sys.argv[1:] or OPERATORS:
        provide(each)

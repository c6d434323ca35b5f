"""Fixtures of the tests on a real control plane: one plane a session, one space a test."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.e2e_kube.controlplane.audit import AuditLog
from tests.e2e_kube.controlplane.build import MissingToolError, Programs
from tests.e2e_kube.controlplane.plane import ControlPlane
from tests.e2e_kube.install import install
from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.servers import Scheduling, Server, Servers
from tests.e2e_kube.space import Space
from tests.e2e_kube.webhooks import Webhooks

_HOW = (["-o", "wide"], ["--sort-by=.lastTimestamp"])
_KEPT = pytest.StashKey[Path]()
_WHOLE = pytest.StashKey[bool]()
_HERE = Path(__file__).parent
_LAST = "test_rights.py"
_numbers = count()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark everything here, with a time that includes starting a scheduler on a busy machine.

    What reads the audit log of all others comes last.
    """
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(150))
    items.sort(key=lambda item: item.path.name == _LAST)
    chosen = config.getoption("keyword") or config.getoption("markexpr")
    files = {item.path for item in items}
    config.stash[_WHOLE] = not chosen and files.issuperset(_HERE.glob("test_*.py"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Show the state of the cluster and the logs of Pumice below what failed."""
    report = yield
    if report.failed and hasattr(item, "funcargs"):
        servers, kubectl = (item.funcargs.get(name) for name in ("servers", "kubectl"))
        for server in servers.running if servers else ():
            report.sections.append((f"log of {server.process.name}", server.process.tail(60)))
        if kubectl is not None:
            for kind in ("pods", "pg", "jobs.batch.volcano.sh", "queues", "nodes", "events"):
                shown = kubectl.run("get", kind, "--all-namespaces", *_HOW[kind == "events"])
                report.sections.append((kind, "\n".join(shown.stdout.splitlines()[-30:])))
    return report


@pytest.fixture(scope="session")
def plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run a control plane; what it needs is built on the first run."""
    try:
        programs = Programs.from_environment()
        programs.provide()
        directory = Path(tempfile.mkdtemp(prefix="pumice-e2e-"))
        pytestconfig.stash[_KEPT] = directory
        plane = ControlPlane(directory, programs)
    except MissingToolError as missing:
        pytest.skip(str(missing))
    plane.start()
    yield plane
    plane.stop()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Remove what the control plane left, or print its place when something failed."""
    directory = config.stash.get(_KEPT, None)
    if directory is None:
        return
    shutil.rmtree(directory / "etcd", ignore_errors=True)
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"logs of the control plane and of Pumice: {directory}/logs")
    else:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def whole_suite(pytestconfig: pytest.Config) -> None:
    """Skip a test that is about all tests, unless all are run or failed ones are tried again."""
    if not (pytestconfig.stash[_WHOLE] or pytestconfig.getoption("lf")):
        pytest.skip("needs a run of all tests")


@pytest.fixture(scope="session")
def kubectl(plane: ControlPlane) -> Kubectl:
    """Install Pumice; return kubectl with all rights."""
    kubectl = Kubectl(plane.programs["kubectl"], plane.admin_kubeconfig)
    install(kubectl)
    return kubectl


@pytest.fixture(scope="session")
def servers(plane: ControlPlane, kubectl: Kubectl) -> Iterator[Servers]:
    """Yield what starts processes of Pumice; in the end none of them may have lacked a right."""
    servers = Servers(plane, plane.directory / "logs")
    yield servers
    assert not servers.running
    refused = AuditLog(plane.audit_log, from_start=True).refused()
    assert not refused, "rights that the deployment does not give:\n" + "\n".join(refused)


@pytest.fixture(scope="module")
def controllers(servers: Servers) -> Iterator[Server]:
    """Run the controllers."""
    flags = {"kube-api-qps": 500, "kube-api-burst": 1000}
    with servers.serving("controllers", flags) as server:
        yield server


@pytest.fixture(scope="module")
def webhooks(plane: ControlPlane, servers: Servers, kubectl: Kubectl) -> Iterator[Webhooks]:
    """Run admission and register it."""
    with Webhooks(plane, servers, kubectl).registered() as webhooks:
        yield webhooks


@pytest.fixture
def space(plane: ControlPlane, kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[Space]:
    """Yield a namespace of its own; what is in it, all nodes and queues are removed afterwards."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")
    name = f"{words[:40].strip('-')}-{next(_numbers)}"
    kubectl("create", "namespace", name)
    space = Space(kubectl, plane.api, name)
    space.open_default_queue()
    yield space
    space.clear()


@pytest.fixture(scope="module")
def default_scheduler(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Run one scheduler with the usual configuration for all tests of a module."""
    conf = tmp_path_factory.mktemp("conf") / "volcano-scheduler.conf"
    with Scheduling(servers, conf)() as server:
        yield server


@pytest.fixture
def scheduler(servers: Servers, tmp_path: Path) -> Scheduling:
    """Return what runs a scheduler with a configuration, as a context."""
    (tmp_path / "conf").mkdir()
    return Scheduling(servers, tmp_path / "conf" / "volcano-scheduler.conf")


@pytest.fixture
def audit(plane: ControlPlane) -> AuditLog:
    """Return the audit log from the start of the test."""
    return AuditLog(plane.audit_log)


@pytest.fixture
def no_binds(space: Space) -> Iterator[Any]:
    """Make the API server refuse every bind in the namespace, until the result is called."""
    name = f"no-binds-{space.namespace}"
    api = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["pods/binding"]}]},
        "validations": [{"expression": "false", "message": "no binds today"}],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}}
    bound = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    kinds = {"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": bound}
    space.kubectl.create(
        *(
            {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, spec in kinds.items()
        )
    )

    def lift() -> None:
        for kind in kinds:
            space.kubectl("delete", kind, name, "--ignore-not-found")

    yield lift
    lift()

"""The steps from a running scheduler to Pumice, step by step, and back, as the page describes it.

The scheduler that runs first represents Volcano: same lease, same scheduler name, same objects.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.e2e_kube.install import HOME
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until

pytestmark = pytest.mark.usefixtures("controllers")
SHADOW: Final = Path(__file__).parents[2] / "deploy" / "shadow.yaml"
ACCOUNT: Final = "volcano-shadow"
LEASE: Final = {
    "leader-elect": "true",
    "leader-elect-lease-duration": "6s",
    "leader-elect-renew-deadline": "4s",
    "leader-elect-retry-period": "1s",
}


def pumice(*words: object) -> str:
    command = [sys.executable, "-c", "from pumice.cli.main import main; main()", *map(str, words)]
    done = subprocess.run(  # noqa: S603  (our own command)
        command, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_installed_is_checked_first(kubectl: Any, tmp_path: Path) -> None:
    """Step 1: the ConfigMap and the objects of the cluster, as kubectl prints them."""
    found = kubectl.get("configmap/volcano-scheduler-configmap", "-n", HOME)
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text(next(iter(found["data"].values())))
    assert pumice("config", "check", conf)
    jobs = tmp_path / "queues.json"
    jobs.write_text(json.dumps(kubectl.get("queues")))
    pumice("lint", jobs)


def test_a_shadow_agrees_with_what_runs_and_only_reads(
    space: Any, kubectl: Any, scheduler: Any, servers: Any, plane: Any, audit: Any, tmp_path: Path
) -> None:
    """Step 2: rights to read are enough, every bind is the same, nothing is written."""
    documents = [each for each in yaml.safe_load_all(SHADOW.read_text()) if each]
    kubectl.apply(*(each for each in documents if each["kind"] not in ("Deployment", "Service")))
    space.nodes(2, cpu=4)
    report = tmp_path / "shadow.json"
    with scheduler() as running:
        flags = {
            "kubeconfig": plane.service_account(HOME, ACCOUNT),
            "scheduler-conf": scheduler.conf,
            "schedule-period": "50ms",
            "shadow": "true",
            "shadow-report": report,
        }
        with servers.serving("scheduler", flags) as shadow:
            space.kubectl.create(job("train", replicas=3))
            space.wait_running("train", 3)
            space.kubectl.create(job("large", replicas=30))
            until("binds compared", lambda: shadow.metric("pumice_shadow_binds_total"), bool)
            until("a report", lambda: report.exists() and json.loads(report.read_text())["cycles"])
            assert "became leader" not in shadow.log()
            assert running.ready()
        found = json.loads(report.read_text())
    assert found["binds"]["only_running"] == 0
    wrote = [
        each
        for each in audit.requests()
        if each.user.endswith(ACCOUNT) and each.verb not in ("get", "list", "watch")
    ]
    assert wrote == []


def test_one_scheduler_name_then_all_then_back(space: Any, scheduler: Any, servers: Any) -> None:
    """Steps 3 to 5: each is undone by the one before; jobs and queues stay as they are."""
    space.nodes(2, cpu=4)
    with scheduler(**LEASE):
        own = {"scheduler-name": "pumice", "leader-elect": "false", "schedule-period": "200ms"}
        with servers.serving("scheduler", {"scheduler-conf": scheduler.conf, **own}):
            space.kubectl.create(job("old"), job("new", schedulerName="pumice"))
            space.wait_running("old", 1)
            space.wait_running("new", 1)
    before = space.placed()
    with scheduler(**LEASE):  # all: this one takes the lease that the other has released
        space.kubectl.create(job("after"))
        space.wait_running("after", 1)
    with scheduler(**LEASE):  # back
        space.kubectl.create(job("again"))
        space.wait_running("again", 1)
    assert before.items() <= space.placed().items()


def test_pumice_is_a_plugin_of_kubectl(kubectl: Any, tmp_path: Path) -> None:
    """A link named kubectl-pumice on the path is all that it takes."""
    link = tmp_path / "kubectl-pumice"
    link.symlink_to(Path(sys.executable).with_name("pumice"))
    found = subprocess.run(  # noqa: S603  (our own command)
        [str(kubectl.program), "pumice", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )
    assert found.stdout.startswith("pumice ")

"""A record of a real API server: made with read rights, killed, opened and decided again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pumice
from pumice.api.kinds import BUILT_IN
from pumice.api.times import epoch, rfc3339
from pumice.errors import InputError
from pumice.records.observed import RECORDED
from tests.e2e_kube.controlplane.processes import Process
from tests.e2e_kube.install import HOME
from tests.e2e_kube.servers import CONF
from tests.e2e_kube.servers import conf as conf_of
from tests.e2e_kube.space import job
from tests.e2e_kube.test_dashboard import bound
from tests.e2e_kube.waiting import until

pytestmark = pytest.mark.usefixtures("controllers")
COMMAND = (sys.executable, "-c", "from pumice.cli.main import main; main()")


def run(*words: Any) -> str:
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def reader(plane: Any, kubectl: Any) -> Any:
    """Return a kubeconfig that may read what is recorded, and no more."""
    known = {each.name: each for each in BUILT_IN}
    kinds = [*(known[kind] for kind in RECORDED), known["ConfigMap"]]
    allowed = [
        {"apiGroups": [each.group], "resources": [each.plural], "verbs": ["get", "list", "watch"]}
        for each in kinds
    ]
    granted = bound("ClusterRole", "recorder", allowed, "recorder", HOME)
    scheduler = {"kind": "ServiceAccount", "name": "volcano-scheduler", "namespace": HOME}
    granted[1]["subjects"].append(scheduler)
    kubectl.apply(*granted)
    yield plane.service_account(HOME, "recorder")
    for one in granted:
        kubectl("delete", one["kind"], "recorder")


def test_a_record_beside_a_scheduler_outlives_a_kill(
    space: Any, scheduler: Any, reader: Path, tmp_path: Path
) -> None:
    beside, own = tmp_path / "beside", tmp_path / "own"
    words = [*COMMAND, "record", str(beside), "--kubeconfig", str(reader)]
    watching = Process("record", words, tmp_path / "record.log")
    space.nodes(2, cpu=2)
    try:
        with scheduler(CONF, record=own):
            space.kubectl.create(job("first", replicas=2, cpu=1))
            space.wait_running("first", 2)
            space.kubectl.create(job("large", replicas=2, cpu=2))
            name = f"{space.namespace}/large"
            until("the wait recorded", lambda: waits(beside, name))
            os.kill(watching.pid, signal.SIGKILL)
            space.kubectl("delete", "vcjob/first")
            for kind in ("pg", "pod"):  # nothing here collects what it owned
                space.kubectl("delete", kind, *owned(space, kind), "--grace-period=0", "--force")
            space.wait_running("large", 2)
            until("its group running", lambda: phases(space), lambda seen: seen == ["Running"])
    finally:
        watching.kill()
    for folder in (beside, own):
        at = waits(folder, name)
        explained = json.loads(run("explain", name, "-f", folder, "--at", at, "-o", "json"))
        assert explained["state"] == "waits"
        assert explained["causes"]
    assert "Running" in run("history", name, "-f", own)
    replayed = json.loads(run("replay", own, "-o", "json"))
    assert replayed["exact"]
    assert replayed["binds"] == replayed["same_binds"] >= 4


@pytest.mark.skipif("PUMICE_E2E_VOLCANO" not in os.environ, reason="no scheduler of Volcano")
def test_a_record_of_volcano_says_how_far_its_replay_can_be_trusted(
    plane: Any, space: Any, reader: Path, tmp_path: Path
) -> None:
    conf, folder, names = tmp_path / "volcano.conf", tmp_path / "record", range(9)
    conf.write_text(CONF)
    space.nodes(2, cpu=4)
    words = [*COMMAND, "record", str(folder), "--kubeconfig", str(reader)]
    flags = {"kubeconfig": plane.admin_kubeconfig, "scheduler-conf": conf, "leader-elect": "false"}
    volcano = [os.environ["PUMICE_E2E_VOLCANO"], *(f"--{name}={flags[name]}" for name in flags)]
    watching = Process("record", words, tmp_path / "record.log")
    deciding = Process("volcano", volcano, tmp_path / "volcano.log")
    try:
        until("a record begun", lambda: folder.is_dir() and any(folder.glob("*.gz")))
        for number in names:
            space.kubectl.create(job(f"j{number}", replicas=2, cpu=1 + number % 3, run_seconds=4))
        done = lambda: [p["status"].get("phase") for p in space.pods()].count("Succeeded")  # noqa: E731
        until("all have run", done, lambda count: count == 2 * len(names), timeout_s=100)
    finally:
        watching.stop()
        deciding.stop()
    assert "in queue default" in run("history", f"{space.namespace}/j0", "-f", folder)
    idle = tmp_path / "idle.conf"
    idle.write_text(conf_of("predicates", actions="enqueue"))
    near, trusted = zip(*(fidelity(folder, old, conf) for old in (conf, idle)), strict=True)
    assert (near[0] > 0.5, near[1]) == (True, 0.0)
    assert trusted == (near[0] >= 0.8, False)


def fidelity(folder: Path, old: Path, new: Path) -> tuple[float, bool]:
    words = ["replay", str(folder), "--old-conf", str(old), "--conf", str(new), "-o", "json"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)  # noqa: S603
    found = json.loads(done.stdout)
    assert done.returncode == (not found["trusted"]), done.stderr
    return found["fidelity"]["near"] / found["fidelity"]["jobs"], found["trusted"]


def owned(space: Any, kind: str) -> list[str]:
    """Name the pod group or the pods of the first job."""
    names = (each["metadata"]["name"] for each in space.kubectl.items(kind))
    return [name for name in names if name.startswith("first-")]


def phases(space: Any) -> list[str]:
    return [each["status"].get("phase") for each in space.groups()]


def waits(folder: Path, name: str) -> str:
    """Return when a job is last known to wait; empty if a record does not say so yet."""
    try:
        rows = [*pumice.History(folder).jobs()]
    except InputError:  # not begun
        return ""
    found = [row for row in rows if (row["job"], row["state"]) == (name, "Waiting")]
    return rfc3339(epoch(found[-1]["since"]) + 2) if found and found[-1]["why"] else ""

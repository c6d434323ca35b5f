"""Faults between Pumice and a real API server, and of its own parts: all converges in a minute.

Each pod must be bound exactly once: the API server's own audit log is counted.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e_kube.controlplane.certificates import Pair
from tests.e2e_kube.fault_proxy import fault_proxy
from tests.e2e_kube.install import HOME
from tests.e2e_kube.servers import CONF
from tests.e2e_kube.space import job
from tests.e2e_kube.test_faults import ELECTION, GANGS, SIZE, bound_once, gangs, wait_all_bound
from tests.e2e_kube.waiting import stays, until
from tests.e2e_kube.webhooks import Webhooks

PATIENT: Final = {
    **ELECTION,
    "leader-elect-lease-duration": "15s",
    "leader-elect-renew-deadline": "12s",
}
"""An election in which a busy machine does not cost the lead."""
CONVERGED_S: Final = 60.0
"""After any fault everything is as it should be within so long."""


@pytest.mark.parametrize("seed", [1, 2])
def test_pods_are_bound_once_through_a_network_that_fails(
    space: Any, servers: Any, scheduler: Any, plane: Any, audit: Any, tmp_path: Path, seed: int
) -> None:
    space.nodes(4, cpu=4)
    account = servers.kubeconfig("scheduler")
    with (
        fault_proxy(plane, account, seed=seed) as proxy,
        scheduler(kubeconfig=proxy.kubeconfig(tmp_path)),
    ):
        space.kubectl.create(*gangs(space))
        until("faults", proxy.counts.total, lambda seen: seen > 10, timeout_s=30)
        proxy.calm = True
        wait_all_bound(space, GANGS * SIZE, CONVERGED_S)
    bound_once(audit, space, GANGS * SIZE)


def test_a_killed_etcd_costs_nothing_but_time(
    space: Any, scheduler: Any, plane: Any, audit: Any
) -> None:
    space.nodes(4, cpu=4)
    with scheduler() as server:
        space.kubectl.create(*gangs(space, 4))
        wait_all_bound(space, 4 * SIZE)
        plane.restart_etcd()
        until("the API server", lambda: plane.api.request("GET", "/readyz")[0], lambda s: s == 200)
        space.kubectl.create(*gangs(space, 4, first=4))
        wait_all_bound(space, 8 * SIZE, CONVERGED_S)
        stays("ready", server.ready, for_s=1)
    bound_once(audit, space, 8 * SIZE)


def test_killed_controllers_finish_what_they_began(
    space: Any, servers: Any, scheduler: Any
) -> None:
    space.nodes(4, cpu=4)
    flags = {"kube-api-qps": 50, "kube-api-burst": 20, **PATIENT}
    with scheduler():
        with servers.serving("controllers", flags) as first:
            space.kubectl.create(job("big", replicas=60, cpu="100m"))
            until("work begun", lambda: len(space.pods()))
            servers.kill(first)
        with servers.serving("controllers", flags):
            until("60 running", space.running, lambda n: n == 60, timeout_s=CONVERGED_S)
    assert len(space.pods()) == 60
    space.kubectl.inside(HOME)("delete", "lease", "vc-controller-manager")


def test_a_full_etcd_costs_nothing_but_time(
    space: Any, servers: Any, scheduler: Any, plane: Any, audit: Any
) -> None:
    """Every write fails for a while, in the middle of pods being made and bound."""
    space.nodes(4, cpu=4)
    slow = {"kube-api-qps": 50, "kube-api-burst": 20}
    total = 60 + 4 * SIZE

    def bound() -> int:
        return int(audit.binds(space.namespace).total())

    with (
        scheduler(kube_api_qps=20, kube_api_burst=10) as server,
        servers.serving("controllers", slow),
    ):
        space.kubectl.create(*gangs(space, 4))
        space.kubectl.create(job("big", replicas=60, min_available=1, cpu="100m"))
        until("work begun", bound)
        with plane.full_etcd():
            refused = space.kubectl.refuses(*gangs(space, 1, first=4))
            assert "database space exceeded" in refused
            before = bound()
            assert before < total, "it was over before the fault"
            stays("as many bound", bound, lambda now: now == before, for_s=5)
            assert server.ready()
        # bound, not running: KWOK may lose a status that etcd refused
        until("all bound", bound, lambda n: n == total, timeout_s=CONVERGED_S)
    assert len(space.pods()) == total
    bound_once(audit, space, total)


def test_killed_webhooks_hold_up_new_jobs_only(
    space: Any, servers: Any, scheduler: Any, plane: Any, audit: Any
) -> None:
    """The API server refuses jobs and pod groups while nobody checks them."""
    space.nodes(4, cpu=4)
    with Webhooks(plane, servers, space.kubectl).registered() as webhooks, scheduler():
        space.kubectl.create(job("early", replicas=20, cpu="100m"), *gangs(space, 4))
        webhooks.kill()
        with servers.serving("controllers"):
            wait_all_bound(space, 4 * SIZE, CONVERGED_S)
            assert "failed calling webhook" in space.kubectl.refuses(job("late"))
            stays("waiting for its group", lambda: space.pods("early"), lambda n: not n, for_s=3)
            webhooks.start()
            space.kubectl.create(job("late", replicas=20, cpu="100m"))
            for name in ("early", "late"):
                until(
                    f"{name} running",
                    partial(space.running, name),
                    lambda n: n == 20,
                    timeout_s=CONVERGED_S,
                )
    total = 4 * SIZE + 2 * 20
    assert len(space.pods()) == total
    bound_once(audit, space, total)


def test_an_expired_certificate_is_named_and_a_new_one_helps(
    space: Any, servers: Any, scheduler: Any, plane: Any, tmp_path: Path
) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(*gangs(space, 1))
    good = servers.kubeconfig("scheduler")
    late = _with_certificate(good, plane.authority.expired_client("late", "late"), tmp_path)
    scheduler.conf.write_text(CONF)
    server = servers.start("scheduler", {"kubeconfig": late, "scheduler-conf": scheduler.conf})
    until("the cause in the log", server.log, lambda text: "401" in text or "nauthorized" in text)
    assert server.process.exit_code is None, server.log()
    servers.kill(server)
    assert "Traceback" not in server.log()
    with scheduler():
        wait_all_bound(space, SIZE, CONVERGED_S)


def _with_certificate(kubeconfig: Path, pair: Pair, directory: Path) -> Path:
    config = json.loads(kubeconfig.read_text())
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    config["users"][0]["user"] = user
    path = directory / "expired.kubeconfig"
    path.write_text(json.dumps(config))
    return path

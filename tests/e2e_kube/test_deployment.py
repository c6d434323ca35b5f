"""The deployment on a real API server: everything is accepted, and rights are few."""

from functools import partial
from typing import Any

import pytest

from tests.e2e_kube.controlplane.processes import free_ports
from tests.e2e_kube.install import HOME, MANIFEST, webhook_flags
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until

ACCOUNTS = ("volcano-scheduler", "volcano-controllers", "volcano-admission")


def test_the_whole_manifest_is_accepted(kubectl: Any) -> None:
    done = kubectl.run("apply", "--dry-run=server", "--server-side", "-f", str(MANIFEST))
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("asked", ["get secrets", "create clusterrolebindings", "delete nodes"])
def test_no_process_may_do_more_than_its_work(kubectl: Any, account: Any, asked: str) -> None:
    done = kubectl.inside("kube-system").run(
        "auth", "can-i", *asked.split(), f"--as=system:serviceaccount:{HOME}:{account}"
    )
    assert done.stdout.strip() == "no"


def test_volcano_s_short_names_and_columns_are_served(kubectl: Any) -> None:
    names = kubectl("api-resources", "--no-headers", "--api-group=batch.volcano.sh")
    assert "vcjob,vj" in names
    assert "replicas" in kubectl("explain", "vcjob.spec.tasks")
    header = kubectl("get", "queues").splitlines()[:1]
    assert not header or header[0].split()[0] == "NAME"


def test_all_in_one_process_runs_a_job_and_counts_it(space: Any, servers: Any, plane: Any) -> None:
    space.nodes(1, cpu=4)
    pair = plane.authority.server("all")
    flags = {
        "port": free_ports(1)[0],
        "tls-cert-file": pair.certificate,
        "tls-private-key-file": pair.key,
        "schedule-period": "200ms",
        **webhook_flags(),
    }
    with servers.serving("all", flags) as server:
        assert server.get("/healthz")[0] == 200
        space.kubectl.create(job("train", replicas=2, run_seconds=1))
        space.wait_phase("train", "Completed")


def test_metrics_have_volcano_s_names(space: Any, scheduler: Any) -> None:
    space.nodes(1, cpu=4)
    with scheduler() as server:
        for name in ("e2e_scheduling_latency_milliseconds_count", "queue_weight"):
            until(f"counting {name}", partial(server.metric, f"volcano_{name}"))

"""The scheduler's configuration file, changed while it runs."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e_kube.servers import CONF
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import stays, until

pytestmark = pytest.mark.usefixtures("controllers")
IDLE = CONF.replace("enqueue, allocate, backfill", "enqueue")
BAD = CONF.replace("allocate", "allocat8")


def test_a_changed_file_counts_from_the_next_cycle_and_a_bad_one_is_only_reported(
    space: Any, scheduler: Any
) -> None:
    space.nodes(1, cpu=4)
    with scheduler(IDLE) as server:
        space.kubectl.create(job("first"))
        until("a pod to place", space.pods)
        stays("unplaced", space.placed, lambda placed: not placed, for_s=1)
        scheduler.conf.write_text(CONF)
        space.wait_running("first", 1)
        scheduler.conf.write_text(BAD)
        until("the mistake reported", server.log, lambda log: "allocat8" in log)
        space.kubectl.create(job("second"))
        space.wait_running("second", 1)
        assert server.ready()


def test_a_swapped_link_is_seen_as_kubernetes_swaps_it(
    space: Any, servers: Any, tmp_path: Path
) -> None:
    """A mounted ConfigMap is a link to a directory that is replaced as a whole."""
    space.nodes(1, cpu=4)
    for name, text in (("one", IDLE), ("two", CONF)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "volcano-scheduler.conf").write_text(text)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "..data").symlink_to(tmp_path / "one")
    conf = mounted / "volcano-scheduler.conf"
    conf.symlink_to("..data/volcano-scheduler.conf")
    with servers.serving("scheduler", {"scheduler-conf": conf, "schedule-period": "200ms"}):
        space.kubectl.create(job("first"))
        until("a pod to place", space.pods)
        stays("unplaced", space.placed, lambda placed: not placed, for_s=1)
        (mounted / "..data_tmp").symlink_to(tmp_path / "two")
        (mounted / "..data_tmp").rename(mounted / "..data")
        space.wait_running("first", 1)

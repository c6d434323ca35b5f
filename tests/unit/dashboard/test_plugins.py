"""A dashboard decides and answers with plugins of the user's own."""

from pathlib import Path
from typing import Any

import pytest

from pumice.api.objects import FOLLOWED
from pumice.apiserver.served_cluster import ServedCluster
from pumice.cli.inputs import read_world
from pumice.cli.options import ClusterInput
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import from_master
from pumice.dashboard.answers import Answers
from pumice.dashboard.pages import NOW, Pages
from pumice.dashboard.questions import Why
from pumice.dashboard.sources import FollowedSource, StaticSource
from tests.unit.dashboard.test_live import eventually

CLUSTER = Path(__file__).resolve().parents[3] / "examples" / "first-cluster.yaml"
PLUGIN = """
from dataclasses import dataclass
import numpy as np
from pumice.plugin import Plugin, Reason

@dataclass(kw_only=True)
class Nowhere(Plugin, name="nowhere"):
    reasons = (Reason("node(s) are closed by the tests"),)

    def filter_shape(self, shape, facts):
        return np.zeros(len(facts), dtype=bool)
"""
CONF = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: nowhere}]}]\n'


@pytest.fixture
def files(tmp_path: Path) -> Any:
    plugin, conf = tmp_path / "nowhere.py", tmp_path / "scheduler.conf"
    plugin.write_text(PLUGIN)
    conf.write_text(CONF)
    return str(plugin), conf


def test_files_are_shown_with_them(files: Any) -> None:
    plugin, conf = files
    world = read_world(ClusterInput((CLUSTER,), conf), (plugin,))
    pages = Pages(StaticSource(world, "first", (plugin,)), Answers())
    try:
        reported = pages.ask(NOW, Why("ai/sweep")).result(60.0)  # from a process of its own
        assert "closed by the tests" in str(reported)
    finally:
        pages.answers.close()


def test_a_cluster_is_followed_with_them(files: Any) -> None:
    plugin, _ = files
    served = ServedCluster(CONF.replace(", {name: nowhere}", ""))
    served.start()
    try:
        with KubeCluster(from_master(served.url), kinds=FOLLOWED) as cluster:
            source = FollowedSource(cluster, "followed", plugins=(plugin,), period_s=0.1)
            source.start()
            try:
                eventually(lambda: source.feed.picture)
                world = source.material().to_world()
                assert [*world.plugins] == ["nowhere"]
                assert source._made(CONF, "here").conf.tiers[0].plugins[1].name == "nowhere"
            finally:
                source.stop()
    finally:
        served.stop()

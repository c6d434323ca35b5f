"""Watches that begin with the objects there are (WatchList), on a server that has them."""

from typing import Any

import pytest

from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.kube.reflector import Reflector
from tests.e2e_kube.waiting import until


def test_kinds_are_followed_without_a_list(plane: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    list_once = Reflector.list_once

    async def noted(self: Reflector) -> None:
        listed.append(self._store.kind)
        await list_once(self)

    monkeypatch.setattr(Reflector, "list_once", noted)
    with KubeCluster(load_connection(str(plane.admin_kubeconfig)), kinds=("ConfigMap", "Pod")) as c:
        assert c.wait_synced(30) == []
        assert listed == []
        before = {m["metadata"]["name"] for m in c.list("ConfigMap", "kube-system")[0]}
        assert "extension-apiserver-authentication" in before
        c.create(_config_map("streamed"))
        until("seen", lambda: c.peek("ConfigMap", "default", "streamed"))
        c.delete("ConfigMap", "default", "streamed")
        until("gone", lambda: c.peek("ConfigMap", "default", "streamed") is None)
    assert listed == []


def _config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {},
    }

"""A record of a running cluster, made by a program."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.stored_conf import scheduler_configuration
from pumice.library.arguments import PATHS, check_kind
from pumice.library.histories import History
from pumice.records.observed import RECORDED, Follower, unread, wait_synced
from pumice.records.recorder import Limits, Recorder

_STEP_S: Final = 0.5


def record(
    folder: str | Path,
    *,
    kubeconfig: str | Path = "",
    master: str = "",
    size: str = "4Gi",
    age: str = "720h",
) -> "Recording":
    """Record a running cluster, as ``pumice record`` does, until the result is stopped.

    Args:
        folder: Where the record is, or will be.
        kubeconfig: How to reach the cluster; by default as kubectl does.
        master: Another address of its API server.
        size: Bytes that the record may take.
        age: How long it is kept.

    Raises:
        InputError: The folder holds something else, or another process records to it.
        ClusterError: The cluster cannot be read.
    """
    check_kind("folder", folder, PATHS, "the folder of a record")
    check_kind("kubeconfig", kubeconfig, PATHS, "a file")
    limits = Limits.of(size, age)
    connection = load_connection(str(kubeconfig) or None, master)
    return Recording(Path(folder), KubeCluster(connection, kinds=RECORDED, by_server=True), limits)


class Recording:
    """A cluster that is being recorded; a context manager, at whose end it stops."""

    def __init__(self, folder: Path, cluster: KubeCluster, limits: Limits) -> None:
        """Begin; returns once the cluster is in the record."""
        self._folder = folder
        self._cluster = cluster
        self._stop = threading.Event()
        cluster.__enter__()
        try:
            self._recorder = Recorder(folder, cluster.now, by="observer", limits=limits)
            wait_synced(cluster, self._stop.is_set)
            self._follower = Follower(
                cluster,
                self._recorder,
                conf=scheduler_configuration,
                hidden=lambda: unread(cluster),
            )
            self._follower.step()
        except BaseException:
            cluster.__exit__(None, None, None)
            raise
        self._recorder.start()
        self._thread = threading.Thread(target=self._follow, name="pumice-record", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.wait(_STEP_S):
            self._follower.step()

    def stop(self) -> History:
        """Write the rest and end; return the record."""
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join()
            self._recorder.close()
            self._cluster.__exit__(None, None, None)
        return History(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Recording in {self._folder}, {'stopped' if self._stop.is_set() else 'running'}>"

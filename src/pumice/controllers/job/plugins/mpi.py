"""mpi: the master knows its workers, and every container listens for ssh."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pumice.api.kinds import Manifest
from pumice.controllers.job.names import hosts
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    add_env,
    containers,
    find_task,
    open_port,
    task_of,
)


class Mpi(JobPlugin):
    """MPI_HOST on the master; the port of ssh everywhere."""

    name: ClassVar[str] = "mpi"
    defaults: ClassVar[Mapping[str, Any]] = {"master": "master", "worker": "worker", "port": 22}

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Open the port and, on the master, list the workers."""
        is_master = task_of(pod) == self.flags["master"]
        worker = find_task(job, self.flags["worker"])
        if is_master and worker is None:
            return
        names = "" if worker is None else ",".join(".".join(one) for one in hosts(job, worker))
        for container in containers(pod):
            open_port(container, "mpijob-port", self.flags["port"])
            if is_master:
                add_env(container, MPI_HOST=names)

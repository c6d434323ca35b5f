"""ray: starts a head and workers that find it, and a Service for the head."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pumice.api.annotations import TASK_SPEC
from pumice.api.kinds import Manifest
from pumice.controllers.job.names import JOB_NAME, JOB_NAMESPACE, host_name
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    Owned,
    find_task,
    made_for,
    open_port,
    task_of,
)

_PORTS: Final = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}


class Ray(JobPlugin):
    """The commands of head and workers, and the three ports of the head."""

    name: ClassVar[str] = "ray"
    defaults: ClassVar[Mapping[str, Any]] = {
        "head": "head",
        "headContainer": "head",
        "worker": "worker",
        "workerContainer": "worker",
        "port": 6379,
        "dashboardPort": 8265,
        "clientPort": 10001,
    }

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Replace the command of the container that plays the role of its task."""
        head = find_task(job, self.flags["head"])
        if head is None:
            return
        task = task_of(pod)
        for container in pod["spec"].get("containers") or []:
            if task == self.flags["head"] and container["name"] == self.flags["headContainer"]:
                for name, flag in _PORTS.items():
                    open_port(container, name, self.flags[flag])
                container["command"] = ["sh", "-c", self._head_command()]
            worker = (self.flags["worker"], self.flags["workerContainer"])
            if (task, container["name"]) == worker:
                address = ".".join(host_name(job, head, 0))
                start = f"ray start --block --address={address}:{self.flags['port']}"
                container["command"] = ["sh", "-c", start]

    def objects(self, job: Manifest) -> list[Owned]:
        """List the Service of the head."""
        name = f"{job['metadata']['name']}-head-svc"
        return [Owned("Service", name, lambda: self._service(job, name))]

    def _head_command(self) -> str:
        """Write how the head starts."""
        return (
            "ray start --head --block --dashboard-host=0.0.0.0"
            f" --port={self.flags['port']} --dashboard-port={self.flags['dashboardPort']}"
            f" --ray-client-server-port={self.flags['clientPort']}"
        )

    def _service(self, job: Manifest, name: str) -> Manifest:
        """Write the Service of the head."""
        selector = {
            JOB_NAME: job["metadata"]["name"],
            JOB_NAMESPACE: job["metadata"]["namespace"],
            TASK_SPEC: self.flags["head"],
        }
        ports = [
            {"name": port, "port": self.flags[flag], "targetPort": port, "protocol": "TCP"}
            for port, flag in _PORTS.items()
        ]
        spec = {"selector": selector, "ports": ports, "type": "ClusterIP"}
        return made_for(job, "v1", "Service", name, spec=spec)

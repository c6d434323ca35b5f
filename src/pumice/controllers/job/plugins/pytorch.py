"""pytorch: the rendezvous of torch.distributed as environment variables."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pumice.api.kinds import Manifest
from pumice.controllers.job.names import host_name
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    add_env,
    find_task,
    index_of,
    open_port,
    task_of,
)
from pumice.controllers.job.state import replicas_of

_WAIT = """\
echo "Waiting for master node {host}:{port} to be ready..."
TIMEOUT={timeout}
ELAPSED=0
until {{ nc -z {host} {port} || echo > /dev/tcp/{host}/{port}; }} 2>/dev/null; do
  if [ $ELAPSED -ge $TIMEOUT ]; then
    echo "Timeout waiting for master after ${{TIMEOUT}} seconds"
    exit 1
  fi
  echo "Master not ready yet, retrying in 2 seconds... (elapsed: ${{ELAPSED}}s)"
  sleep 2
  ELAPSED=$((ELAPSED + 2))
done
echo "Master node is ready!\""""
_WAITER = "wait-for-master"


class Pytorch(JobPlugin):
    """Address, world size and rank; the master is rank 0, worker *i* is rank *i* + 1."""

    name: ClassVar[str] = "pytorch"
    defaults: ClassVar[Mapping[str, Any]] = {
        "master": "master",
        "worker": "worker",
        "port": 23456,
        "wait-master-enabled": False,
        "wait-master-timeout": 300,
        "wait-master-image": "busybox:1.36.1",
    }

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Add the variables; without a master task there is nothing to meet at."""
        master = find_task(job, self.flags["master"])
        if master is None:
            return
        address = ".".join(host_name(job, master, 0))
        rank = self._rank(pod)
        if rank and self.flags["wait-master-enabled"]:
            self._wait(pod, address)
        for container in pod["spec"].get("containers") or []:
            open_port(container, "pytorchjob-port", self.flags["port"])
            add_env(
                container,
                MASTER_ADDR=address,
                MASTER_PORT=str(self.flags["port"]),
                WORLD_SIZE=str(self._world_size(job)),
            )
            if rank is not None:
                add_env(container, RANK=str(rank))

    def _rank(self, pod: Manifest) -> int | None:
        """Rank a pod; tasks other than master and worker have none."""
        task = task_of(pod)
        if task == self.flags["worker"]:
            return index_of(pod) + 1
        return 0 if task == self.flags["master"] else None

    def _world_size(self, job: Manifest) -> int:
        """Count the pods that take part."""
        roles = (self.flags["master"], self.flags["worker"])
        tasks = job["spec"].get("tasks") or []
        return sum(replicas_of(task) for task in tasks if task.get("name") in roles)

    def _wait(self, pod: Manifest, address: str) -> None:
        """Let a worker start only when the master's port answers."""
        waiting = pod["spec"].setdefault("initContainers", [])
        if any(container.get("name") == _WAITER for container in waiting):
            return
        script = _WAIT.format(
            host=address, port=self.flags["port"], timeout=self.flags["wait-master-timeout"]
        )
        image = self.flags["wait-master-image"]
        waiting.append({"name": _WAITER, "image": image, "command": ["sh", "-c", script]})

"""Plugins that connect the pods of a distributed program, framework by framework."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pumice.api.annotations import JOB_NAME, TASK_SPEC
from pumice.api.kinds import Manifest
from pumice.controllers.job.names import JOB_NAMESPACE, MOST_HOSTS, host_name, hosts
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    Owned,
    add_env,
    containers,
    find_task,
    index_of,
    made_for,
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
        """Add the variables; without a master task there is no address."""
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
        roles = (self.flags["master"], self.flags["worker"])
        tasks = job["spec"].get("tasks") or []
        return sum(replicas_of(task) for task in tasks if task.get("name") in roles)

    def _wait(self, pod: Manifest, address: str) -> None:
        """Delay a worker until the master's port answers."""
        waiting = pod["spec"].setdefault("initContainers", [])
        if any(container.get("name") == _WAITER for container in waiting):
            return
        script = _WAIT.format(
            host=address, port=self.flags["port"], timeout=self.flags["wait-master-timeout"]
        )
        image = self.flags["wait-master-image"]
        waiting.append({"name": _WAITER, "image": image, "command": ["sh", "-c", script]})


_ROLES: Final = ("ps", "worker", "chief", "evaluator")


class Tensorflow(JobPlugin):
    """The hosts of each role, with the port of the service."""

    name: ClassVar[str] = "tensorflow"
    defaults: ClassVar[Mapping[str, Any]] = {**{role: role for role in _ROLES}, "port": 2222}

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Add TF_CONFIG; a single pod needs none."""
        tasks = job["spec"].get("tasks") or []
        if len(tasks) == 1 and replicas_of(tasks[0]) == 1:
            return
        cluster = {}
        for role in _ROLES:
            for task in tasks:
                if task.get("name") == self.flags[role] and replicas_of(task):
                    cluster[role] = self._hosts(job, task)
        place = {"type": self._role(task_of(pod)), "index": index_of(pod)}
        text = json.dumps({"cluster": cluster, "task": place}, separators=(",", ":"))
        for container in pod["spec"].get("containers") or []:
            add_env(container, TF_CONFIG=text)

    def _hosts(self, job: Manifest, task: Manifest) -> list[str]:
        names = (host_name(job, task, index) for index in range(min(replicas_of(task), MOST_HOSTS)))
        return [f"{host}.{domain}:{self.flags['port']}" for host, domain in names]

    def _role(self, task: str) -> str:
        """Return the role of a task; one without a role keeps its own name."""
        roles = ("chief", "worker", "ps", "evaluator")
        return next((role for role in roles if self.flags[role] == task), task)


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
        """Replace the command of the container for the role of its task."""
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


_RANK: Final = "hccl/rankIndex"


class Hcclrank(JobPlugin):
    """Masters first, workers after them; a RANK variable outranks the count."""

    name: ClassVar[str] = "hcclrank"
    listed: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {"master": "master", "worker": "worker"}

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Annotate the pod unless it is already annotated."""
        annotations = pod["metadata"]["annotations"]
        if annotations.get(_RANK):
            return
        rank = _rank_variable(pod)
        task = task_of(pod)
        if not rank and task == self.flags["master"]:
            rank = str(index_of(pod))
        elif not rank and task == self.flags["worker"]:
            master = find_task(job, self.flags["master"])
            rank = str((replicas_of(master) if master else 0) + index_of(pod))
        if rank:
            annotations[_RANK] = rank


def _rank_variable(pod: Manifest) -> str:
    """Read RANK from the first container that has it."""
    for container in pod["spec"].get("containers") or []:
        for variable in container.get("env") or []:
            if variable.get("name") == "RANK":
                return str(variable.get("value") or "")
    return ""

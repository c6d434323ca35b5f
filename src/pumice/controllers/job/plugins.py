"""Job plugins by name, the possible keys of Volcano's ``spec.plugins``, and what each adds."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import msgspec

from pumice.api.annotations import JOB_NAME, TASK_SPEC
from pumice.api.kinds import NETWORK_POLICY, Manifest
from pumice.controllers.base import controlled_by
from pumice.controllers.job.state import (
    JOB_NAMESPACE,
    MOST_HOSTS,
    TASK_INDEX,
    host_name,
    hosts,
    replicas_of,
)

KeyMaker = Callable[[], tuple[str, str]]
"""Makes a private and a public key."""

_Flag = TypeVar("_Flag", bool, int, str)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class Owned(msgspec.Struct, frozen=True):
    """An object that a plugin keeps for a job; written only when it is needed."""

    kind: str
    name: str
    build: Callable[[], Manifest]
    rewritten: bool = False
    """Whether it is updated at every reconciliation, not only created when it is missing."""


class JobPlugin:
    """Base of the job plugins: does nothing."""

    name: ClassVar[str] = ""
    listed: ClassVar[bool] = True
    """Whether the status of the job names the plugin among its resources."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    """The flags that the plugin knows, with the values they have unless the job says otherwise."""

    def __init__(self, arguments: Sequence[str], keys: KeyMaker) -> None:
        """Read the arguments of the job's spec; unreadable ones end the reading."""
        self.flags = flags(arguments, self.defaults)
        self.keys = keys

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Add to a pod that is about to be created."""

    def objects(self, job: Manifest) -> list[Owned]:  # noqa: ARG002
        """List the objects that exist as long as the job may run."""
        return []


def flags(arguments: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Read arguments as Go's flag package does: -name value, --name=value, --switch.

    Reading stops at the first thing that is not a known flag; earlier ones are kept.
    """
    values = dict(defaults)
    words = iter(arguments)
    for word in words:
        body = word.removeprefix("-").removeprefix("-")
        name, equals, text = body.partition("=")
        if word == body or name not in defaults:
            break
        if not equals and isinstance(defaults[name], bool):
            text = "true"
        elif not equals:
            following = next(words, None)
            if following is None:
                break
            text = following
        value = _parsed(text, defaults[name])
        if value is None:
            break
        values[name] = value
    return values


def _parsed(text: str, default: _Flag) -> _Flag | None:
    """Read a value of the type of its default, None when it is not one."""
    if isinstance(default, bool):
        known = text in _TRUE or text in _FALSE
        return text in _TRUE if known else None
    if isinstance(default, int):
        digits = text.removeprefix("-").removeprefix("+")
        return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    return text


def task_of(pod: Manifest) -> str:
    """Name the task of a pod."""
    return str(pod["metadata"]["annotations"][TASK_SPEC])


def index_of(pod: Manifest) -> int:
    """Return the index of a pod in its task."""
    return int(pod["metadata"]["annotations"][TASK_INDEX])


def find_task(job: Manifest, name: str) -> Manifest | None:
    """Return a task of a job by its name."""
    tasks: list[Manifest] = job["spec"].get("tasks") or []
    return next((task for task in tasks if task.get("name") == name), None)


def containers(pod: Manifest) -> list[Manifest]:
    """List the containers of a pod, the init containers first."""
    return [*(pod["spec"].get("initContainers") or []), *(pod["spec"].get("containers") or [])]


def add_env(container: Manifest, **variables: str) -> None:
    """Append environment variables to a container."""
    listed = container.setdefault("env", [])
    listed.extend({"name": name, "value": value} for name, value in variables.items())


def open_port(container: Manifest, name: str, number: int) -> None:
    """Open a port of a container unless it is open already."""
    ports = container.setdefault("ports", [])
    if all(port.get("containerPort") != number for port in ports):
        ports.append({"name": name, "containerPort": number, "protocol": "TCP"})


def mount(pod: Manifest, volume: Manifest, path: str, **extra: str) -> None:
    """Add a volume to a pod and mount it into all its containers."""
    pod["spec"].setdefault("volumes", []).append(volume)
    for container in containers(pod):
        place = {"mountPath": path, "name": volume["name"], **extra}
        container.setdefault("volumeMounts", []).append(place)


def made_for(job: Manifest, api_version: str, kind: str, name: str, **body: Any) -> Manifest:
    """Write an object that belongs to a job."""
    metadata = {
        "name": name,
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [controlled_by(job)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


class Svc(JobPlugin):
    """A headless Service, a ConfigMap of host names and a NetworkPolicy."""

    name: ClassVar[str] = "svc"
    defaults: ClassVar[Mapping[str, Any]] = {
        "publish-not-ready-addresses": False,
        "disable-network-policy": False,
        "inject-hosts-env": True,
    }

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Set the pod's host name, and add the hosts as variables and as files."""
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job["metadata"]["name"]
        config = _config_name(job)
        if self.flags["inject-hosts-env"]:
            for container in containers(pod):
                container.setdefault("env", []).extend(_host_variables(job, config))
        mount(
            pod,
            {"name": config, "configMap": {"name": config, "defaultMode": 0o644}},
            "/etc/volcano",
        )

    def objects(self, job: Manifest) -> list[Owned]:
        """List the Service, the ConfigMap and, unless it is switched off, the NetworkPolicy."""
        name = str(job["metadata"]["name"])
        owned = [
            Owned("ConfigMap", _config_name(job), lambda: _config_map(job), rewritten=True),
            Owned("Service", name, lambda: self._service(job)),
        ]
        if not self.flags["disable-network-policy"]:
            owned.append(Owned(NETWORK_POLICY, name, lambda: _network_policy(job)))
        return owned

    def _service(self, job: Manifest) -> Manifest:
        spec: Manifest = {"clusterIP": "None", "selector": _selector(job), "type": "ClusterIP"}
        if self.flags["publish-not-ready-addresses"]:
            spec["publishNotReadyAddresses"] = True
        return made_for(job, "v1", "Service", str(job["metadata"]["name"]), spec=spec)


def _config_name(job: Manifest) -> str:
    """Name the ConfigMap, which is also the name of its volume."""
    return f"{job['metadata']['name']}-svc"


def _selector(job: Manifest) -> dict[str, str]:
    metadata = job["metadata"]
    return {JOB_NAME: str(metadata["name"]), JOB_NAMESPACE: str(metadata["namespace"])}


def _task_words(job: Manifest) -> list[tuple[Manifest, str]]:
    """List tasks with the word that represents them in variable names."""
    tasks: list[Manifest] = job["spec"].get("tasks") or []
    return [(task, str(task.get("name") or "").replace("-", "_")) for task in tasks]


def _host_variables(job: Manifest, config: str) -> list[Manifest]:
    """Write the variables that read their value from the ConfigMap."""
    names = [
        variable
        for _, word in _task_words(job)
        for variable in (f"VC_{word.upper()}_HOSTS", f"VC_{word.upper()}_NUM")
    ]
    return [
        {"name": name, "valueFrom": {"configMapKeyRef": {"name": config, "key": name}}}
        for name in names
    ]


def _config_map(job: Manifest) -> Manifest:
    """Write the hosts of each task: as lines, as a list and as a number."""
    data: dict[str, str] = {}
    for task, word in _task_words(job):
        names = [f"{host}.{domain}" for host, domain in hosts(job, task)]
        data[f"{word}.host"] = "\n".join(names)
        data[f"VC_{word.upper()}_HOSTS"] = ",".join(names)
        data[f"VC_{word.upper()}_NUM"] = str(len(names))
    return made_for(job, "v1", "ConfigMap", _config_name(job), data=data)


def _network_policy(job: Manifest) -> Manifest:
    """Admit only pods of the same job."""
    pods = {"matchLabels": _selector(job)}
    spec = {
        "podSelector": pods,
        "ingress": [{"from": [{"podSelector": pods}]}],
        "policyTypes": ["Ingress"],
    }
    version = "networking.k8s.io/v1"
    return made_for(job, version, "NetworkPolicy", str(job["metadata"]["name"]), spec=spec)


class Env(JobPlugin):
    """The index of the pod as two environment variables."""

    name: ClassVar[str] = "env"

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:  # noqa: ARG002
        """Add the index to every container."""
        index = str(index_of(pod))
        for container in containers(pod):
            add_env(container, VK_TASK_INDEX=index, VC_TASK_INDEX=index)


_HOME: Final = "/root/.ssh"
_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
_HIGHEST_PORT: Final = 65535
_KEY_BITS: Final = 2048


def new_key_pair() -> tuple[str, str]:
    """Make an RSA key: the private half as PEM (PKCS #1), the public half for authorized_keys."""
    # Few jobs want keys: the library is loaded for the first that does.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), f"{public.decode()}\n"


class Ssh(JobPlugin):
    """A key pair in a Secret, mounted into every container."""

    name: ClassVar[str] = "ssh"

    def __init__(self, arguments: Sequence[str], keys: KeyMaker) -> None:
        """Read where the keys go, and keys that were given."""
        super().__init__(arguments, keys)
        defaults = {
            "ssh-key-file-path": _HOME,
            "ssh-private-key": "",
            "ssh-public-key": "",
            "ssh-port": 22,
        }
        self.flags = flags(arguments, defaults)
        self.keys = keys

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Mount the keys; elsewhere than at root's home they must be readable by others."""
        path = self.flags["ssh-key-file-path"]
        secret = {
            "secretName": _secret_name(job),
            "items": [{"key": name, "path": f".ssh/{name}"} for name in _FILES],
            "defaultMode": 0o600 if path == _HOME else 0o644,
        }
        volume = {"name": _secret_name(job), "secret": secret}
        mount(pod, volume, path, subPath=".ssh")

    def objects(self, job: Manifest) -> list[Owned]:
        """List the Secret."""
        return [Owned("Secret", _secret_name(job), lambda: self._secret(job))]

    def _secret(self, job: Manifest) -> Manifest:
        """Write the Secret, with new keys unless the job has its own."""
        private, public = self.flags["ssh-private-key"], self.flags["ssh-public-key"]
        if not private:
            private, public = self.keys()
        texts = (private, public, public, self._config(job))
        data = {
            name: base64.b64encode(text.encode()).decode()
            for name, text in zip(_FILES, texts, strict=True)
        }
        return made_for(job, "v1", "Secret", _secret_name(job), data=data, type="Opaque")

    def _config(self, job: Manifest) -> str:
        """Write the ssh client's configuration: one entry for each host."""
        port = self.flags["ssh-port"]
        port = port if 0 < port <= _HIGHEST_PORT else 22
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job["spec"].get("tasks") or []:
            for host, domain in hosts(job, task):
                lines += [f"Host {host}", f"  HostName {host}.{domain}", f"  Port {port}"]
        return "\n".join(lines) + "\n"


def _secret_name(job: Manifest) -> str:
    """Name the Secret, which is also the name of its volume."""
    return f"{job['metadata']['name']}-ssh"


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


JOB_PLUGINS: Final[dict[str, type[JobPlugin]]] = {
    plugin.name: plugin for plugin in (Env, Svc, Ssh, Pytorch, Tensorflow, Mpi, Ray, Hcclrank)
}

__all__ = ["JOB_PLUGINS", "JobPlugin", "KeyMaker", "Owned", "plugins_of"]


def plugins_of(job: Manifest, keys: KeyMaker) -> tuple[list[JobPlugin], str]:
    """Make the plugins that a job asks for, and return the name of an unknown one."""
    wanted = job["spec"].get("plugins") or {}
    unknown = next((str(name) for name in sorted(wanted) if name not in JOB_PLUGINS), "")
    known = [name for name in JOB_PLUGINS if name in wanted]
    return [JOB_PLUGINS[name](wanted[name] or [], keys) for name in known], unknown

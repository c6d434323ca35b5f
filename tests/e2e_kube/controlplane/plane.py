"""One real control plane: etcd, kube-apiserver and KWOK as plain processes on loopback.

There is no controller manager unless a test runs one for volumes: no service accounts, no garbage
collection, and namespaces are never quite deleted.  etcd does not wait for the disk, and speaks
without TLS: for tests only.
"""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.e2e_kube.controlplane.api import Api
from tests.e2e_kube.controlplane.build import Programs
from tests.e2e_kube.controlplane.certificates import Authority, Pair
from tests.e2e_kube.controlplane.processes import Process, free_ports

AUDITED_GROUP: Final = "pumice-e2e"
"""Requests of users in this group are written to the audit log."""

_HERE: Final = Path(__file__).parent
_START_S: Final = 120
_HOSTS: Final = ("127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1")
# Nothing would make default service accounts, nor take the not-ready taint off a new node.
_WITHOUT: Final = "ServiceAccount,TaintNodesByCondition"
_OF_VOLUMES: Final = (
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "ephemeral-volume-controller",
)


class ControlPlane:
    """Starts and stops the processes; makes kubeconfigs for their clients."""

    def __init__(self, directory: Path, programs: Programs, *, audited: bool = True) -> None:
        self.directory = directory
        self._audited = audited
        self.programs = programs.provide()
        self.authority = Authority(directory / "pki")
        ports = iter(free_ports(4))
        self._etcd, self._etcd_peer = (f"http://127.0.0.1:{next(ports)}" for _ in range(2))
        self.port, self._kwok_port = ports
        self.server = f"https://127.0.0.1:{self.port}"
        self.audit_log = directory / "logs" / "audit.log"
        self.processes: list[Process] = []
        self._serving = self.authority.server("kube-apiserver", _HOSTS)
        self._tokens = self.authority.key_pair("service-account")
        self._admin = self.authority.client("admin", "admin", ("system:masters",))
        self.api = Api(self.port, self.authority.own, self._admin)
        self.admin_kubeconfig = self._write_kubeconfig("admin", self._admin)

    def start(self) -> None:
        """Start everything; when one part fails the others are stopped again."""
        try:
            self._start_etcd()
            self._start_api_server()
            self._start_kwok()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, last started first: without etcd the API server hangs in its end."""
        self.api.close()
        while self.processes:
            self.processes.pop().stop()

    def restart_api_server(self) -> None:
        """Kill the API server and start it again on the same port, with the same objects."""
        self._restart("kube-apiserver", self._start_api_server)

    def restart_etcd(self) -> None:
        """Kill etcd and start it again with what it has on disk."""
        self._restart("etcd", self._start_etcd)

    @contextmanager
    def full_etcd(self) -> Iterator[None]:
        """Make etcd refuse every write with its alarm NOSPACE, as when its quota is used up."""
        status = json.loads(_call(self._etcd, "POST", "/v3/maintenance/status", {}))
        alarm = {"memberID": status["header"]["member_id"], "alarm": "NOSPACE"}
        _call(self._etcd, "POST", "/v3/maintenance/alarm", {**alarm, "action": "ACTIVATE"})
        try:
            yield
        finally:
            _call(self._etcd, "POST", "/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"})

    def _restart(self, name: str, start: Callable[[], None]) -> None:
        old = next(each for each in self.processes if each.name == name)
        old.kill()  # asked to stop a server would wait for the watches of its clients
        place = self.processes.index(old)
        start()
        self.processes[place] = self.processes.pop()

    def volume_controllers(self) -> AbstractContextManager[Process]:
        """Run what binds claims and volumes."""
        return self.controller_manager(*_OF_VOLUMES)

    @contextmanager
    def controller_manager(self, *controllers: str) -> Iterator[Process]:
        """Run the controller manager with these controllers, and nothing else."""
        port = free_ports(1)[0]
        flags: dict[str, object] = {
            "kubeconfig": self.admin_kubeconfig,
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "cert-dir": self.directory / "pki",
            "leader-elect": "false",
            "controllers": ",".join(controllers),
            "pvclaimbinder-sync-period": "5s",
            "use-service-account-credentials": "false",
        }
        self._start("kube-controller-manager", flags, lambda: _listens(port))
        process = self.processes[-1]
        try:
            yield process
        finally:
            self.processes.remove(process)
            process.stop()

    def kubeconfig(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """Write a kubeconfig with a client certificate of that user, who is audited."""
        file_name = user.replace(":", "-")
        pair = self.authority.client(file_name, user, (*groups, AUDITED_GROUP))
        return self._write_kubeconfig(file_name, pair)

    def service_account(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig for what a pod with that service account would be."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return self.kubeconfig(f"system:serviceaccount:{namespace}:{name}", groups)

    def _write_kubeconfig(self, name: str, pair: Pair) -> Path:
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        ca = str(self.authority.own.certificate)
        cluster = {"server": self.server, "certificate-authority": ca}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
            "current-context": "e2e",
        }
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(json.dumps(config, indent=1))
        return path

    def _start(self, name: str, flags: dict[str, object], up: Callable[[], bool]) -> None:
        command: list[str | Path] = [self.programs[name]]
        command += [f"--{key}={value}" for key, value in flags.items()]
        process = Process(name, command, self.directory / "logs" / f"{name}.log")
        self.processes.append(process)
        process.wait_until(up, _START_S)

    def _start_etcd(self) -> None:
        flags = {
            "name": "e2e",
            "data-dir": self.directory / "etcd",
            "listen-client-urls": self._etcd,
            "advertise-client-urls": self._etcd,
            "listen-peer-urls": self._etcd_peer,
            "initial-advertise-peer-urls": self._etcd_peer,
            "initial-cluster": f"e2e={self._etcd_peer}",
            "quota-backend-bytes": 4 << 30,
            "unsafe-no-fsync": "true",
            "watch-progress-notify-interval": "5s",
            "log-level": "warn",
        }
        self._start("etcd", flags, lambda: "true" in _read(self._etcd, "/health"))

    def _start_api_server(self) -> None:
        pki = self.directory / "pki"
        serving, tokens = self._serving, self._tokens
        flags = {
            "etcd-servers": self._etcd,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": self.port,
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": "10.0.0.0/24",
            "cert-dir": pki,
            "tls-cert-file": serving.certificate,
            "tls-private-key-file": serving.key,
            "client-ca-file": self.authority.own.certificate,
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": tokens.certificate,
            "service-account-signing-key-file": tokens.key,
            "disable-admission-plugins": _WITHOUT,
            "shutdown-delay-duration": "0s",
            "profiling": "false",
            "feature-gates": "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
            "runtime-config": "scheduling.k8s.io/v1alpha2=true",
        }
        if self._audited:
            flags["audit-policy-file"] = _HERE / "audit.yaml"
            flags["audit-log-path"] = self.audit_log
            flags["audit-log-mode"] = "blocking"  # what was answered is on file
        self._start("kube-apiserver", flags, lambda: self.api.request("GET", "/readyz")[0] == 200)

    def _start_kwok(self) -> None:
        address = f"127.0.0.1:{self._kwok_port}"
        flags = {
            "kubeconfig": self.admin_kubeconfig,
            "config": _HERE / "kwok.yaml",
            "manage-all-nodes": "true",
            "node-lease-duration-seconds": 0,
            "server-address": address,
            "node-ip": "10.99.0.1",
            "cidr": "10.100.0.0/16",
        }
        self._start("kwok", flags, lambda: bool(_read(f"http://{address}", "/healthz")))


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return True


def _read(server: str, path: str) -> str:
    return _call(server, "GET", path)


def _call(server: str, method: str, path: str, body: object = None) -> str:
    """Ask a server without TLS; a refusal is an OSError too."""
    connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=2)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if answer.status != 200:
        raise ConnectionError(f"{server}{path} answered {answer.status}: {text}")
    return text

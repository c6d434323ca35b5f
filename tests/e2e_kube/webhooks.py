"""The webhooks of the deployment: registered, and a process that can be killed."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e_kube.controlplane.plane import ControlPlane
from tests.e2e_kube.controlplane.processes import free_ports
from tests.e2e_kube.install import webhook_configurations, webhook_flags
from tests.e2e_kube.kubectl import Kubectl, documents
from tests.e2e_kube.servers import Server, Servers
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until


class Webhooks:
    """Admission on one port: started, killed and started again there."""

    def __init__(self, plane: ControlPlane, servers: Servers, kubectl: Kubectl) -> None:
        self._plane = plane
        self._servers = servers
        self._kubectl = kubectl
        self._port = free_ports(1)[0]
        self._server: Server | None = None

    @contextmanager
    def registered(self) -> Iterator["Webhooks"]:
        """Run and register them; in the end neither is left."""
        own = self._plane.authority.own.certificate
        configurations = webhook_configurations(self._port, own)
        self.start()
        try:
            self._kubectl.apply(*configurations)
            self.wait_active()
            yield self
        finally:
            for each in configurations:
                self._kubectl(
                    "delete", each["kind"], each["metadata"]["name"], "--ignore-not-found"
                )
            if self._server is not None:
                self._servers.stop(self._server)

    def start(self) -> None:
        """Start them, and wait until they are ready."""
        pair = self._plane.authority.server("webhooks")
        flags = {
            "listen-address": "127.0.0.1",
            "port": self._port,
            "tls-cert-file": pair.certificate,
            "tls-private-key-file": pair.key,
            **webhook_flags(),
        }
        self._server = self._servers.start_ready("webhooks", flags)

    def kill(self) -> None:
        """End them with SIGKILL; they stay registered."""
        if self._server is not None:
            self._servers.kill(self._server)
            self._server = None

    def wait_active(self) -> None:
        """Wait until the API server asks them."""
        bad = documents([job("bad", replicas=1, min_available=2)])
        until(
            "a bad job refused",
            lambda: self._kubectl.run("create", "--dry-run=server", "-f", "-", given=bad).stderr,
            lambda message: "denied the request" in message,
        )

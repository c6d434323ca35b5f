"""`pumice serve …` as child processes, with the rights that the deployment grants."""

import http.client
import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.e2e_kube.controlplane.plane import ControlPlane
from tests.e2e_kube.controlplane.processes import Process, free_ports
from tests.e2e_kube.install import HOME
from tests.e2e_kube.waiting import until
from tests.present import present

_ACCOUNTS: Final = {
    "scheduler": "volcano-scheduler",
    "controllers": "volcano-controllers",
    "webhooks": "volcano-admission",
}
_START_S: Final = 60


def conf(
    *plugins: str | dict[str, Any],
    first: tuple[str, ...] = ("priority", "gang"),
    actions: str = "enqueue, allocate, backfill",
) -> str:
    """Return a configuration with two tiers of plugins, each by its name or with more fields."""
    tiers = [
        {"plugins": [one if isinstance(one, dict) else {"name": one} for one in tier]}
        for tier in (first, plugins)
    ]
    return json.dumps({"actions": actions, "tiers": tiers})


STRICT: Final = ("priority", "gang", "conformance")
CONF: Final = conf("overcommit", "drf", "predicates", "proportion", "nodeorder", first=STRICT)
_COMMAND: Final = (sys.executable, "-c", "from pumice.cli.main import main; main()", "serve")


@dataclass(frozen=True)
class Server:
    """One process of Pumice and where it answers."""

    process: Process
    health_port: int
    metrics_port: int

    def get(self, path: str) -> tuple[int, str]:
        """Ask for health, readiness or metrics."""
        port = self.metrics_port if path == "/metrics" else self.health_port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def ready(self) -> bool:
        """Return whether it reports ready."""
        return self.get("/readyz")[0] == 200

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        lines = re.findall(rf"(?m)^{name}(?:\{{.*\}})? (\S+)$", self.get("/metrics")[1])
        return sum(map(float, lines))

    def log(self) -> str:
        """Return all that it has logged."""
        return self.process.log.read_text(errors="replace")


class Servers:
    """Starts processes of Pumice and stops them again."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self._plane = plane
        self._directory = directory
        self._started = 0
        self._kubeconfigs = {
            part: plane.service_account(HOME, name) for part, name in _ACCOUNTS.items()
        } | {"all": plane.admin_kubeconfig}  # the deployment has no account that may do all
        self.running: list[Server] = []

    def kubeconfig(self, part: str) -> Path:
        """Return the kubeconfig of a part, to do something with its rights."""
        return self._kubeconfigs[part]

    def start(self, part: str, flags: dict[str, Any] | None = None) -> Server:
        """Start a part; does not wait for it to be ready."""
        self._started += 1
        ports = free_ports(2)
        known = {
            "kubeconfig": self._kubeconfigs[part],
            "enable-healthz": "true",
            "healthz-address": f"127.0.0.1:{ports[0]}",
            "v": 3,
        }
        if part != "webhooks":
            known["enable-metrics"] = "true"
            known["listen-address"] = f"127.0.0.1:{ports[1]}"
            known["leader-elect"] = "false"
        shown = [f"--{name}={value}" for name, value in {**known, **(flags or {})}.items()]
        log = self._directory / f"{part}-{self._started:02d}.log"
        server = Server(Process(part, [*_COMMAND, part, *shown], log), *ports)
        self.running.append(server)
        return server

    def stop(self, server: Server) -> None:
        """Stop one and check how it went: in order, and never with a traceback in its log."""
        self.running.remove(server)
        code = server.process.stop()
        assert code == 0, f"{server.process.name} ended with {code}:\n{server.process.tail()}"
        assert "Traceback" not in server.log(), server.log()

    def wait_end(self, server: Server) -> int:
        """Wait until one has ended by itself; return the exit code."""
        code = until("ended", lambda: server.process.exit_code, lambda code: code is not None)
        self.running.remove(server)
        return present(code)

    def kill(self, server: Server) -> None:
        """End one with SIGKILL."""
        self.running.remove(server)
        server.process.kill()

    def start_ready(self, part: str, flags: dict[str, Any] | None = None) -> Server:
        """Start a part, and wait until it is ready."""
        server = self.start(part, flags)
        try:
            server.process.wait_until(server.ready, _START_S)
        except BaseException:
            self.running.remove(server)
            server.process.stop()
            raise
        return server

    @contextmanager
    def serving(self, part: str, flags: dict[str, Any] | None = None) -> Iterator[Server]:
        """Run a part for a while, from when it is ready; it may be stopped or killed earlier."""
        server = self.start_ready(part, flags)
        try:
            yield server
        except BaseException:
            if server in self.running:
                self.running.remove(server)
                server.process.stop()
            raise
        if server in self.running:
            self.stop(server)


@dataclass(frozen=True)
class Scheduling:
    """Runs schedulers that read one configuration file."""

    servers: Servers
    conf: Path

    def __call__(self, conf: str = CONF, **flags: Any) -> AbstractContextManager[Server]:
        """Write the configuration and run a scheduler on it."""
        self.conf.write_text(conf)
        given = {name.replace("_", "-"): value for name, value in flags.items()}
        known = {"scheduler-conf": self.conf, "schedule-period": "200ms"}
        return self.servers.serving("scheduler", {**known, **given})

"""A whole embedded cluster that is served: store, control plane, kubelet, API; for `pumice up`."""

from collections import Counter
from collections.abc import Iterable, Mapping

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import JOB, Manifest, kind_of
from pumice.apiserver.background import FastClock, RunningPlane
from pumice.apiserver.conf_map import SchedulerConfigMap
from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.errors import AlreadyExistsError
from pumice.framework.process_memory import ProcessMemory
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.webhooks.embedded import EmbeddedAdmission

_GRACE_S = 1.0
"""How long simulated pods take to end."""


class ServedCluster:
    """Made, it holds its port; ``start`` lets it run, ``stop`` ends it."""

    def __init__(
        self,
        conf: str = DEFAULT_CONF,
        *,
        port: int = 0,
        speed: float = 1.0,
        period_s: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Make one; ``conf`` is the text of the scheduler configuration."""
        clock = FastClock(speed)
        self.cluster = EmbeddedCluster(clock, seed=seed)
        plane = EmbeddedControlPlane(
            parse_conf(conf),
            all_controllers(),
            cluster=self.cluster,
            kubelet=Kubelet(self.cluster, grace_s=_GRACE_S),
            seed=seed,
            period_s=period_s,
            process=ProcessMemory(started_at=self.cluster.now()),
        )
        self._conf = SchedulerConfigMap(self.cluster, plane, conf)
        plane.on_cycle.append(self._conf.follow)
        self.cluster.admission = EmbeddedAdmission(self.cluster)
        self._running = RunningPlane(plane, clock)
        self._server = ApiServer(RestApi(self.cluster, self._running.wake), port=port)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return self._server.url

    @property
    def failure(self) -> Exception | None:
        """What ended it before it was told to stop."""
        return self._running.failure

    def add_nodes(self, count: int, resources: Mapping[str, str]) -> None:
        """Add equal nodes, named ``node-1`` and so on."""
        for number in range(1, count + 1):
            add_node(self.cluster, f"node-{number}", resources)

    def load(self, manifests: Iterable[Manifest]) -> None:
        """Take in objects; those there already, as the first queues are, are brought up to date."""
        for manifest in manifests:
            try:
                self.cluster.create(manifest)
            except AlreadyExistsError:
                metadata = manifest["metadata"]
                kind = self.cluster.kinds.of(manifest)
                home = metadata.get("namespace") or "default" if kind.namespaced else ""
                name = metadata["name"]
                self.cluster.patch(kind_of(manifest), home, name, manifest, patch_type="apply")

    def start(self) -> None:
        """Let time run and clients in."""
        self._conf.publish()
        self._running.start()
        self._server.start()

    def stop(self) -> None:
        """Let clients go and end."""
        self._server.stop()
        self._running.stop()

    def summary(self) -> str:
        """Tell in one line what is there."""
        pods = self.cluster.list("Pod")[0]
        phases = Counter((pod.get("status") or {}).get("phase", "") for pod in pods)
        told = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items()))
        nodes = len(self.cluster.list("Node")[0])
        jobs = len(self.cluster.list(JOB)[0])
        return f"{nodes} nodes, {jobs} jobs, pods: {told or 'none'}; cycle {self._running.cycles}"

"""svc and env: how the pods of a job find each other, and which pod of its task each one is."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pumice.api.annotations import JOB_NAME
from pumice.api.kinds import NETWORK_POLICY, Manifest
from pumice.controllers.job.names import JOB_NAMESPACE, hosts
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    Owned,
    add_env,
    containers,
    index_of,
    made_for,
    mount,
)


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

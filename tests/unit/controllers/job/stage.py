"""A stage for job tests: the embedded cluster with all controllers, and a few short verbs."""

from typing import Any

from pumice.controllers.base import phase_of
from pumice.testing.recorded import stage
from pumice.testing.recorded.stage import NAMESPACE

JOB = "Job.batch.volcano.sh"
PODGROUP = "PodGroup.scheduling.volcano.sh"


def task(name: str = "w", replicas: Any = 2, requests: Any = None, **fields: Any) -> Any:
    container: dict[str, Any] = {"name": "main", "image": "app:1"}
    if requests:
        container["resources"] = {"requests": requests}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"name": name, "replicas": replicas, "minAvailable": replicas, "template": template} | (
        fields
    )


def job(*tasks: Any, name: str = "j", **spec: Any) -> Any:
    chosen = list(tasks or [task()])
    given = {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "tasks": chosen}
    given["minAvailable"] = sum(one["minAvailable"] for one in chosen)
    metadata = {"name": name}
    for field in ("labels", "annotations"):
        if field in spec:
            metadata[field] = spec.pop(field)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": given | spec,
    }


class Stage(stage.Stage):
    """A world with one job in it."""

    def start(self, manifest: Any, *, running: bool = True) -> Any:
        """Apply a job, admit its PodGroup and, by default, run its pods."""
        self.play({"apply": [manifest]})
        self.admit()
        if running:
            self.run(*self.pods())
        return self

    def admit(self, phase: str = "Inqueue", **more: Any) -> None:
        self.play({"set": [{"podgroupOf": "j", "phase": phase, **more}]})

    def run(self, *names: Any) -> None:
        node = "node-00000"
        self.play({"set": [{"pod": name, "node": node, "phase": "Running"} for name in names]})

    def put(self, pod: Any, phase: Any, **more: Any) -> None:
        self.play({"set": [{"pod": pod, "phase": phase, **more}]})

    def gone(self, *names: Any) -> None:
        self.play({"set": [{"pod": name, "gone": True} for name in names]})

    def patch_spec(self, path: Any, value: Any) -> None:
        change = {"op": "add", "path": f"/spec/{path}", "value": value}
        self.play({"patch": [{"kind": JOB, "name": "j", "json": [change]}]})

    def command(self, action: Any, name: str = "c") -> None:
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"}
        self.play(
            {
                "apply": [
                    {
                        "apiVersion": "bus.volcano.sh/v1alpha1",
                        "kind": "Command",
                        "metadata": {"name": name},
                        "action": action,
                        "target": target,
                    }
                ]
            }
        )

    @property
    def job(self) -> Any:
        return self.cluster.get(JOB, NAMESPACE, "j")

    @property
    def status(self) -> Any:
        return self.job["status"]

    @property
    def phase(self) -> Any:
        return phase_of(self.job)

    @property
    def podgroup(self) -> Any:
        found = self.cluster.list(PODGROUP, NAMESPACE)[0]
        return found[0] if found else None

    def pods(self) -> Any:
        return {pod["metadata"]["name"]: pod for pod in self.cluster.list("Pod", NAMESPACE)[0]}

    def deleting(self) -> Any:
        pods = self.pods().items()
        return {name for name, pod in pods if pod["metadata"].get("deletionTimestamp")}

    def messages(self) -> Any:
        return {event["message"] for event in self.cluster.list("Event", NAMESPACE)[0]}

"""tensorflow: TF_CONFIG, the cluster and the place in it as JSON."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pumice.api.kinds import Manifest
from pumice.controllers.job.names import host_name
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    add_env,
    index_of,
    task_of,
)
from pumice.controllers.job.state import replicas_of

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
        """List the pods of a task with their port."""
        names = (host_name(job, task, index) for index in range(replicas_of(task)))
        return [f"{host}.{domain}:{self.flags['port']}" for host, domain in names]

    def _role(self, task: str) -> str:
        """Give the role of a task; one without a role keeps its own name."""
        roles = ("chief", "worker", "ps", "evaluator")
        return next((role for role in roles if self.flags[role] == task), task)

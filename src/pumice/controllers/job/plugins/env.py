"""env: tells a container which pod of its task it is in."""

from typing import ClassVar

from pumice.api.kinds import Manifest
from pumice.controllers.job.plugins.base import JobPlugin, add_env, containers, index_of


class Env(JobPlugin):
    """The index of the pod as two environment variables."""

    name: ClassVar[str] = "env"

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:  # noqa: ARG002
        """Add the index to every container."""
        index = str(index_of(pod))
        for container in containers(pod):
            add_env(container, VK_TASK_INDEX=index, VC_TASK_INDEX=index)

"""hcclrank: the rank of a pod among Ascend devices, as an annotation."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pumice.api.kinds import Manifest
from pumice.controllers.job.plugins.base import (
    JobPlugin,
    find_task,
    index_of,
    task_of,
)
from pumice.controllers.job.state import replicas_of

_RANK: Final = "hccl/rankIndex"


class Hcclrank(JobPlugin):
    """Masters first, workers after them; a RANK variable outranks the count."""

    name: ClassVar[str] = "hcclrank"
    listed: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {"master": "master", "worker": "worker"}

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Annotate the pod unless somebody has done it."""
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

"""Job plugins by name: the possible keys of Volcano's ``spec.plugins``."""

from typing import Final

from pumice.api.kinds import Manifest
from pumice.controllers.job.plugins.base import JobPlugin, KeyMaker, Owned
from pumice.controllers.job.plugins.distributed import Hcclrank, Mpi, Pytorch, Ray, Tensorflow
from pumice.controllers.job.plugins.ssh import Ssh
from pumice.controllers.job.plugins.svc import Env, Svc

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

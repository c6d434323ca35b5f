"""A plugin that finds one job not valid."""

from dataclasses import dataclass

from pumice.plugin import Job, Plugin


@dataclass(kw_only=True)
class Licence(Plugin, name="licence"):
    """Refuses jobs whose name says so."""

    def job_valid(self, job: Job) -> str:
        return "no licence for this job" if job.name.endswith("blocked") else ""

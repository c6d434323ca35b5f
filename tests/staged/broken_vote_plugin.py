"""A plugin whose vote on admission raises."""

from dataclasses import dataclass

from pumice.plugin import Job, Plugin, Vote


@dataclass(kw_only=True)
class BrokenVote(Plugin, name="broken-vote"):
    """Looks for a key that is not there."""

    def job_enqueueable(self, job: Job) -> Vote:
        raise KeyError("team")

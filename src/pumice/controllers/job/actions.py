"""Actions on a job, by phase: the effect of a policy, a Command or a plain change."""

from collections.abc import Sequence
from typing import Final

import msgspec

from pumice.api.kinds import ENDED_PHASES
from pumice.controllers.job.kill import Change, Target, kill_job, kill_target, settled
from pumice.controllers.job.phases import NEXT, QUIET
from pumice.controllers.job.plugins import JobPlugin
from pumice.controllers.job.state import JobState
from pumice.controllers.job.status import Status
from pumice.controllers.job.sync import Outcome, sync_job

SYNC: Final = "SyncJob"
_ENDINGS: Final = {
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}
TARGETED: Final = frozenset({"RestartTask", "RestartPod", "RestartPartition"})
CHANGING: Final = frozenset({*_ENDINGS, *TARGETED, "RestartJob"})
"""Actions that change a pending or running job; all others only bring it in step."""


class Execution(msgspec.Struct, frozen=True):
    """One action on one job."""

    state: JobState
    plugins: Sequence[JobPlugin]
    target: Target = msgspec.field(default_factory=lambda: Target(SYNC))

    def run(self) -> Outcome:
        """Carry the action out as the phase of the job requires."""
        phase = self.state.phase
        if phase in QUIET:
            return self._in_quiet_phase()
        if phase == "Restarting":
            return self._while_restarting()
        action = self.target.action
        if action in TARGETED:
            return self._kill_target(self._restart)
        if action == "RestartJob":
            return self._kill(frozenset(), self._restart)
        if action in _ENDINGS:
            return self._kill(ENDED_PHASES, lambda status: self._enter(status, _ENDINGS[action]))
        return self._sync()

    def _in_quiet_phase(self) -> Outcome:
        """Kill what is left; only an aborted job can be resumed."""
        action = self.target.action
        if action == "ResumeJob" and self.state.phase in ("Aborting", "Aborted"):
            return self._kill(ENDED_PHASES, self._restart)
        resting = NEXT[self.state.phase](self.state, Status.of(self.state.job)) is None
        if action == SYNC and resting and settled(self.state, self.plugins):
            return Outcome()
        return self._kill(ENDED_PHASES, self._next)

    def _while_restarting(self) -> Outcome:
        """Continue a restart; a further action only adds to what is killed."""
        action = self.target.action
        if action == SYNC:
            return self._sync()
        if action in TARGETED:
            return self._kill_target(self._next)
        return self._kill(frozenset(), self._next)

    def _sync(self) -> Outcome:
        return sync_job(self.state, self.plugins, NEXT[self.state.phase])

    def _kill(self, keep: frozenset[str], change: Change) -> Outcome:
        return Outcome(kill_job(self.state, self.plugins, keep, change))

    def _kill_target(self, change: Change) -> Outcome:
        effects = kill_target(self.state, self.target, change)
        return self._sync() if effects is None else Outcome(effects)

    def _enter(self, status: Status, phase: str) -> None:
        status.set_phase(phase, self.state.view.now)

    def _restart(self, status: Status) -> None:
        status.set_count("retryCount", self.state.retries + 1)
        self._enter(status, "Restarting")

    def _next(self, status: Status) -> None:
        phase = NEXT[self.state.phase](self.state, status)
        if phase is not None:
            self._enter(status, phase)

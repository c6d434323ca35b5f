"""What people may do from a page if the dashboard was started with ``--allow-actions``.

Jobs and queues are acted on as `pumice job` and `pumice queue` do it: by Volcano's Commands, which
the controllers carry out, and by deleting a job.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pumice import logs
from pumice.api.kinds import JOB, QUEUE, QUEUE_COMMANDS, Manifest, command
from pumice.cluster.base import Cluster
from pumice.dashboard.answers import UnansweredError
from pumice.dashboard.documents.shared import Scope
from pumice.dashboard.security import Person, Right
from pumice.errors import ClusterError, NotFoundError

_log = logs.get("dashboard")
_COMMAND: Final = ("create", "bus.volcano.sh", "commands")
_SUSPENDED: Final = ("Aborting", "Aborted")
_ENDED: Final = ("Completed", "Failed", "Terminated", "Completing", "Terminating")
_JOB_COMMANDS: Final = {"suspend": "AbortJob", "resume": "ResumeJob", "terminate": "TerminateJob"}
_QUEUE_COMMANDS: Final = {"open": "OpenQueue", "close": "CloseQueue"}
May = Callable[[Person, Right], bool]


@dataclass(frozen=True)
class Target:
    """What is acted on; a queue has no namespace."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def job(cls, namespace: str, name: str) -> "Target":
        """Return a Volcano job."""
        return cls(JOB, namespace, name)

    @classmethod
    def queue(cls, name: str) -> "Target":
        """Return a queue."""
        return cls(QUEUE, "", name)

    def __str__(self) -> str:
        """Return it as people call it."""
        return f"job {self.namespace}/{self.name}" if self.namespace else f"queue {self.name}"

    @property
    def commands(self) -> Mapping[str, str]:
        """Actions that are Commands."""
        return _JOB_COMMANDS if self.kind == JOB else _QUEUE_COMMANDS

    def rights(self, action: str) -> tuple[Right, ...]:
        """Return what somebody needs who acts without this page; a page asks for no less."""
        if action == "delete":
            return (Right("delete", "batch.volcano.sh", "jobs", self.namespace, self.name),)
        if self.kind == JOB:
            return (Right(*_COMMAND, self.namespace),)
        queues = Right("update", "scheduling.volcano.sh", "queues", name=self.name)
        return Right(*_COMMAND, QUEUE_COMMANDS), queues


@dataclass(frozen=True)
class Offer:
    """How something stands, and what the person who looks may do about it."""

    state: str
    actions: tuple[str, ...]


class Actions:
    """Acts on a cluster for people."""

    def __init__(self, cluster: Cluster, may: May, *, lists_jobs: bool) -> None:
        """Act on a cluster; ``may`` says whether a person has a right there.

        ``lists_jobs``: whether all Volcano jobs are in memory.  A scheduler does not follow them,
        and reading many from the API server would hold it up.
        """
        self._cluster = cluster
        self._may = may
        self._lists_jobs = lists_jobs

    def offer(self, person: Person, scope: Scope, target: Target) -> Offer:
        """Return what a person may do with a job or a queue as it stands.

        Nothing if it is not there, as with a pod group that no Volcano job owns.

        Raises:
            ClusterError: the cluster does not answer.
        """
        found = self._find(scope, target)
        if found is None:
            return Offer("", ())
        state = _state(found)
        able = [
            action
            for action in _sensible(target, state)
            if all(self._may(person, right) for right in target.rights(action))
        ]
        return Offer(state, tuple(able))

    def suspended(self, scope: Scope) -> list[str]:
        """Name the suspended jobs that somebody may see; a scheduler knows nothing of them.

        Raises:
            ClusterError: the cluster does not answer.
        """
        all_jobs = self._cluster.list(JOB)[0] if self._lists_jobs else []
        jobs = [one for one in all_jobs if _state(one) in _SUSPENDED]
        names = (f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in jobs)
        return sorted(name for name in names if scope.sees(name))

    def carry_out(self, person: Person, scope: Scope, target: Target, action: str) -> None:
        """Do it.

        Raises:
            UnansweredError: there is no such action or target, or the person has no right to it.
            ClusterError: the cluster refused.
        """
        if action not in (*target.commands, *(("delete",) if target.kind == JOB else ())):
            raise UnansweredError(f"{target} cannot be asked to '{action}'", 422)
        found = self._find(scope, target)
        if found is None:
            raise UnansweredError(f"there is no {target}, or you may not see it", 404)
        for right in target.rights(action):
            if not self._may(person, right):
                _log.warning("action refused", who=person.name, action=action, about=target)
                raise UnansweredError(f"you may not {action} {target}: you lack '{right}'", 403)
        _log.info("action", who=person.name, action=action, about=target)
        if action == "delete":
            uid = str(found["metadata"].get("uid", ""))
            self._cluster.delete(target.kind, target.namespace, target.name, uid=uid)
            return
        namespace = target.namespace or QUEUE_COMMANDS
        self._cluster.create(command(found, target.commands[action], namespace))

    def _find(self, scope: Scope, target: Target) -> Manifest | None:
        """Return the target; None if it is not there, or may not be seen."""
        is_seen = scope.sees(f"{target.namespace}/") if target.namespace else scope.cluster
        try:
            return (
                self._cluster.get(target.kind, target.namespace, target.name) if is_seen else None
            )
        except NotFoundError:
            return None


def _state(found: Manifest) -> str:
    status = found.get("status") or {}
    state = status.get("state") or ""
    return str(state.get("phase", "")) if isinstance(state, Mapping) else str(state)


def _sensible(target: Target, state: str) -> tuple[str, ...]:
    """List the actions that change something in a state."""
    if target.kind == QUEUE:
        return ("open",) if state in ("Closed", "Closing") else ("close",)
    if state in _SUSPENDED:
        return "resume", "delete"
    return ("delete",) if state in _ENDED else ("suspend", "terminate", "delete")


def problem_of(error: ClusterError) -> UnansweredError:
    """Return what a page says of a cluster that refused."""
    status = error.code if error.code in (403, 404, 409, 422) else 502
    return UnansweredError(f"the cluster refused: {error}", status)

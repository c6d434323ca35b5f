"""What people may do from a page if the dashboard was started with ``--allow-actions``.

Jobs and queues are acted on as `pumice job` and `pumice queue` do it: by Volcano's Commands, which
the controllers carry out, and by deleting a job.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from pumice import logs
from pumice.api.kinds import JOB, QUEUE, QUEUE_COMMANDS, Manifest, command
from pumice.cluster.base import Cluster
from pumice.dashboard.answers import UnansweredError
from pumice.dashboard.security import Guard, Person, Right, refusal
from pumice.dashboard.view import Scope
from pumice.errors import ClusterError, NotFoundError, PumiceError
from pumice.serve.http_server import read_body

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


_MOST_BODY: Final = 4096
_READ_ONLY: Final = "this dashboard is read-only: it was started without --allow-actions"


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    """What a page asks to be done, with a job ("namespace/name") or with a queue."""

    action: str
    job: str = ""
    queue: str = ""

    def target(self) -> Target:
        namespace, _, name = self.job.partition("/")
        if bool(self.job) == bool(self.queue) or (self.job and not (namespace and name)):
            raise UnansweredError("expected either a job as namespace/name or a queue", 422)
        return Target.job(namespace, name) if self.job else Target.queue(self.queue)


class ActionRoutes:
    """Offers actions, and carries them out."""

    def __init__(self, guard: Guard, actions: Actions | None) -> None:
        """Serve the actions; None: a dashboard that is read-only."""
        self._guard = guard
        self._actions = actions

    def add_to(self, app: web.Application) -> None:
        """Add the addresses."""
        app.router.add_get("/api/actions/jobs/{ns}/{name}", self._offer)
        app.router.add_get("/api/actions/queues/{name}", self._offer)
        app.router.add_get("/api/actions/suspended", self._suspended)
        app.router.add_post("/api/actions", self._act)

    async def _offer(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info.get("ns", ""), request.match_info["name"]
        target = Target.job(namespace, name) if namespace else Target.queue(name)

        def find(actions: Actions, person: Person, scope: Scope) -> Any:
            found = actions.offer(person, scope, target)
            return {"state": found.state, "actions": found.actions}

        return await self._answer(request, find)

    async def _suspended(self, request: web.Request) -> web.Response:
        return await self._answer(
            request, lambda actions, _, scope: {"jobs": actions.suspended(scope)}
        )

    async def _act(self, request: web.Request) -> web.Response:
        self._guard.check_csrf(request)
        try:
            body = await read_body(request, _MOST_BODY)
            asked = msgspec.json.decode(body, type=_Asked)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return refusal(422, f"expected an action and what it is about: {error!s:.200}")
        except PumiceError as error:
            return refusal(422, str(error))

        def act(actions: Actions, person: Person, scope: Scope) -> Any:
            target = asked.target()
            actions.carry_out(person, scope, target, asked.action)
            return {"done": f"{asked.action} {target}"}

        return await self._answer(request, act)

    async def _answer(
        self, request: web.Request, work: Callable[[Actions, Person, Scope], Any]
    ) -> web.Response:
        """Do something for who asks, on a thread: the cluster is asked."""
        actions = self._actions

        def found() -> Any:
            person = self._guard.person(request)
            if actions is None:
                raise UnansweredError(_READ_ONLY, 403)
            return work(actions, person, self._guard.scope(person))

        try:
            return web.json_response(await asyncio.to_thread(found))
        except ClusterError as error:
            problem = problem_of(error)
            return refusal(problem.status, str(problem))
        except UnansweredError as error:
            return refusal(error.status, str(error))

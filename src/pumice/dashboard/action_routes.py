"""Actions over HTTP; without ``--allow-actions`` all of them are refused."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from pumice.dashboard.actions import Actions, Target, problem_of
from pumice.dashboard.answers import UnansweredError
from pumice.dashboard.documents.shared import Scope
from pumice.dashboard.security import Guard, Person, refusal
from pumice.errors import ClusterError, PumiceError
from pumice.serve.http_server import read_body

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
            raise UnansweredError("wanted either a job as namespace/name or a queue", 422)
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
            return refusal(422, f"wanted an action and what it is about: {error!s:.200}")
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

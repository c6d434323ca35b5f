"""Who may look: hosts, sessions, tokens, and users that a cluster identifies."""

import asyncio
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from aiohttp import web

from pumice import logs
from pumice.api.kinds import Manifest
from pumice.cluster.base import Cluster
from pumice.dashboard.view import EVERYTHING, Scope
from pumice.errors import ClusterError
from pumice.serve.http_server import LOOPBACK_NAMES, foreign_request

CSRF: Final = "X-Pumice-Csrf"
COOKIE: Final = "pumice_session"
_SESSION_S: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 10_000
_FAILURE_S: Final = 0.5
"""Delay of the answer to a wrong token."""
_AT_ONCE: Final = 8
"""Tokens of one address that are checked at the same time; with the delay, 16 a second."""
_MOST_WAITING: Final = 64
"""Requests of one address that may wait for that."""
_TRUSTED_S: Final = 60.0
"""How long a token that was right, or an answer of the cluster, is not asked about again."""
_MOST_TRUSTED: Final = 1000
_BEARER: Final = "bearer"
_PERSON: Final = web.RequestKey("person", object)
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Person:
    """A user who was admitted."""

    name: str
    groups: tuple[str, ...] = ()
    is_anyone: bool = False
    """Whether no login was needed."""


ANYONE: Final = Person("anyone on this machine", is_anyone=True)


@dataclass(frozen=True)
class Right:
    """A right of the cluster; an empty namespace means all, an empty name any object."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}.{self.group}{where}"


class Authority(Protocol):
    """Identifies users by a token, and knows what they may see and do."""

    def identify(self, token: str) -> Person | None:
        """Return the owner of a token, None if it is wrong."""

    def scope(self, person: Person) -> Scope:
        """Return what a user may see."""

    def may(self, person: Person, right: Right) -> bool:
        """Return whether a user has a right."""


@dataclass(frozen=True)
class OneToken:
    """One token for all users; its holder may do all that the dashboard may."""

    token: str

    def identify(self, token: str) -> Person | None:
        """Compare in constant time, whatever the length."""
        right = hmac.compare_digest(_digest(token), _digest(self.token))
        return Person("token holder") if right else None

    def scope(self, person: Person) -> Scope:
        """Return everything."""
        del person
        return EVERYTHING

    def may(self, person: Person, right: Right) -> bool:
        """Return True."""
        del person, right
        return True


@dataclass
class _Session:
    person: Person
    csrf: str
    until: float


@dataclass
class Sessions:
    """People who are logged in, each by a random number that only their browser has."""

    clock: Callable[[], float] = time.monotonic
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, person: Person) -> str:
        """Admit a user; return the value of their cookie."""
        cookie = secrets.token_urlsafe(32)
        session = _Session(person, secrets.token_urlsafe(32), self.clock() + _SESSION_S)
        with self._lock:
            self._drop_old()
            self._sessions[cookie] = session
        return cookie

    def end(self, cookie: str) -> None:
        """Forget a user."""
        with self._lock:
            self._sessions.pop(cookie, None)

    def find(self, cookie: str) -> _Session | None:
        """Return the session of a cookie."""
        with self._lock:
            found = self._sessions.get(cookie)
            return found if found is not None and found.until > self.clock() else None

    def _drop_old(self) -> None:
        now = self.clock()
        for cookie in [key for key, one in self._sessions.items() if one.until <= now]:
            del self._sessions[cookie]
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]


class Attempts:
    """Checks tokens, however they were sent: a wrong one costs time, and few are tried at once."""

    def __init__(self, authority: Authority, clock: Callable[[], float] = time.monotonic) -> None:
        self._authority = authority
        self._clock = clock
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="login")
        """Beside those of other requests: an authority may take long, or be asked by many."""
        self._places: dict[str, tuple[asyncio.Semaphore, int]] = {}
        """Address to its free checks and the number of requests that use or wait for one."""
        self._trusted: dict[bytes, tuple[Person, float]] = {}
        """Digests of tokens that were right; a client that sends its token with every request
        is not held up by somebody who guesses."""

    async def person(self, token: str, address: str) -> Person | None:
        """Return the owner of a token, None if it is wrong, later then.

        Raises:
            HTTPTooManyRequests: too many tokens of this address are being checked.
        """
        digest = _digest(token)
        if (found := self._known(digest)) is not None:
            return found
        checks, waiting = self._places.get(address) or (asyncio.Semaphore(_AT_ONCE), 0)
        if waiting >= _MOST_WAITING:
            raise web.HTTPTooManyRequests(text="too many tokens are tried; wait a moment")
        self._places[address] = checks, waiting + 1
        try:
            async with checks:
                return self._known(digest) or await self._check(token, digest)
        finally:
            checks, waiting = self._places.pop(address)
            if waiting > 1:
                self._places[address] = checks, waiting - 1

    def _known(self, digest: bytes) -> Person | None:
        person, until = self._trusted.get(digest, (None, 0.0))
        return person if until > self._clock() else None

    async def _check(self, token: str, digest: bytes) -> Person | None:
        loop, identify = asyncio.get_running_loop(), self._authority.identify
        found = await loop.run_in_executor(self._threads, identify, token) if token else None
        if found is None:
            await asyncio.sleep(_FAILURE_S)
            return None
        while len(self._trusted) >= _MOST_TRUSTED:
            del self._trusted[next(iter(self._trusted))]
        self._trusted[digest] = found, self._clock() + _TRUSTED_S
        return found


class Guard:
    """Checks every request."""

    def __init__(
        self,
        *,
        hosts: Sequence[str] = (),
        authority: Authority | None = None,
        is_tls: bool = False,
    ) -> None:
        """Make one; ``hosts`` are the names, beside loopback, under which pages are served."""
        self._hosts = LOOPBACK_NAMES | frozenset(hosts)
        self.authority = authority
        self.attempts = None if authority is None else Attempts(authority)
        self.sessions = Sessions()
        self.is_tls = is_tls
        self._csrf = secrets.token_urlsafe(32)

    @web.middleware
    async def middleware(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Refuse requests that do not come from our pages, and secure answers."""
        try:
            problem = self._foreign(request)
            if problem:
                response: web.StreamResponse = refusal(403, problem)
            else:
                request[_PERSON] = await self._identified(request)
                response = await handler(request)
        except web.HTTPException as error:
            response = refusal(error.status, error.text or error.reason)
        if not response.prepared:
            response.headers.update(_HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _foreign(self, request: web.Request) -> str:
        """Return what is wrong with the origin of a request."""
        scheme = "https" if self.is_tls else "http"
        own = f"{scheme}://{request.headers.get('Host', '')}"
        if any(origin != own for origin in request.headers.getall("Origin", [])):
            return "requests of other sites are not answered"
        return foreign_request(request, self._hosts)

    async def _identified(self, request: web.Request) -> Person | None:
        """Return who sends a request, None if that is unknown."""
        if self.attempts is None:
            return ANYONE
        session = self.sessions.find(request.cookies.get(COOKIE, ""))
        if session is not None:
            return session.person
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != _BEARER:
            return None
        return await self.attempts.person(token.strip(), request.remote or "")

    def headers(self) -> dict[str, str]:
        """Return the headers of an answer that is sent piece by piece."""
        return dict(_HEADERS)

    def person(self, request: web.Request) -> Person:
        """Return the user of a request.

        Raises:
            HTTPUnauthorized: no admitted user.
        """
        found = request[_PERSON]
        if not isinstance(found, Person):
            raise web.HTTPUnauthorized(text="log in with a token")
        return found

    def scope(self, person: Person) -> Scope:
        """Return what a user may see."""
        return EVERYTHING if self.authority is None else self.authority.scope(person)

    def may(self, person: Person, right: Right) -> bool:
        """Return whether a user has a right; without a login, all users have ours."""
        return self.authority is None or self.authority.may(person, right)

    def csrf(self, request: web.Request) -> str:
        """Return the token that a page must send along with a request that does something."""
        session = self.sessions.find(request.cookies.get(COOKIE, ""))
        return session.csrf if session is not None else self._csrf

    def check_csrf(self, request: web.Request) -> None:
        """Refuse a request that does not come from our pages.

        Raises:
            HTTPForbidden: it lacks the token of our pages.
        """
        sent = request.headers.get(CSRF, "")
        if not hmac.compare_digest(_digest(sent), _digest(self.csrf(request))):
            raise web.HTTPForbidden(text="the page is out of date; load it again")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def refusal(status: int, problem: str) -> web.Response:
    """Answer with one sentence on what is wrong."""
    return web.json_response({"problem": problem.strip()}, status=status)


_log = logs.get("dashboard")
_MOST_NAMESPACES: Final = 500
"""Maximum number of namespaces that are checked for one user."""
_GROUP: Final = "scheduling.volcano.sh"


@dataclass(slots=True)
class _Known:
    """The cluster's answers about one user."""

    until: float
    cluster: bool
    """Whether they may see nodes and queues."""
    everywhere: bool
    """Whether they may see all namespaces."""
    namespaces: dict[str, bool] = field(default_factory=dict)
    """Namespaces that were asked about, and whether they may see them."""


class ClusterLogin:
    """Users of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        namespaces: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask a cluster; ``namespaces`` are those that may have something to show."""
        self._cluster = cluster
        self._namespaces = namespaces
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Person, _Known] = {}
        self._earlier: list[str] = []
        """Namespaces that had something to show so far."""

    def identify(self, token: str) -> Person | None:
        """Ask the cluster whose token it is."""
        status = self._ask("authentication.k8s.io/v1", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        groups = tuple(str(group) for group in user.get("groups") or ())
        return Person(str(user["username"]), groups)

    def scope(self, person: Person) -> Scope:
        """Ask the cluster what a person may see; an answer is cached for a minute.

        Namespaces that are new since then are asked about at once.
        """
        now = self._clock()
        with self._lock:
            known = self._known.get(person)
        if known is None or now >= known.until:
            known = self._asked(person, now)
        if known.everywhere:
            return Scope(None, cluster=known.cluster)
        named = self._named()
        for name in named:
            if name not in known.namespaces:
                known.namespaces[name] = self._sees(person, name)
        seen = frozenset(name for name in named if known.namespaces[name])
        return Scope(seen, cluster=known.cluster)

    def _named(self) -> list[str]:
        """List namespaces with something to show, then those that had: a job may be suspended."""
        now = list(self._namespaces())
        with self._lock:
            named = list(dict.fromkeys([*now, *self._earlier]))[:_MOST_NAMESPACES]
            self._earlier = named
        return named

    def may(self, person: Person, right: Right) -> bool:
        """Ask the cluster whether a person has a right."""
        given = (("namespace", right.namespace), ("name", right.name))
        attributes = {"verb": right.verb, "group": right.group, "resource": right.resource}
        attributes |= {key: value for key, value in given if value}
        asked = {
            "user": person.name,
            "groups": list(person.groups),
            "resourceAttributes": attributes,
        }
        status = self._ask("authorization.k8s.io/v1", "SubjectAccessReview", asked)
        return status.get("allowed") is True

    def _asked(self, person: Person, now: float) -> _Known:
        cluster = all(
            self.may(person, Right("list", group, resource))
            for group, resource in (("", "nodes"), (_GROUP, "queues"))
        )
        known = _Known(now + _TRUSTED_S, cluster, self._sees(person))
        with self._lock:
            self._known = {who: kept for who, kept in self._known.items() if kept.until > now}
            self._known[person] = known
        return known

    def _sees(self, person: Person, namespace: str = "") -> bool:
        return all(
            self.may(person, Right("list", group, resource, namespace))
            for group, resource in ((_GROUP, "podgroups"), ("", "pods"))
        )

    def _ask(self, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Ask; a cluster that does not answer admits no user."""
        review: Manifest = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec}
        try:
            return self._cluster.create(review).get("status") or {}
        except ClusterError as error:
            _log.warning("cannot ask the cluster who may read", kind=kind, problem=error.problem)
            return {}

"""Access: the hosts under which pages are served, allowed origins of requests, and users."""

import hmac
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from aiohttp import web

from pumice.dashboard.documents.shared import EVERYTHING, Scope

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
CSRF: Final = "X-Pumice-Csrf"
COOKIE: Final = "pumice_session"
_SESSION_S: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 10_000
_FAILURE_S: Final = 0.5
"""Delay of the answer to a wrong token."""
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
        """Compare in constant time."""
        right = hmac.compare_digest(token.encode(), self.token.encode())
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
        self._hosts = LOOPBACK | frozenset(hosts)
        self.authority = authority
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
        problem = self._foreign(request)
        if problem:
            response: web.StreamResponse = refusal(403, problem)
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = refusal(error.status, error.text or error.reason)
        if not response.prepared:
            response.headers.update(_HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _foreign(self, request: web.Request) -> str:
        """Return what is wrong with the origin of a request."""
        host = request.headers.get("Host", "")
        name, _, port = host.rpartition(":")
        if (name if port.isdecimal() and name else host) not in self._hosts:
            return "this host is not served here"
        scheme = "https" if self.is_tls else "http"
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{scheme}://{host}":
            return "requests of other sites are not answered"
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_visit = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.method == "GET"
        if site not in ("same-origin", "none") and not is_visit:
            return "requests of other sites are not answered"
        return ""

    def headers(self) -> dict[str, str]:
        """Return the headers of an answer that is sent piece by piece."""
        return dict(_HEADERS)

    def person(self, request: web.Request) -> Person:
        """Return the user of a request.

        Raises:
            HTTPUnauthorized: no admitted user.
        """
        if self.authority is None:
            return ANYONE
        session = self.sessions.find(request.cookies.get(COOKIE, ""))
        if session is not None:
            return session.person
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        found = self.authority.identify(token.strip()) if kind.lower() == "bearer" else None
        if found is None:
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
        if not hmac.compare_digest(sent.encode(), self.csrf(request).encode()):
            raise web.HTTPForbidden(text="the page is out of date; load it again")


def failure_pause_s() -> float:
    """Return the delay of the answer to a wrong token."""
    return _FAILURE_S


def refusal(status: int, problem: str) -> web.Response:
    """Answer with one sentence on what is wrong."""
    return web.json_response({"problem": problem.strip()}, status=status)

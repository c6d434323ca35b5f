"""How a dashboard is served, by `pumice ui`, `pumice up` and `pumice serve scheduler --ui`."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.api.conf import DEFAULT_CONF
from pumice.api.text_files import NO_PASSWORD, read_secret, read_text
from pumice.cluster.base import LiveCluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.dashboard.actions import Actions
from pumice.dashboard.answers import Answers
from pumice.dashboard.material import Material
from pumice.dashboard.pages import Pages, namespaces_of
from pumice.dashboard.runs import RunLibrary
from pumice.dashboard.security import Authority, ClusterLogin, Guard, OneToken
from pumice.dashboard.server import Dashboard, dashboard_server
from pumice.dashboard.sources import SchedulerSource, Source
from pumice.errors import InputError, Words
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.options import SchedulerOptions, split_address
from pumice.serve.scheduler.live_scheduler import Cycle

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_SHORTEST: Final = 16
"""Minimum length of a token, so that it cannot be guessed."""


@dataclass(frozen=True, kw_only=True)
class ServingOptions:
    """Where a dashboard is served, and to whom."""

    listen: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ()
    """Names under which it is reached, beside loopback."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    token_file: Path | None = None
    cluster_login: bool = False
    """Whether the cluster identifies users and decides what they may see."""
    allow_actions: bool = False
    """Whether pages may change the cluster."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.listen in _LOOPBACK

    def tls(self) -> ssl.SSLContext | None:
        """Return the certificate to serve with.

        Raises:
            InputError: it is missing or cannot be used.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InputError(wanted="a certificate and its key", found=Words("one of them alone"))
        if self.tls_cert is None or self.tls_key is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            for file in (self.tls_cert, self.tls_key):
                read_secret(file)  # or it cannot be read to its end
            context.load_cert_chain(self.tls_cert, self.tls_key, NO_PASSWORD)
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                wanted="a certificate and its key",
                found=getattr(error, "reason", None) or str(error),
                file=str(self.tls_cert),
            ) from None
        return context

    def check(self) -> None:
        """Refuse to serve other machines without TLS and a login.

        Raises:
            InputError: one of them is missing.
        """
        if self.is_local:
            return
        if self.tls_cert is None:
            raise InputError(
                wanted=f"--tls-cert and --tls-key to listen on {self.listen}",
                found=Words("no certificate"),
                hint="only loopback is served without TLS",
            )
        if self.token_file is None and not self.cluster_login:
            raise InputError(
                wanted=f"--token-file or --cluster-login to listen on {self.listen}",
                found=Words("neither"),
                hint="only loopback is served without login",
            )

    def check_early(self, port_option: str = "--port") -> None:
        """Find what would stop it, before a cluster is loaded for it.

        Raises:
            InputError: the options, the certificate, the token or the address cannot be used.
        """
        self.check()
        self.tls()
        self.token()
        if not self.port:
            return
        family = socket.AF_INET6 if ":" in self.listen else socket.AF_INET
        try:
            socket.create_server((self.listen, self.port), family=family).close()
        except OSError as error:
            raise InputError(
                wanted=f"a port that is free on {self.listen}",
                found=self.port,
                field=port_option,
                hint=(error.strerror or str(error)).partition(" (")[0],  # else again the address
            ) from None

    def token(self) -> str:
        """Read the token.

        Raises:
            InputError: the file cannot be read, or the token can be guessed.
        """
        if self.token_file is None:
            return ""
        found = read_text(self.token_file).strip()
        if len(found) < _SHORTEST:
            raise InputError(
                wanted=f"a token of at least {_SHORTEST} characters",
                found=Words(f"{len(found)} characters"),
                file=str(self.token_file),
            )
        return found


def guard_of(options: ServingOptions, authority: Authority | None) -> Guard:
    """Return the guard of all requests; a token in the options takes precedence over an authority.

    Raises:
        InputError: the token cannot be used.
    """
    token = options.token()
    if token:
        authority = OneToken(token)
    return Guard(hosts=options.hosts, authority=authority, is_tls=options.tls_cert is not None)


def _login(source: Source) -> Authority:
    """Use the cluster that is shown to identify users.

    Raises:
        InputError: there is no cluster that can identify users.
    """
    if source.cluster is None or source.about.kind == "embedded":
        raise InputError(
            wanted="a cluster that knows people, for --cluster-login",
            found=source.about.title,
            hint="use --token-file",
        )
    return ClusterLogin(source.cluster, lambda: namespaces_of(source))


def actions_of(source: Source, options: ServingOptions, guard: Guard) -> Actions | None:
    """Return what acts for people, None if pages only show.

    Raises:
        InputError: there is nothing to act on.
    """
    if not options.allow_actions:
        return None
    if source.cluster is None:
        raise InputError(
            wanted="a cluster to act on, for --allow-actions", found=source.about.title
        )
    return Actions(source.cluster, guard.may, lists_jobs=source.about.kind != "scheduler")


@contextmanager
def served_dashboard(
    source: Source,
    options: ServingOptions,
    *,
    authority: Authority | None = None,
    answers: Answers | None = None,
    runs: RunLibrary | None = None,
) -> Iterator[str]:
    """Serve a dashboard while the block runs; yield its address.

    Several may share the answering process; without one it is started.

    Raises:
        InputError: options that would show a cluster to anyone.
        ServiceError: an address that cannot be used.
    """
    options.check()
    tls = options.tls()
    if authority is None and options.cluster_login:
        authority = _login(source)
    guard = guard_of(options, authority)
    actions = actions_of(source, options, guard)
    own = answers or Answers()
    dashboard = Dashboard(Pages(source, own, runs), guard, actions)
    server = dashboard_server(dashboard, options.listen, options.port, tls)
    try:
        with server:
            scheme = "https" if tls is not None else "http"
            name = options.listen if options.is_local else (*options.hosts, options.listen)[0]
            yield f"{scheme}://{name}:{server.ports[0]}"
    finally:
        if answers is None:
            own.close()


class LiveDashboard:
    """Pages about the cluster that a scheduler watches."""

    def __init__(self, options: SchedulerOptions, cluster: LiveCluster) -> None:
        """Make it; refuses options that would show a cluster to anyone.

        Raises:
            InputError: such options.
        """
        host, port = split_address(options.ui_address, "ui-address")
        self._serving = ServingOptions(
            listen=host or "0.0.0.0",  # noqa: S104  # refused below without TLS and a login
            port=port,
            hosts=options.ui_host,
            tls_cert=_file(options.ui_tls_cert_file),
            tls_key=_file(options.ui_tls_private_key_file),
            token_file=_file(options.ui_token_file),
            cluster_login=options.ui_cluster_login,
            allow_actions=options.ui_allow_actions,
        )
        self._serving.check()
        self._stack = ExitStack()
        title = ", ".join(options.scheduler_name)
        self._source = SchedulerSource(
            cluster,
            title,
            lambda: _conf_text(options.scheduler_conf),
            decides=not options.shadow,
            past=Material(now=0.0, record=Path(options.record)) if options.record else None,
        )
        self.observer = self._source.feed
        answers = Answers()
        self._stack.callback(answers.close)
        pages = Pages(self._source, answers)
        authority = self._login(options, pages) if options.ui_cluster_login else None
        guard = guard_of(self._serving, authority)
        actions = actions_of(self._source, self._serving, guard)
        self._dashboard = Dashboard(pages, guard, actions)

    def finished(self, cycle: Cycle) -> None:
        """Add the results of a cycle's writes."""
        self._source.feed.finished(cycle)

    def site(self) -> Site:
        """Return the pages, and their address."""
        serving = self._serving
        return Site(self._dashboard.app(), serving.listen, serving.port, serving.tls())

    def server(self) -> HttpServer:
        """Return a server of the pages."""
        return HttpServer([self.site()])

    def close(self) -> None:
        """End the answering process, and the connection for logins."""
        self._stack.close()

    def _login(self, options: SchedulerOptions, pages: Pages) -> Authority:
        """Ask about users on a connection of its own: it also works while another process leads."""
        connection = load_connection(options.kubeconfig or None, options.master)
        cluster = self._stack.enter_context(KubeCluster(connection, timeout_s=5.0, attempts=1))
        return ClusterLogin(cluster, pages.namespaces)


def _file(name: str) -> Path | None:
    return Path(name) if name else None


def _conf_text(file: str) -> str:
    """Return the configuration that the scheduler reads; the built-in one if it has none."""
    if not file:
        return DEFAULT_CONF
    try:
        return read_text(Path(file))
    except InputError:
        return DEFAULT_CONF

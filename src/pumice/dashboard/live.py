"""The dashboard of a scheduler that serves: `pumice serve scheduler --ui`."""

from contextlib import ExitStack
from pathlib import Path

from pumice.api.conf import DEFAULT_CONF
from pumice.api.text_files import read_text
from pumice.cluster.base import LiveCluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.dashboard.answers import Answers
from pumice.dashboard.cluster_login import ClusterLogin
from pumice.dashboard.pages import Pages
from pumice.dashboard.security import Authority
from pumice.dashboard.server import Dashboard
from pumice.dashboard.serving import ServingOptions, actions_of, guard_of
from pumice.dashboard.sources import SchedulerSource
from pumice.errors import InputError
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.options import SchedulerOptions, split_address
from pumice.serve.scheduler.live_scheduler import Cycle


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

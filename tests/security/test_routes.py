"""Every route of every server, attacked: a route that is added needs a row here."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web

from pumice.apiserver.discovery import document
from pumice.apiserver.rest import RestApi
from pumice.apiserver.served_cluster import ServedCluster
from pumice.apiserver.server import ApiServer
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.dashboard.answers import Answers
from pumice.dashboard.pages import Pages
from pumice.dashboard.runs import RunLibrary
from pumice.dashboard.security import Guard
from pumice.dashboard.server import Dashboard
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import StaticSource
from pumice.diagnosis.sources import load_world
from pumice.metrics import Metrics
from pumice.serve.endpoints import add_metrics, health_app
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.options import WebhookOptions
from pumice.serve.webhooks import ClusterView, Reviewer, watch_groups, webhook_app
from pumice.testing import pod
from pumice.webhooks.registry import SERVICES
from tests.security.hostile_http import FOREIGN, Sent, attacks, send, small_bodies

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "examples" / "first-cluster.yaml"
TOKEN = "a-token-that-is-long-enough"  # noqa: S105
QUICK_S: Final = 20.0
"""The longest time of one answer; the machine may be busy."""


@dataclass(frozen=True)
class Row:
    """A route: an address that exists, and whether it is answered without a login."""

    path: str
    public: bool = False
    writes: bool = False


PAGES: Final = {
    ("GET", path): Row(path.replace("{a}", "ai").replace("{b}", "sweep"), public=True)
    for path in (
        *("/", "/queues", "/queues/{a}", "/jobs", "/jobs/{a}/{b}", "/nodes", "/nodes/{a}"),
        *("/cycles", "/cycles/{a}", "/simulations", "/simulations/{a}", "/whatif", "/search"),
    )
}
"""Pages are the same for everyone: a script shows what each is about."""
DASHBOARD: Final = {
    **PAGES,
    ("GET", "/{page}"): Row("/no-such-page", public=True),
    ("GET", "/static/{name}"): Row("/static/app.js", public=True),
    ("GET", "/api/session"): Row("/api/session"),
    ("GET", "/api/news"): Row("/api/news"),
    ("GET", "/api/overview"): Row("/api/overview"),
    ("GET", "/api/queues"): Row("/api/queues"),
    ("GET", "/api/jobs"): Row("/api/jobs"),
    ("GET", "/api/nodes"): Row("/api/nodes"),
    ("GET", "/api/fit"): Row("/api/fit?cpu=1"),
    ("GET", "/api/cycles"): Row("/api/cycles"),
    ("GET", "/api/cycles/{n}"): Row("/api/cycles/1"),
    ("GET", "/api/nodes/{name}"): Row("/api/nodes/node-a"),
    ("GET", "/api/jobs/{ns}/{name}"): Row("/api/jobs/ai/sweep"),
    ("GET", "/api/simulations"): Row("/api/simulations"),
    ("GET", "/api/simulations/{name}"): Row("/api/simulations/none:none"),
    ("GET", "/api/jobs/{ns}/{name}/why"): Row("/api/jobs/ai/sweep/why"),
    ("GET", "/api/jobs/{ns}/{name}/life"): Row("/api/jobs/ai/sweep/life"),
    ("GET", "/api/past"): Row("/api/past?at=-1h"),
    ("GET", "/api/order"): Row("/api/order"),
    ("GET", "/api/configuration"): Row("/api/configuration"),
    ("GET", "/api/snapshot"): Row("/api/snapshot"),
    ("GET", "/api/actions/jobs/{ns}/{name}"): Row("/api/actions/jobs/ai/sweep"),
    ("GET", "/api/actions/queues/{name}"): Row("/api/actions/queues/default"),
    ("GET", "/api/actions/suspended"): Row("/api/actions/suspended"),
    ("POST", "/api/actions"): Row("/api/actions", writes=True),
    ("POST", "/api/whatif"): Row("/api/whatif", writes=True),
    ("POST", "/api/login"): Row("/api/login", public=True, writes=True),
    ("POST", "/api/logout"): Row("/api/logout", writes=True),
}
HEALTH: Final = {
    ("GET", path): Row(path, public=True) for path in ("/healthz", "/livez", "/readyz", "/metrics")
}
WEBHOOKS: Final = {
    ("GET", "/healthz"): Row("/healthz", public=True),
    **{("POST", path): Row(path, public=True, writes=True) for path in (
        "/jobs/mutate", "/jobs/validate", "/queues/mutate", "/queues/validate", "/pods/mutate",
        "/pods/validate", "/podgroups/mutate", "/podgroups/validate", "/hypernodes/validate",
        "/jobflows/validate", "/cronjobs/validate",
    )},
}  # fmt: skip
API: Final = ("/", "/api", "/api/v1", "/apis", "/apis/batch.volcano.sh",
              "/apis/batch.volcano.sh/v1alpha1", "/healthz", "/livez", "/openapi/v2", "/openapi/v3",
              "/openapi/v3/api/v1", "/readyz", "/version", "/nowhere")  # fmt: skip
"""Addresses of the embedded API server beside those of its resources."""
KINDS: Final = {"pods", "nodes", "queues", "jobflows", "deployments", "customresourcedefinitions"}
"""Kinds in and without namespaces, Kubernetes' own and Volcano's."""


# Servers


def metrics_app() -> web.Application:
    app = health_app(str, str)
    add_metrics(app, Metrics().text)
    return app


def reviewing_app() -> web.Application:
    reviewer = Reviewer(ClusterView(EmbeddedCluster()), WebhookOptions(), watch_groups(""))
    return webhook_app(reviewer, SERVICES.values())


def routes_of(app: web.Application) -> set[tuple[str, str]]:
    listed = ((route.method, route.resource) for route in app.router.routes())
    return {
        (method, resource.canonical)
        for method, resource in listed
        if resource is not None and method != "HEAD"
    }


@pytest.fixture(scope="module")
def source() -> Any:
    return StaticSource(load_world([CLUSTER]), "first")


@pytest.fixture(scope="module")
def ports(source: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(TOKEN)
    served = ServedCluster()
    served.add_nodes(1, {"cpu": "4", "memory": "8Gi"})
    served.cluster.create(pod("sweep"))
    with ExitStack() as stack:
        found = {}
        for name, options in (
            ("dashboard", ServingOptions()),
            ("dashboard with a login", ServingOptions(token_file=token)),
        ):
            url = stack.enter_context(served_dashboard(source, options))
            found[name] = int(url.rpartition(":")[2])
        for name, app in (("health", metrics_app()), ("webhooks", reviewing_app())):
            server = stack.enter_context(HttpServer([Site(app, "127.0.0.1")]))
            found[name] = server.ports[0]
        api = ApiServer(RestApi(served.cluster))
        api.start()
        stack.callback(api.stop)
        stack.callback(served.stop)
        yield {**found, "API server": api.port}


# Rows


def test_every_route_has_a_row(source: Any) -> None:
    answers = Answers()
    try:
        dashboard = Dashboard(Pages(source, answers, RunLibrary(())), Guard())
        assert routes_of(dashboard.app()) == set(DASHBOARD)
    finally:
        answers.close()
    assert routes_of(metrics_app()) == set(HEALTH)
    assert routes_of(reviewing_app()) == set(WEBHOOKS)


def test_every_address_of_the_api_server_has_a_row() -> None:
    kinds = EmbeddedCluster().kinds
    root = document(kinds, [], "application/json") or {}
    assert set(root["paths"]) <= set(API)


def resources() -> list[tuple[str, str]]:
    """List method and address of each resource and subresource, as discovery names them."""
    kinds = EmbeddedCluster().kinds
    verbs = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET"}
    found = []
    for kind in kinds:
        start = f"/apis/{kind.group}" if kind.group else "/api"
        parts = [start, kind.version, *(("namespaces", "default") if kind.namespaced else ())]
        listed = document(
            kinds, [part for part in parts[:2] for part in part.split("/") if part], ""
        )
        for one in (listed or {}).get("resources", ()):
            plural, _, sub = one["name"].partition("/")
            if plural == kind.plural:
                place = "/".join([*parts, plural])
                named = "/".join([place, "sweep", *([sub] if sub else [])])
                found += [
                    (verbs[verb], place if verb == "create" and not sub else named)
                    for verb in one["verbs"]
                    if verb in verbs
                ]
    return found


# Attacks


def attack(
    port: int,
    method: str,
    path: str,
    base: Sent,
    check: Callable[[str, int, bytes], None] = lambda *_: None,
    ways: Callable[[str, str, Sent], Iterator[tuple[str, Sent]]] = attacks,
) -> None:
    """Send attacks to a route: each is answered or cut off, soon, and none is a fault."""
    for name, request in ways(path, method, base):
        started = time.monotonic()
        status, body = send(port, request)
        took_s = time.monotonic() - started
        assert status < 500 or status in (501, 503), (name, request.data()[:300], status, body)
        assert took_s < QUICK_S, (name, took_s)
        assert b"root:x:0:0" not in body, name
        assert b"Traceback" not in body, name
        check(name, status, body)


@pytest.mark.parametrize(("method", "route"), DASHBOARD)
def test_the_dashboard_stands(ports: Any, method: str, route: str) -> None:
    port = ports["dashboard"]
    csrf = json.loads(send(port, Sent("/api/session"))[1])["csrf"].encode()
    row = DASHBOARD[method, route]
    ways = small_bodies if (method, route) in PAGES and "{" not in route else attacks
    attack(port, method, row.path, Sent("", head=b"X-Pumice-Csrf: " + csrf), ways=ways)
    assert send(port, Sent("/api/overview"))[0] == 200


@pytest.mark.parametrize(("method", "route"), DASHBOARD)
def test_without_a_login_nothing_of_the_cluster_is_shown(
    ports: Any, method: str, route: str
) -> None:
    row = DASHBOARD[method, route]

    def check(name: str, status: int, body: bytes) -> None:
        assert b"node-b" not in body, name
        assert row.public or status not in (200, 202, 204, 304), (name, status, body)

    ways = small_bodies if (method, route) in PAGES else attacks
    attack(ports["dashboard with a login"], method, row.path, Sent(""), check, ways)


@pytest.mark.parametrize(("method", "route"), HEALTH)
def test_health_and_metrics_stand(ports: Any, method: str, route: str) -> None:
    attack(ports["health"], method, route, Sent(""))
    assert send(ports["health"], Sent("/healthz")) == (200, b"ok")


@pytest.mark.parametrize(("method", "route"), WEBHOOKS)
def test_webhooks_stand(ports: Any, method: str, route: str) -> None:
    attack(ports["webhooks"], method, route, Sent(""))
    assert send(ports["webhooks"], Sent("/healthz")) == (200, b"ok")


@pytest.mark.parametrize("path", API)
def test_the_api_server_stands(ports: Any, path: str) -> None:
    attack(ports["API server"], "GET", path, Sent(""))


@pytest.mark.parametrize(("method", "path"), resources())
def test_each_resource_of_the_api_server_stands(ports: Any, method: str, path: str) -> None:
    """Lines and headers are read before the kind is known: a few kinds get every attack."""
    ways = attacks if KINDS & set(path.split("/")) else small_bodies
    attack(ports["API server"], method, path, Sent(""), ways=ways)
    assert send(ports["API server"], Sent("/healthz")) == (200, b"ok")


@pytest.mark.parametrize(("name", "host"), FOREIGN, ids=[name for name, _ in FOREIGN])
@pytest.mark.parametrize("server", ["dashboard", "dashboard with a login", "API server"])
def test_pages_of_other_sites_get_no_answer(
    ports: Any, server: str, name: str, host: bytes
) -> None:
    rows = [("GET", "/version"), *resources()]
    if server != "API server":
        rows = [(method, row.path) for (method, _), row in DASHBOARD.items()]
    for method, path in rows:
        status, body = send(ports[server], replace(Sent(path, method), host=host))
        assert status in (400, 403), (name, method, path, status)
        assert b"node-b" not in body


@pytest.mark.parametrize(("method", "route"), [key for key, row in DASHBOARD.items() if row.writes])
def test_what_does_something_needs_the_token_of_a_page(ports: Any, method: str, route: str) -> None:
    if route == "/api/login":
        return
    for head in (b"", b"X-Pumice-Csrf: ", b"X-Pumice-Csrf: undefined", b"Cookie: pumice_session=x"):
        request = Sent(route, method, head=head, body=b'{"drain": ["node-a"]}')
        assert send(ports["dashboard"], request)[0] == 403

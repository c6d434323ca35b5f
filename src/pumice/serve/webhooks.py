"""Admission served over HTTPS: the reviews, certificates, and the webhook configurations."""

import asyncio
import base64
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from aiohttp import web

from pumice import logs
from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.kinds import QUEUE, Manifest
from pumice.api.text_files import NO_PASSWORD, read_secret, read_text
from pumice.api.wording import name_hint
from pumice.api.yaml_text import parse_yaml
from pumice.cluster.base import Cluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.errors import ClusterError, InputError, NotFoundError
from pumice.serve.http_server import HttpServer, Site, read_body
from pumice.serve.options import QUEUE_GATES, WebhookOptions
from pumice.webhooks.admission_chain import KINDS
from pumice.webhooks.admission_review import answer_review
from pumice.webhooks.registry import SERVICES, SKIPPED_NAMESPACES, Service
from pumice.webhooks.review import Options, ResourceGroup, children_of, read_groups

GROUP: Final = "admissionregistration.k8s.io"
_PREFIX: Final = "volcano-admission-service"
_log = logs.get("webhooks")


def configuration_name(service: Service, service_name: str) -> str:
    """Return the name of a webhook's configuration."""
    return f"{service_name or _PREFIX}{service.path.replace('/', '-')}"


def register(
    cluster: Cluster, service: Service, *, ca_bundle: bytes, service_name: str, url: str
) -> bool:
    """Write the certificate into a configuration; return whether it is done."""
    bundle = base64.b64encode(ca_bundle).decode()
    kind = "MutatingWebhookConfiguration" if service.mutating else "ValidatingWebhookConfiguration"
    name = configuration_name(service, service_name)
    try:
        found = cluster.get(f"{kind}.{GROUP}", "", name)
    except NotFoundError:
        if not url:
            return False
        return _make(cluster, kind, name, _webhook(service, url, bundle))
    except ClusterError as error:
        _log.warning("cannot read webhook configuration", name=name, error=error)
        return True
    hooks = found.get("webhooks") or []
    trusted = [
        {**hook, "clientConfig": {**hook.get("clientConfig", {}), "caBundle": bundle}}
        for hook in hooks
    ]
    if trusted != hooks:
        try:
            cluster.patch(f"{kind}.{GROUP}", "", name, {"webhooks": trusted})
        except ClusterError as error:
            _log.warning("cannot update webhook configuration", name=name, error=error)
    return True


def _make(cluster: Cluster, kind: str, name: str, hook: dict[str, Any]) -> bool:
    manifest: Manifest = {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    try:
        cluster.create(manifest)
    except ClusterError as error:
        _log.warning("cannot create webhook configuration", name=name, error=error)
    return True


def _webhook(service: Service, url: str, bundle: str) -> dict[str, Any]:
    kind = KINDS[service.kind]
    hook: dict[str, Any] = {
        "name": service.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{url.rstrip('/')}{service.path}", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": list(service.operations),
                "resources": [kind.plural],
            }
        ],
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }
    if kind.namespaced:
        names = {
            "key": NAMESPACE_NAME,
            "operator": "NotIn",
            "values": list(SKIPPED_NAMESPACES),
        }
        hook["namespaceSelector"] = {"matchExpressions": [names]}
    return hook


_T = TypeVar("_T")
_Look = tuple[tuple[int, int, int], ...]
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class ReloadedFiles(Generic[_T]):
    """A value made from files; a bad version is reported and the last good value stays."""

    def __init__(self, paths: Sequence[str], read: Callable[[], _T], first: _T) -> None:
        self._paths = paths
        self._read = read
        self._look: _Look = ()
        self.current = first
        self.refresh()

    def refresh(self) -> None:
        """Check the files and read them if they have changed."""
        try:
            look = tuple(_look(path) for path in self._paths)
            if look == self._look:
                return
            self._look = look
            self.current = self._read()
        except (OSError, ValueError) as error:
            _log.error("cannot read", files=", ".join(self._paths), error=error)


def _look(path: str) -> tuple[int, int, int]:
    found = Path(path).stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def watch_groups(path: str) -> ReloadedFiles[tuple[ResourceGroup, ...] | None]:
    """Read the resource groups of pods; without a file there are none, and pods stay unchanged."""
    if not path:
        return ReloadedFiles((), lambda: None, None)
    return ReloadedFiles((path,), lambda: read_groups(_only_document(path)), None)


def _only_document(path: str) -> Any:
    """Return the content of a YAML file, None if it is empty."""
    documents = parse_yaml(read_text(Path(path)), path)
    return documents[0] if documents else None


def watch_certificate(cert_file: str, key_file: str) -> ReloadedFiles[ssl.SSLContext]:
    """Make the TLS settings; a new certificate applies to connections opened afterwards.

    Raises:
        InputError: there is no certificate to begin with.
    """
    for flag, path in (("tls-cert-file", cert_file), ("tls-private-key-file", key_file)):
        if not path or not Path(path).is_file():
            raise InputError(field=f"--{flag}", wanted="a file for HTTPS", found=path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    try:
        context.load_cert_chain(cert_file, key_file, NO_PASSWORD)
    except (OSError, ValueError) as error:
        hint = str(error)
        raise InputError(
            field="--tls-cert-file", wanted="a certificate and its key", found=cert_file, hint=hint
        ) from None

    def read() -> ssl.SSLContext:
        context.load_cert_chain(cert_file, key_file, NO_PASSWORD)
        return context

    return ReloadedFiles((cert_file, key_file), read, context)


MAX_BODY: Final = 3 * 1024 * 1024
_REFRESH_S: Final = 5.0
_REGISTER_S: Final = 300.0
_THREADS: Final = 2
"""Threads of each kind."""
Read = Callable[[str, str, str], Manifest]
"""Returns an object by kind, namespace and name, or raises ClusterError."""


class ClusterView:
    """Queues and namespaces of a cluster, as the rules see them."""

    def __init__(self, cluster: Cluster, read: Read | None = None) -> None:
        self._cluster = cluster
        self._read = read or cluster.get

    def queue(self, name: str) -> Manifest | None:
        """Return a queue; the server is asked for one whose creation has not been seen yet."""
        seen = next((one for one in self.queues() if one["metadata"]["name"] == name), None)
        return seen if seen is not None else self._found(self._read, QUEUE, name)

    def queues(self) -> Iterable[Manifest]:
        """Return all queues."""
        return self._cluster.list(QUEUE)[0]

    def below(self, name: str) -> list[Manifest]:
        """Return the queues directly below one."""
        return children_of(name, self.queues())

    def namespace(self, name: str) -> Manifest | None:
        """Return a namespace."""
        return self._found(self._cluster.get, "Namespace", name)

    @staticmethod
    def _found(read: Read, kind: str, name: str) -> Manifest | None:
        """Return the result of a read; an unreadable object counts as none."""
        try:
            return read(kind, "", name)
        except ClusterError as error:
            _log.v(2).info("cannot read an object", kind=kind, name=name, error=error)
            return None


@dataclass(slots=True)
class Reviewer:
    """Answers requests with the rules, for one cluster."""

    view: ClusterView
    settings: WebhookOptions
    groups: ReloadedFiles[tuple[ResourceGroup, ...] | None]
    _pools: dict[str, ThreadPoolExecutor] = field(default_factory=dict)

    def pool(self, kind: str) -> ThreadPoolExecutor:
        """Return the threads of a kind: many reviews of one kind do not delay others."""
        found = self._pools.get(kind)
        if found is None:
            found = self._pools[kind] = ThreadPoolExecutor(_THREADS, f"review-{kind}")
        return found

    def options(self) -> Options:
        """Return the options that change decisions, at present."""
        return Options(
            scheduler_names=tuple(self.settings.scheduler_name),
            resource_groups=self.groups.current,
            max_queue_depth=self.settings.max_queue_depth,
            max_job_replicas=self.settings.max_job_replicas,
            check_allocated_pods=self.settings.enable_queue_allocated_pods_check,
            protect_root_queue=self.settings.enable_root_queue_protection,
            gate_pods=self.settings.gate(QUEUE_GATES),
        )

    async def answer(self, request: web.Request, service: Service) -> web.Response:
        """Answer one request."""
        body = await read_body(request, MAX_BODY)
        # Volcano compares the header as it stands, and says nothing more.
        if request.headers.get("Content-Type", "") != "application/json":
            _log.warning("not application/json", path=service.path)
            return web.Response()
        loop = asyncio.get_running_loop()
        try:
            text = await loop.run_in_executor(
                self.pool(service.kind), answer_review, body, service, self.view, self.options()
            )
        except ClusterError as error:
            _log.error("cannot decide", path=service.path, error=error)
            return web.Response(status=500, text=f"{error}\n")
        return web.Response(body=text, content_type="application/json")


def enabled_services(listed: str) -> list[Service]:
    """Read the list of paths to serve.

    Raises:
        InputError: a path without a webhook.
    """
    paths = [path.strip() for path in listed.split(",") if path.strip()]
    for path in paths:
        if path not in SERVICES:
            hint = name_hint(path, SERVICES)
            raise InputError(
                field="--enabled-admission",
                wanted="a known path of a webhook",
                found=path,
                hint=hint,
            )
    return [SERVICES[path] for path in paths]


def webhook_app(reviewer: Reviewer, services: Iterable[Service]) -> web.Application:
    """Serve webhooks, and their health."""
    app = web.Application()
    for service in services:

        async def handle(request: web.Request, service: Service = service) -> web.Response:
            return await reviewer.answer(request, service)

        app.router.add_post(service.path, handle)

    async def healthz(request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok")

    app.router.add_get("/healthz", healthz)
    return app


def serve_webhooks(options: WebhookOptions, stop: threading.Event) -> None:
    """Serve until stopped.

    Raises:
        InputError: options that cannot be used.
    """
    if not (options.webhook_url or options.webhook_namespace or options.webhook_service_name):
        hint = "where the API server finds the webhooks"
        raise InputError(
            field="--webhook-url", wanted="an address, or a namespace and a name", hint=hint
        )
    services = enabled_services(options.enabled_admission)
    certificate = watch_certificate(options.tls_cert_file, options.tls_private_key_file)
    connection = load_connection(options.kubeconfig or None, options.master)
    with KubeCluster(
        connection, kinds=(QUEUE,), qps=options.kube_api_qps, burst=options.kube_api_burst
    ) as cluster:
        while cluster.wait_synced(_REFRESH_S):
            if stop.is_set():
                return
            _log.info("waiting for queues to sync", trouble=str(cluster.troubles()))
        registrar = threading.Thread(
            target=_register, args=(cluster, services, options, stop), daemon=True
        )
        registrar.start()
        view = ClusterView(cluster, cluster.read)
        reviewer = Reviewer(view, options, watch_groups(options.admission_conf))
        app = webhook_app(reviewer, services)
        site = Site(app, options.listen_address, options.port, certificate.current)
        with HttpServer([site], grace_s=options.graceful_shutdown_time_s) as http:
            _log.info("serving webhooks", port=options.port)
            while not stop.wait(_REFRESH_S):
                http.call_soon(certificate.refresh)
                reviewer.groups.refresh()
        registrar.join(_REFRESH_S)


def _register(
    cluster: Cluster, services: list[Service], options: WebhookOptions, stop: threading.Event
) -> None:
    """Register the certificate with the API server; wait a while for configurations to appear."""
    if not options.ca_cert_file:
        return
    try:
        bundle = read_secret(Path(options.ca_cert_file))
    except OSError as error:
        _log.error("cannot read", file=options.ca_cert_file, error=error)
        return
    left, waited = list(services), 0.0
    while left and waited < _REGISTER_S and not stop.is_set():
        left = [
            one
            for one in left
            if not register(
                cluster,
                one,
                ca_bundle=bundle,
                service_name=options.webhook_service_name,
                url=options.webhook_url,
            )
        ]
        if left:
            stop.wait(1.0)
            waited += 1.0

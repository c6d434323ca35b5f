"""The address of a cluster and the identity of the client; from a kubeconfig or from inside a pod.

Used by all clients of a real cluster.  Nothing is sent here; an exec plugin is run on demand.
"""

import base64
import logging
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pumice.api.shown_text import without_secrets
from pumice.api.text_files import read_secret
from pumice.cluster.http.tls import RenewableTls, load_client, tls_context, trusting
from pumice.cluster.kube.credentials import (
    Credentials,
    ExecCredentials,
    ExecPlugin,
    StaticCredentials,
    TokenFile,
)
from pumice.cluster.kube.kubeconfig import ActiveContext, Section, named_files, read_kubeconfig
from pumice.errors import InputError, ServiceError, Words
from pumice.logs import warn_once

log = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its own identity."""

_UNSUPPORTED: Final = ("auth-provider", "as", "as-uid", "as-groups", "as-user-extra")
_AN_ADDRESS: Final = "an address such as https://10.0.0.1:6443"
_NOTHING: Final = (
    "no cluster found: name one with --kubeconfig, --master or KUBECONFIG, run in a pod, "
    "or have a ~/.kube/config"
)


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and one identity."""

    server: str
    """Address without a trailing slash: ``https://10.0.0.1:6443``."""
    rules: RenewableTls | None = None
    """TLS settings; None for plain HTTP."""
    tls_name: str = ""
    """Name that the server's certificate must carry, if not the host of its address."""
    namespace: str = "default"
    """Namespace of the context, or of the pod this runs in."""
    credentials: Credentials = field(default_factory=StaticCredentials, repr=False)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The current TLS settings."""
        return None if self.rules is None else self.rules.current()


def load_connection(
    kubeconfig: str | None = None,
    master: str = "",
    context: str = "",
    *,
    env: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the cluster: the file named, $KUBECONFIG, the pod this runs in, ~/.kube/config.

    ``master`` replaces the address only; the token of a pod is not sent to it over plain HTTP.

    Raises:
        InputError: a file that cannot be used; names the file and the field.
        ServiceError: no cluster is named at all.
    """
    files = named_files(kubeconfig or "", env)
    if files:
        return from_files(files, master, context)
    if env.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return _in_pod(env, service_account, master)
    if master:
        return from_master(master)
    home = Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"
    if home.is_file():
        return from_files([home], master, context)
    raise ServiceError("", _NOTHING)


def from_files(files: Sequence[Path], master: str = "", context: str = "") -> Connection:
    """Make a connection from the chosen context of kubeconfig files.

    Raises:
        InputError: it cannot be used; names the file and the field.
    """
    chosen = read_kubeconfig(files, context)
    cluster, user = chosen.cluster, chosen.user
    for key in _UNSUPPORTED:
        if user.content.get(key):
            hint = "make a kubeconfig with a token, for example by 'kubectl create token'"
            raise user.wrong(key, "a token, a client certificate or exec", key, hint)
    if cluster.content.get("proxy-url"):
        raise cluster.wrong("proxy-url", "a server without a proxy", "a proxy")
    given = _address(master or cluster.text("server"))
    server = _without_user(given)
    if not server:
        raise cluster.wrong("server", "the address of an API server")
    if not master and not _is_usable(given):
        raise cluster.wrong("server", _AN_ADDRESS, without_secrets(cluster.text("server")))
    tls = _tls(server, cluster, user)
    credentials = _credentials(chosen, tls, server, given)
    if tls is None and credentials != StaticCredentials():
        warn_once(log, f"{user.file}: {server}: a secret is sent over plain HTTP: use https://")
    return Connection(
        server,
        tls,
        cluster.text("tls-server-name"),
        chosen.context.text("namespace") or "default",
        credentials,
    )


def from_master(master: str) -> Connection:
    """Make a connection from an address alone, without an identity.

    Raises:
        InputError: it is no address.
    """
    given = _address(master)
    if not _is_usable(given):
        found = without_secrets(master)
        raise InputError(wanted=_AN_ADDRESS, found=found, field="--master")
    server = _without_user(given)
    tls = RenewableTls(tls_context) if server.startswith("https://") else None
    return Connection(server, tls, credentials=_basic(given))


def _address(server: str) -> str:
    if server and "://" not in server:
        server = f"http://{server}"
    return server.rstrip("/")


def _without_user(address: str) -> str:
    """Return an address as it is called and shown: without user, password and query."""
    if not _is_usable(address):
        return without_secrets(address)
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def _is_usable(server: str) -> bool:
    """Return whether an address can be called at all."""
    try:
        parts = urlsplit(server)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        return False


def _in_pod(env: Mapping[str, str], account: Path, master: str) -> Connection:
    """Make a connection with the service account of the pod this runs in."""
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT") or "443"
    server = (
        _without_user(_address(master)) or f"https://{f'[{host}]' if ':' in host else host}:{port}"
    )
    authority = account / "ca.crt"

    def make() -> ssl.SSLContext:
        return _lenient(tls_context(str(authority)))

    try:
        tls = RenewableTls(make, [authority]) if server.startswith("https://") else None
    except OSError as error:
        raise InputError(wanted="certificates", found=str(error), file=str(authority)) from None
    try:
        namespace = read_secret(account / "namespace").decode().strip()
    except OSError:
        namespace = ""
    if tls is None:  # an address of --master; anyone on the network path would get the token
        warn_once(log, f"{server}: plain HTTP, so the token of this pod is not sent: use https://")
        return Connection(server, None, "", namespace or "default")
    credentials = TokenFile(account / "token")
    credentials.header()  # report an unreadable token now, not at the first request
    return Connection(server, tls, "", namespace or "default", credentials)


def _basic_of(user: str, password: str) -> StaticCredentials:
    pair = f"{user}:{password}".encode()
    return StaticCredentials(f"Basic {base64.b64encode(pair).decode('ascii')}")


def _basic(address: str) -> StaticCredentials:
    """Return the user and password of an address, which is shown without them."""
    parts = urlsplit(address) if _is_usable(address) else None
    if parts is None or not parts.username:
        return StaticCredentials()
    return _basic_of(unquote(parts.username), unquote(parts.password or ""))


def _credentials(
    chosen: ActiveContext, tls: RenewableTls | None, server: str, address: str
) -> Credentials:
    """Choose the Authorization header, in kubectl's order."""
    user = chosen.user
    if user.text("token"):
        return StaticCredentials(f"Bearer {user.text('token')}")
    if user.text("tokenFile"):
        found = TokenFile(user.folder / user.text("tokenFile"))
        try:
            found.header()
        except InputError as error:
            raise user.wrong("tokenFile", "a file with a token", error.found) from None
        return found
    if user.text("username"):
        return _basic_of(user.text("username"), user.text("password"))
    program = user.mapping("exec")
    if not program:
        return _basic(address)
    about = _cluster_info(chosen.cluster, server)
    login = ExecPlugin.from_kubeconfig(program, user.folder, user.file, about)

    def take(pem: bytes) -> None:
        if tls is not None:
            tls.show(pem)

    return ExecCredentials(login, take)


def _cluster_info(cluster: Section, server: str) -> dict[str, Any]:
    """Describe the cluster for a credential program, in the agreed format."""
    keys = ("tls-server-name", "insecure-skip-tls-verify")
    about = {key: cluster.content[key] for key in keys if cluster.content.get(key)}
    extensions = cluster.content.get("extensions") or []
    if not (isinstance(extensions, list) and all(isinstance(one, dict) for one in extensions)):
        wanted = "a list of mappings with name and extension"
        raise cluster.wrong("extensions", wanted, Words("something else"))
    authority = _pem(cluster, "certificate-authority")
    if authority:
        about["certificate-authority-data"] = base64.b64encode(authority).decode("ascii")
    for extension in extensions:
        if extension.get("name") == "client.authentication.k8s.io/exec":
            about["config"] = extension.get("extension")
    return {**about, "server": server}


def _tls(server: str, cluster: Section, user: Section) -> RenewableTls | None:
    """Make TLS settings; None for plain HTTP."""
    if not server.startswith("https://"):
        return None
    keys = ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key"))
    files = [
        part.folder / part.text(key)
        for part, key in keys
        if part.text(key) and not part.text(f"{key}-data")
    ]
    return RenewableTls(partial(_tls_context, server, cluster, user), files)


def _tls_context(server: str, cluster: Section, user: Section) -> ssl.SSLContext:
    insecure = cluster.flag("insecure-skip-tls-verify")
    authority = _pem(cluster, "certificate-authority")
    if insecure and authority:
        raise cluster.wrong(
            "insecure-skip-tls-verify", "false with a certificate-authority", found=True
        )
    if insecure:
        warn_once(log, f"{cluster.file}: {server}: insecure-skip-tls-verify is set")
        tls = tls_context(verify=False)
    elif authority:
        tls = _trusting(cluster, authority)
    else:
        tls = tls_context()
    _lenient(tls)
    certificate, key = _pem(user, "client-certificate"), _pem(user, "client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise user.wrong(missing, "a certificate and its key")
    if certificate:
        try:
            load_client(tls, certificate + b"\n" + key)
        except (OSError, ValueError) as error:
            raise user.wrong(
                "client-certificate", "a certificate and its key", str(error)
            ) from None
    return tls


def _lenient(tls: ssl.SSLContext) -> ssl.SSLContext:
    """Accept authorities without fields that newer Pythons require, as of many clusters."""
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls


def _trusting(cluster: Section, authority: bytes) -> ssl.SSLContext:
    try:
        return trusting(authority)
    except (OSError, ValueError) as error:
        raise cluster.wrong("certificate-authority", "PEM certificates", str(error)) from None


def _pem(part: Section, key: str) -> bytes:
    """Return the content of a field, or of the file it names; the data counts if both are given."""
    data = part.text(f"{key}-data")
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except ValueError as error:
            raise part.wrong(f"{key}-data", "base64", str(error)) from None
    file = part.text(key)
    try:
        return read_secret(part.folder / file) if file else b""
    except (OSError, ValueError) as error:  # a name with a null character, for one
        hint = str(getattr(error, "strerror", None) or error)
        raise part.wrong(key, "a file that can be read", file, hint) from None

"""Which cluster a command talks to: a kubeconfig, an address, or a running `pumice up`."""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pumice.cluster.base import Cluster
from pumice.cluster.http import tls_context
from pumice.errors import InputError, ServiceError

_NOTHING = (
    "no cluster to talk to: start one with 'pumice up', or name one with --kubeconfig, "
    "--master or KUBECONFIG"
)


@dataclass(frozen=True)
class ConnectOptions:
    """What was said about the cluster on the command line."""

    kubeconfig: str = ""
    master: str = ""


def endpoint_file(env: Mapping[str, str] = os.environ) -> Path:
    """Give the place where a running `pumice up` leaves a kubeconfig for the other commands."""
    state = env.get("XDG_STATE_HOME") or str(
        Path(env.get("HOME") or "~").expanduser() / ".local/state"
    )
    return Path(state) / "pumice" / "kubeconfig"


def connect(options: ConnectOptions, env: Mapping[str, str] = os.environ) -> Cluster:
    """Give the cluster to talk to; nothing is sent yet.

    The first that is named counts: --kubeconfig, KUBECONFIG, the endpoint of a running `pumice up`.
    --master replaces the address only.

    Raises:
        InputError: a kubeconfig that cannot be used.
        ServiceError: no cluster is named at all.
    """
    from pumice.cluster.kube_http import KubeHttpCluster  # noqa: PLC0415

    file = _kubeconfig(options, env)
    context = _read_context(file) if file else {}
    server = options.master or context.get("cluster", {}).get("server")
    if not server:
        raise ServiceError("", _NOTHING)
    if "://" not in server:
        server = f"http://{server}"
    user = context.get("user", {})
    return KubeHttpCluster(server, token=_token(user), tls=_tls(server, context))


def _kubeconfig(options: ConnectOptions, env: Mapping[str, str]) -> Path | None:
    if options.kubeconfig:
        file = Path(options.kubeconfig)
        try:
            file.stat()
        except OSError as error:
            reason = (error.strerror or "cannot be read").lower()
            raise ServiceError(str(file), f"stat {file}: {reason}") from None
        return file
    listed = [Path(name) for name in env.get("KUBECONFIG", "").split(os.pathsep) if name]
    found = next((file for file in listed if file.is_file()), None)
    if found or listed or options.master:  # named, so no other cluster is meant
        return found
    return endpoint_file(env) if endpoint_file(env).is_file() else None


def _read_context(file: Path) -> dict[str, Any]:
    """Read the chosen context of a kubeconfig: its cluster and its user."""
    import yaml  # noqa: PLC0415  (loading takes longer than most commands)

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        contexts = _by_name(content, "contexts", "context")
        chosen = contexts.get(content.get("current-context") or "") or {}
        clusters, users = (_by_name(content, f"{what}s", what) for what in ("cluster", "user"))
        cluster = clusters[chosen["cluster"]]
    except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise InputError(
            wanted="a kubeconfig with a current context", found=str(error), file=str(file)
        ) from None
    user = users.get(chosen.get("user", "")) or {}
    if "exec" in user or "auth-provider" in user:
        raise InputError(
            wanted="a token or a client certificate",
            found="a program that logs in",
            file=str(file),
            hint="make a kubeconfig with a token, for example by 'kubectl create token'",
        )
    return {"cluster": cluster, "user": user, "folder": file.resolve().parent}


def _by_name(content: Any, plural: str, singular: str) -> dict[str, Any]:
    return {item["name"]: item.get(singular) or {} for item in content.get(plural) or ()}


def _token(user: Mapping[str, Any]) -> str:
    if user.get("tokenFile") and not user.get("token"):
        try:
            return Path(user["tokenFile"]).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise InputError(wanted="a file with a token", found=str(error)) from None
    return str(user.get("token") or "")


def _tls(server: str, context: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Make the rules for TLS from what a context says; None for plain HTTP."""
    if not server.startswith("https://"):
        return None
    cluster, user = context.get("cluster", {}), context.get("user", {})
    folder = context.get("folder", Path())
    try:
        authority = _pem(cluster, "certificate-authority", folder)
        tls = tls_context(verify=not cluster.get("insecure-skip-tls-verify"))
        if authority:
            tls = ssl.create_default_context(cadata=authority.decode("ascii"))
        certificate = _pem(user, "client-certificate", folder)
        key = _pem(user, "client-key", folder)
        if certificate and key:
            _load_client(tls, certificate + b"\n" + key)
    except (OSError, ValueError, binascii.Error) as error:
        raise InputError(wanted="usable certificates in the kubeconfig", found=str(error)) from None
    return tls


def _pem(part: Mapping[str, Any], key: str, folder: Path) -> bytes:
    if part.get(f"{key}-data"):
        return base64.b64decode(part[f"{key}-data"])
    return (folder / part[key]).read_bytes() if part.get(key) else b""


def _load_client(tls: ssl.SSLContext, pem: bytes) -> None:
    """Give a context its client certificate; the library takes it from a file only."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem)
        file.flush()
        tls.load_cert_chain(file.name)

"""Makes the certificate of the admission webhooks and tells the API server to trust it.

Runs once as a Job of the image, with the standard library and ``openssl`` alone.  Running it again
changes nothing while the certificate is good.  The key of the authority is thrown away, so that it
can sign nothing else.
"""

import argparse
import base64
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVER: Final = "https://kubernetes.default.svc"
FILES: Final = ("ca.crt", "tls.crt", "tls.key")
_BIGGEST: Final = 3 * 1024 * 1024
_TIMEOUT_S: Final = 15
_SOON_S: Final = 30 * 24 * 3600
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1"

Manifest = dict[str, Any]


class NotThereError(Exception):
    """The API server has no such object."""


class Server:
    """The API server as the service account of the pod reaches it."""

    def __init__(self, address: str = SERVER, account: Path = ACCOUNT) -> None:
        self._address = address
        self._token = (account / "token").read_text(encoding="utf-8").strip()
        authority = account / "ca.crt"
        self._tls = (
            ssl.create_default_context(cafile=str(authority)) if authority.exists() else None
        )

    def ask(
        self, method: str, path: str, content: Any = None, content_type: str = "application/json"
    ) -> Manifest:
        """Send one request; gives the object answered.

        Raises:
            NotThereError: there is none.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        body = None
        if content is not None:
            body = json.dumps(content).encode()
            headers["Content-Type"] = content_type
        request = urllib.request.Request(  # noqa: S310  # the address is fixed
            self._address + path, data=body, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=_TIMEOUT_S, context=self._tls
            ) as answer:
                found: Manifest = json.loads(answer.read(_BIGGEST))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise NotThereError(path) from error
            said = error.read(2000).decode("utf-8", "replace")
            raise SystemExit(
                f"{method} {path}: the API server said {error.code}: {said}"
            ) from error
        return found


def _openssl(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603
        ["openssl", *map(str, arguments)],  # noqa: S607
        check=False,
        capture_output=True,
    )


def _must(*arguments: str | Path) -> None:
    done = _openssl(*arguments)
    if done.returncode:
        raise SystemExit(f"openssl {arguments[0]} failed: {done.stderr.decode().strip()}")


def hosts(service: str, namespace: str) -> list[str]:
    """Give the names the API server may call the service by."""
    return [service, f"{service}.{namespace}", f"{service}.{namespace}.svc"]


def make(names: Sequence[str], days: int) -> dict[str, bytes]:
    """Make an authority, and a certificate for these names signed by it."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        settings = (
            "[req]\ndistinguished_name=name\nprompt=no\n"
            f"[name]\nCN={names[-1]}\n"
            "[authority]\nbasicConstraints=critical,CA:TRUE,pathlen:0\n"
            "keyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n"
            "[server]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
            "extendedKeyUsage=serverAuth\n"
            f"subjectAltName={','.join(f'DNS:{name}' for name in names)}\n"
        )
        (here / "settings").write_text(settings, encoding="utf-8")
        setup = ("-config", here / "settings")
        age = ("-days", str(days), "-sha256")
        authority = (
            "-keyout",
            here / "ca.key",
            "-out",
            here / "ca.crt",
            "-extensions",
            "authority",
        )
        _must("req", "-x509", *key, *setup, *age, *authority)
        _must("req", "-new", *key, *setup, "-keyout", here / "tls.key", "-out", here / "request")
        signed = ("-in", here / "request", "-out", here / "tls.crt", *age)
        signer = ("-CA", here / "ca.crt", "-CAkey", here / "ca.key", "-CAcreateserial")
        _must(
            "x509", "-req", *signed, *signer, "-extfile", here / "settings", "-extensions", "server"
        )
        return {name: (here / name).read_bytes() for name in FILES}


def good(files: Mapping[str, bytes], host: str) -> bool:
    """Say whether a certificate is whole, for this host, and valid for a month to come."""
    if not all(files.get(name) for name in FILES):
        return False
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name in FILES:
            (here / name).write_bytes(files[name])
        trusted = ("-CAfile", here / "ca.crt", "-verify_hostname", host, here / "tls.crt")
        lasting = ("-checkend", str(_SOON_S), "-noout", "-in", here / "tls.crt")
        fits = False
        with contextlib.suppress(ssl.SSLError):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(here / "tls.crt", here / "tls.key")
            fits = True
        return (
            fits
            and _openssl("verify", *trusted).returncode == 0
            and _openssl("x509", *lasting).returncode == 0
        )


def ensure_secret(server: Server, namespace: str, name: str, service: str, days: int) -> bytes:
    """See to it that the Secret holds a good certificate; gives that of its authority."""
    names = hosts(service, namespace)
    place = f"/api/v1/namespaces/{namespace}/secrets"
    try:
        secret: Manifest | None = server.ask("GET", f"{place}/{name}")
    except NotThereError:
        secret = None
    data = (secret or {}).get("data") or {}
    known = {file: base64.b64decode(text) for file, text in data.items()}
    if good(known, names[-1]):
        sys.stdout.write(f"kept the certificate in {namespace}/{name}\n")
        return known["ca.crt"]
    made = make(names, days)
    written = {file: base64.b64encode(content).decode() for file, content in made.items()}
    if secret is None:
        head = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        metadata = {"name": name, "namespace": namespace}
        server.ask("POST", place, {**head, "metadata": metadata, "data": written})
    else:
        server.ask("PUT", f"{place}/{name}", {**secret, "data": {**data, **written}})
    sys.stdout.write(f"wrote a new certificate into {namespace}/{name}\n")
    return made["ca.crt"]


def trust(server: Server, kind: str, name: str, authority: bytes) -> None:
    """Write the authority into every webhook of a configuration, if there is such a one."""
    path = f"{_WEBHOOKS}/{kind}/{name}"
    try:
        webhooks = server.ask("GET", path).get("webhooks") or []
    except NotThereError:
        sys.stdout.write(f"there is no {kind}/{name}\n")
        return
    bundle = base64.b64encode(authority).decode()
    steps = [
        {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": bundle}
        for at, webhook in enumerate(webhooks)
        if webhook["clientConfig"].get("caBundle") != bundle
    ]
    if steps:
        server.ask("PATCH", path, steps, "application/json-patch+json")
        sys.stdout.write(f"{kind}/{name} trusts it\n")


def main(arguments: Sequence[str] | None = None, server: Server | None = None) -> None:
    """Read the arguments and do it all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--namespace", required=True, help="where service and secret are")
    parser.add_argument("--service", required=True, help="the service of the webhooks")
    parser.add_argument("--secret", required=True, help="where the certificate goes")
    parser.add_argument("--days", type=int, default=3650, help="how long it is valid")
    parser.add_argument("--mutating", action="append", default=[], help="a configuration")
    parser.add_argument("--validating", action="append", default=[], help="a configuration")
    told = parser.parse_args(arguments)
    server = server or Server()
    authority = ensure_secret(server, told.namespace, told.secret, told.service, told.days)
    for name in told.mutating:
        trust(server, "mutatingwebhookconfigurations", name, authority)
    for name in told.validating:
        trust(server, "validatingwebhookconfigurations", name, authority)


if __name__ == "__main__":
    main()

"""Makes the certificate of the admission webhooks and registers it with the API server.

Runs once as a Job of the image.  Running it again changes nothing while the certificate is good.
The key of the authority is discarded, so that it can sign nothing else.
"""

import argparse
import base64
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVER: Final = "https://kubernetes.default.svc"
FILES: Final = ("ca.crt", "tls.crt", "tls.key")
_BIGGEST: Final = 3 * 1024 * 1024
_TIMEOUT_S: Final = 15
_SOON: Final = timedelta(days=30)
_SKEW: Final = timedelta(minutes=5)
"""How far clocks of other machines may lag behind."""
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
        """Send one request; return the answer.

        Raises:
            NotThereError: it does not exist.
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


def hosts(service: str, namespace: str) -> list[str]:
    """Return the names by which the API server may call the service."""
    return [service, f"{service}.{namespace}", f"{service}.{namespace}.svc"]


def make(names: Sequence[str], days: int) -> dict[str, bytes]:
    """Make an authority, and a certificate for these names signed by it."""
    authority_key, server_key = new_key(), new_key()
    authority = issue(common_name("pumice-admission"), authority_key, days=days)
    hosts = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    signer = (authority, authority_key)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    server = issue(
        common_name(names[-1]), server_key, days=days, signer=signer, extensions=(usage, hosts)
    )
    files = (certificate_pem(authority), certificate_pem(server), key_pem(server_key))
    return dict(zip(FILES, files, strict=True))


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a key on the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def common_name(name: str, groups: Sequence[str] = ()) -> x509.Name:
    """Return the subject of a certificate: a name, and groups of a Kubernetes user."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def issue(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    days: int,
    signer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None,
    extensions: Sequence[x509.ExtensionType] = (),
) -> x509.Certificate:
    """Sign a certificate; without a signer it is an authority that signs itself."""
    now = datetime.now(UTC)
    signs = signer is None
    issuer, signing_key = (subject, key) if signer is None else (signer[0].subject, signer[1])
    builder = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(signs, 0 if signs else None), critical=True)
        .add_extension(_usage(signs=signs), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(signing_key, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """Return a certificate as a file holds it."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as a file holds it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def good(files: Mapping[str, bytes], host: str) -> bool:
    """Return whether a certificate is whole, for this host, and valid for a month to come."""
    if not all(files.get(name) for name in FILES):
        return False
    try:
        authorities = x509.load_pem_x509_certificates(files["ca.crt"])
        server = x509.load_pem_x509_certificate(files["tls.crt"])
        key = serialization.load_pem_private_key(files["tls.key"], None)
        fits = key.public_key() == server.public_key()
        return fits and _names(server, host) and any(_signed(server, one) for one in authorities)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def _names(server: x509.Certificate, host: str) -> bool:
    try:
        names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    wildcard = f"*.{host.partition('.')[2]}"
    return not {host, wildcard}.isdisjoint(names.get_values_for_type(x509.DNSName))


def _signed(server: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return whether an authority signed a certificate, and both are valid for a month to come."""
    now = datetime.now(UTC)
    try:
        server.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return all(
        one.not_valid_before_utc <= now and one.not_valid_after_utc > now + _SOON
        for one in (server, authority)
    )


def ensure_secret(server: Server, namespace: str, name: str, service: str, days: int) -> bytes:
    """Ensure that the Secret holds a good certificate; return that of its authority."""
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
    """Write the authority into every webhook of a configuration, if it exists."""
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
    given = parser.parse_args(arguments)
    server = server or Server()
    authority = ensure_secret(server, given.namespace, given.secret, given.service, given.days)
    for name in given.mutating:
        trust(server, "mutatingwebhookconfigurations", name, authority)
    for name in given.validating:
        trust(server, "validatingwebhookconfigurations", name, authority)


if __name__ == "__main__":
    main()

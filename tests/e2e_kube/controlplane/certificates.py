"""Keys and certificates of one control plane: an authority, servers, clients."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID

from deploy.certificates import certificate_pem, common_name, issue, key_pem, new_key

_DAYS: Final = 30


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; everything it makes is in one directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, mode=0o700)
        self._directory = directory
        key = new_key()
        self._signer = issue(common_name("pumice-e2e"), key, days=_DAYS), key
        self.own = self._write("ca", *self._signer)

    def server(self, name: str, hosts: tuple[str, ...] = ("127.0.0.1", "localhost")) -> Pair:
        """Make a certificate for a server that is called by these host names."""
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._sign(name, common_name(name), usage, names)

    def client(self, file_name: str, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """Make a certificate with which a client is that user, in those groups."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._sign(file_name, common_name(user, groups), usage)

    def expired_client(self, file_name: str, user: str) -> Pair:
        """Make a certificate whose time is over."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._sign(file_name, common_name(user), usage, days=0)

    def key_pair(self, name: str) -> Pair:
        """Make a bare key; the public half takes the certificate's place."""
        pair = Pair(self._directory / f"{name}.pub", self._directory / f"{name}.key")
        key = new_key()
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        pair.key.write_bytes(key_pem(key))
        pair.certificate.write_bytes(public)
        return pair

    def _sign(
        self, name: str, subject: x509.Name, *extensions: x509.ExtensionType, days: int = _DAYS
    ) -> Pair:
        key = new_key()
        signed = issue(subject, key, days=days, signer=self._signer, extensions=extensions)
        return self._write(name, signed, key)

    def _write(
        self, name: str, certificate: x509.Certificate, key: EllipticCurvePrivateKey
    ) -> Pair:
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        pair.certificate.write_bytes(certificate_pem(certificate))
        pair.key.write_bytes(key_pem(key))
        return pair


def _host(host: str) -> x509.GeneralName:
    is_address = re.fullmatch(r"[0-9.]+", host)
    return x509.IPAddress(ipaddress.ip_address(host)) if is_address else x509.DNSName(host)

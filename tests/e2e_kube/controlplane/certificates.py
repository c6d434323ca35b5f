"""Keys and certificates of one control plane, made with openssl: an authority, servers, clients."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e_kube.controlplane.build import MissingToolError

_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_DAYS: Final = ("-days", "30")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; everything it makes is in one directory."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("openssl") is None:
            raise MissingToolError("no openssl on the PATH to make certificates with: install it")
        directory.mkdir(parents=True, mode=0o700)
        self._directory = directory
        self._serial = 0
        self.own = Pair(directory / "ca.crt", directory / "ca.key")
        self._openssl(
            *("req", "-x509", *_NEW_KEY, *_DAYS, "-subj", "/CN=pumice-e2e"),
            *("-keyout", self.own.key, "-out", self.own.certificate),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"),
        )

    def server(self, name: str, hosts: tuple[str, ...] = ("127.0.0.1", "localhost")) -> Pair:
        """Make a certificate for a server that is called by these host names."""
        kinds = [("IP:" if re.fullmatch(r"[0-9.]+", host) else "DNS:") + host for host in hosts]
        return self._sign(
            name, f"/CN={name}", f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(kinds)}\n"
        )

    def client(self, file_name: str, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """Make a certificate with which a client is that user, in those groups."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._sign(file_name, subject, "extendedKeyUsage=clientAuth\n")

    def key_pair(self, name: str) -> Pair:
        """Make a bare key; the public half stands where the certificate would."""
        pair = Pair(self._directory / f"{name}.pub", self._directory / f"{name}.key")
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", pair.key)
        self._openssl("ec", "-in", pair.key, "-pubout", "-out", pair.certificate)
        return pair

    def _sign(self, name: str, subject: str, extensions: str) -> Pair:
        self._serial += 1
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        request, wanted = (self._directory / f"{name}.{end}" for end in ("csr", "ext"))
        wanted.write_text(f"basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n{extensions}")
        self._openssl(*("req", *_NEW_KEY, "-keyout", pair.key, "-out", request, "-subj", subject))
        self._openssl(
            *("x509", "-req", "-in", request, "-out", pair.certificate, *_DAYS),
            *("-CA", self.own.certificate, "-CAkey", self.own.key),
            *("-set_serial", self._serial, "-extfile", wanted),
        )
        return pair

    def _openssl(self, *arguments: str | Path | int) -> None:
        command = ["openssl", *(str(argument) for argument in arguments)]
        done = subprocess.run(  # noqa: S603  # a fixed program
            command, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")

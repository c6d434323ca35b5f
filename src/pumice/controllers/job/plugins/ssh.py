"""ssh: the pods of a job may log into each other without a password."""

import base64
from collections.abc import Sequence
from typing import ClassVar, Final

from pumice.api.kinds import Manifest
from pumice.controllers.job.names import hosts
from pumice.controllers.job.plugins.base import JobPlugin, KeyMaker, Owned, flags, made_for, mount

_HOME: Final = "/root/.ssh"
_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
_HIGHEST_PORT: Final = 65535
_KEY_BITS: Final = 2048


def new_key_pair() -> tuple[str, str]:
    """Make an RSA key: the private half as PEM (PKCS #1), the public half for authorized_keys."""
    # Few jobs want keys: the library is loaded for the first that does.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), f"{public.decode()}\n"


class Ssh(JobPlugin):
    """A key pair in a Secret, mounted into every container."""

    name: ClassVar[str] = "ssh"

    def __init__(self, arguments: Sequence[str], keys: KeyMaker) -> None:
        """Read where the keys go, and keys that were given."""
        super().__init__(arguments, keys)
        defaults = {
            "ssh-key-file-path": _HOME,
            "ssh-private-key": "",
            "ssh-public-key": "",
            "ssh-port": 22,
        }
        self.flags = flags(arguments, defaults)
        self.keys = keys

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Mount the keys; elsewhere than at root's home they must be readable by others."""
        path = self.flags["ssh-key-file-path"]
        secret = {
            "secretName": _secret_name(job),
            "items": [{"key": name, "path": f".ssh/{name}"} for name in _FILES],
            "defaultMode": 0o600 if path == _HOME else 0o644,
        }
        volume = {"name": _secret_name(job), "secret": secret}
        mount(pod, volume, path, subPath=".ssh")

    def objects(self, job: Manifest) -> list[Owned]:
        """List the Secret."""
        return [Owned("Secret", _secret_name(job), lambda: self._secret(job))]

    def _secret(self, job: Manifest) -> Manifest:
        """Write the Secret, with new keys unless the job has its own."""
        private, public = self.flags["ssh-private-key"], self.flags["ssh-public-key"]
        if not private:
            private, public = self.keys()
        texts = (private, public, public, self._config(job))
        data = {
            name: base64.b64encode(text.encode()).decode()
            for name, text in zip(_FILES, texts, strict=True)
        }
        return made_for(job, "v1", "Secret", _secret_name(job), data=data, type="Opaque")

    def _config(self, job: Manifest) -> str:
        """Write the ssh client's configuration: one entry for each host."""
        port = self.flags["ssh-port"]
        port = port if 0 < port <= _HIGHEST_PORT else 22
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job["spec"].get("tasks") or []:
            for host, domain in hosts(job, task):
                lines += [f"Host {host}", f"  HostName {host}.{domain}", f"  Port {port}"]
        return "\n".join(lines) + "\n"


def _secret_name(job: Manifest) -> str:
    """Name the Secret, which is also the name of its volume."""
    return f"{job['metadata']['name']}-ssh"

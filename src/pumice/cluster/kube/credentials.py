"""Credentials for an API server: a fixed header, a token file, a credential program.

Used by connections, from any thread.  Secrets appear in no message and no log.
"""

import errno
import json
import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from pumice.api.text_files import MOST_SECRET_BYTES, read_secret
from pumice.api.times import lenient_epoch
from pumice.clock import wall_time
from pumice.errors import InputError, ServiceError

log = logging.getLogger(__name__)

_REREAD_S: Final = 60.0
_MARGIN_S: Final = 10.0
_LOGIN_S: Final = 60.0
_PIECE: Final = 1 << 16
_SHOWN: Final = 400
"""Bytes of the complaint of a program."""
_API_VERSIONS: Final = tuple(
    f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1")
)


class Credentials(Protocol):
    """The source of the Authorization header."""

    def fresh(self) -> bool:
        """Return whether ``header`` returns at once."""

    def header(self) -> str:
        """Return the header, or nothing; reads a file or logs in where needed."""

    def refused(self) -> None:
        """Record that the server did not accept it."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """A fixed header; none for anonymous and for client certificates."""

    words: str = field(default="", repr=False)

    def fresh(self) -> bool:
        """Return True: there is nothing to wait for."""
        return True

    def header(self) -> str:
        """Return it."""
        return self.words

    def refused(self) -> None:
        """Do nothing: there is no other header."""


class TokenFile:
    """A token in a file that another program renews; read again every minute."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._words = ""
        self._until = 0.0
        self._lock = threading.Lock()

    def fresh(self) -> bool:
        """Return whether the token was read less than a minute ago."""
        return bool(self._words) and self._clock() < self._until

    def header(self) -> str:
        """Return the token; the one before if the file cannot be read just now.

        Raises:
            InputError: the file cannot be read and never could.
        """
        with self._lock:
            if not self.fresh():
                self._read()
            return self._words

    def refused(self) -> None:
        """Read again the next time."""
        self._until = 0.0

    def _read(self) -> None:
        try:
            token = read_secret(self._file).decode().strip()
        except (OSError, ValueError) as error:
            token, found = "", str(error)
        else:
            found = "an empty file"
        if token:
            self._words = f"Bearer {token}"
        elif self._words:
            log.warning("%s: %s; the token read before is used", self._file, found)
        else:
            raise InputError(wanted="a token", found=found, field="tokenFile", file=str(self._file))
        self._until = self._clock() + _REREAD_S


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A credential program, as a kubeconfig names it under ``users[].user.exec``."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = _API_VERSIONS[0]
    hint: str = ""
    cluster: Mapping[str, Any] | None = None
    """The description of the cluster for it, if it asks for one."""
    place: str = field(default="", compare=False)
    """Where it is named, for messages."""

    @classmethod
    def from_kubeconfig(
        cls, content: Mapping[str, Any], folder: Path, file: str, cluster: Mapping[str, Any]
    ) -> "ExecPlugin":
        """Read the description of a program.

        Raises:
            InputError: it cannot be run from here.
        """
        place = "users[].user.exec"
        command = content.get("command")
        if not isinstance(command, str) or not command:
            raise InputError(wanted="a program", found=command, field=f"{place}.command", file=file)
        version = content.get("apiVersion")
        if version not in _API_VERSIONS:
            wanted = " or ".join(_API_VERSIONS)
            raise InputError(wanted=wanted, found=version, field=f"{place}.apiVersion", file=file)
        if content.get("interactiveMode") == "Always":
            raise InputError(
                wanted="a program that needs no input",
                found="Always",
                field=f"{place}.interactiveMode",
                file=file,
            )
        if "/" in command:
            command = str(folder / command)
        args, env = content.get("args") or [], content.get("env") or []
        if not isinstance(args, list):
            raise InputError(wanted="a list", found=args, field=f"{place}.args", file=file)
        pairs = env if isinstance(env, list) else [env]
        if not all(isinstance(pair, dict) and {"name", "value"} <= pair.keys() for pair in pairs):
            wanted = "a list of mappings with name and value"
            raise InputError(wanted=wanted, found=env, field=f"{place}.env", file=file)
        return cls(
            command,
            tuple(map(str, args)),
            {str(pair["name"]): str(pair["value"]) for pair in pairs},
            str(version),
            str(content.get("installHint") or ""),
            cluster if content.get("provideClusterInfo") else None,
            f"{file}: {place}.command: ",
        )


class ExecCredentials:
    """Credentials from a program, kept until they expire or are refused."""

    def __init__(
        self,
        login: ExecPlugin,
        take_certificate: Callable[[bytes], None],
        *,
        wall: Callable[[], float] = wall_time,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._login = login
        self._take_certificate = take_certificate
        self._wall = wall
        self._environment = environment
        self._words: str | None = None
        self._until: float | None = None
        self._lock = threading.Lock()

    def fresh(self) -> bool:
        """Return whether the credentials are valid for a while yet."""
        if self._words is None:
            return False
        return self._until is None or self._wall() < self._until - _MARGIN_S

    def header(self) -> str:
        """Return the header; logs in if none is valid.

        Raises:
            ServiceError: the program failed, or printed no credential.
        """
        with self._lock:
            if not self.fresh():
                self._take(self._run())
            return self._words or ""

    def refused(self) -> None:
        """Log in again the next time."""
        self._words = None

    def _run(self) -> Any:
        login = self._login
        spec: dict[str, Any] = {"interactive": False}
        if login.cluster is not None:
            spec["cluster"] = login.cluster
        info = {"apiVersion": login.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**self._environment, **login.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            code, printed, complaint = _outcome([login.command, *login.args], environment)
        except (OSError, ValueError) as error:
            late = isinstance(error, TimeoutError)
            found = getattr(error, "strerror", None) or str(error)
            unusable = f"expected a program that can be run, got '{login.command}' ({found})"
            problem = found if late else f"{login.place}{unusable}"
            hint = f" ({login.hint.strip()})" if login.hint else ""
            raise ServiceError(login.command, f"cannot log in: {problem}{hint}") from None
        if code != 0:
            output = complaint.decode("utf-8", "replace").strip()
            raise ServiceError(login.command, f"cannot log in: it ended with {code}: {output}")
        try:
            return json.loads(printed)
        except (ValueError, RecursionError):
            raise ServiceError(login.command, "cannot log in: it printed no JSON") from None

    def _take(self, output: Any) -> None:
        """Keep the output of a program."""
        wanted = {"apiVersion": self._login.api_version, "kind": "ExecCredential"}
        status = output.get("status") if isinstance(output, dict) else None
        if not isinstance(status, dict) or any(output.get(k) != v for k, v in wanted.items()):
            problem = f"expected an ExecCredential of {self._login.api_version} with a status"
            raise ServiceError(self._login.command, f"cannot log in: {problem}")
        token = status.get("token") or ""
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise ServiceError(
                self._login.command, "cannot log in: expected a token or a certificate and its key"
            )
        until = self._expiry(status.get("expirationTimestamp"))
        if certificate and key:
            self._show(str(certificate), str(key))
            until = until or _not_after(str(certificate))
        self._until = until
        self._words = f"Bearer {token}" if token else ""

    def _show(self, certificate: str, key: str) -> None:
        try:
            self._take_certificate(f"{certificate}\n{key}\n".encode())
        except (OSError, ValueError) as error:
            problem = f"cannot log in: expected a certificate and its key: {error}"
            raise ServiceError(self._login.command, problem) from None

    def _expiry(self, text: Any) -> float | None:
        if not text:
            return None
        try:
            return lenient_epoch(str(text))
        except ValueError:
            log.warning("%s: an expiry that is not a time", self._login.command)
            return None


def _outcome(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    """Run a program; return its exit code, its output and the end of its complaint.

    Raises:
        OSError, ValueError: it cannot be run.
        TimeoutError: it did not end in time, or printed too much.
    """
    with subprocess.Popen(  # noqa: S603  # the kubeconfig's owner chose the program
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group of its own, to end what it has started with it
    ) as process:
        try:
            printed, complaint = _read_all(process, time.monotonic() + _LOGIN_S)
            return process.returncode, printed, complaint
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _read_all(process: subprocess.Popen[bytes], until: float) -> tuple[bytes, bytes]:
    """Return what a program prints until it ends; of its complaint the end."""
    output, complaint = (
        cast("IO[bytes]", pipe).fileno() for pipe in (process.stdout, process.stderr)
    )
    kept, printed = {output: b"", complaint: b""}, 0
    with selectors.DefaultSelector() as selector:
        for pipe in kept:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(until - time.monotonic(), 0.0))
            if not ready or time.monotonic() > until:  # it may complain for ever
                raise TimeoutError(errno.ETIMEDOUT, "it did not end in time")
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fd)
                kept[key.fd] += piece
                printed += len(piece)
            kept[complaint] = kept[complaint][-_SHOWN:]
            if printed > MOST_SECRET_BYTES:
                raise TimeoutError(
                    errno.EFBIG, f"it printed more than {MOST_SECRET_BYTES >> 20} MiB"
                )
    try:
        process.wait(max(until - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, "it did not end in time") from None
    return kept[output], kept[complaint]


def _not_after(certificate: str) -> float | None:
    """Return until when a certificate is valid; a server refuses a later connection silently."""
    from cryptography import x509  # noqa: PLC0415  (large, and few need it)

    try:
        return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc.timestamp()
    except ValueError:
        return None

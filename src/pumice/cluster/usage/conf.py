"""The section ``metrics`` of the scheduler configuration: from its texts to a source.

Keys and defaults are Volcano's where it has them.  All mistakes are told at once.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from pumice.api.duration import parse_duration
from pumice.api.wording import nearest
from pumice.cluster.http.client import tls_context
from pumice.cluster.usage.endpoint import TIMEOUT, TOKEN, Endpoint
from pumice.cluster.usage.metrics_server import MetricsServerUsage
from pumice.cluster.usage.prometheus import PERIOD as AVERAGED
from pumice.cluster.usage.prometheus import PrometheusUsage
from pumice.cluster.usage.source import PERIOD, StaticUsage, UsageSource
from pumice.errors import ABSENT, ConfError, InputError, Problem

Key = Literal[
    "type",
    "address",
    "interval",
    "timeout",
    "period",
    "token",
    "tokenFile",
    "tls.caFile",
    "tls.insecureSkipVerify",
]

_TYPES: Final = ("prometheus", "metrics-server")
_DAY: Final = 86400.0

_IN_POD: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_API_SERVER: Final = {
    "address": "https://kubernetes.default.svc",
    "tokenFile": f"{_IN_POD}/token",
    "tls.caFile": f"{_IN_POD}/ca.crt",
}
"""Where a pod finds the API server; used if no address is given."""


def usage_source(metrics: Mapping[str, str]) -> UsageSource:
    """Make the source that the section asks for; one that knows nothing if it names no type.

    Raises:
        ConfError: with every problem of the section.
    """
    section = _Section(metrics)
    section.check_keys()
    kind = section.kind()
    section.seconds("interval", PERIOD)
    period_s = section.seconds("period", AVERAGED, least=30.0)
    if kind == "metrics-server" and not section.text("address"):
        section.defaults = _API_SERVER
    endpoint = section.endpoint() if kind else None
    if section.problems:
        raise ConfError(section.problems)
    if endpoint is None:
        return StaticUsage()
    if kind == "metrics-server":
        return MetricsServerUsage(endpoint)
    return PrometheusUsage(endpoint, period_s=period_s)


def refresh_period(metrics: Mapping[str, str]) -> float:
    """Give the seconds between two readings.

    Raises:
        ConfError: the interval is no duration.
    """
    section = _Section(metrics)
    seconds = section.seconds("interval", PERIOD)
    if section.problems:
        raise ConfError(section.problems)
    return seconds


@dataclass(slots=True)
class _Section:
    """The section while it is read; a value that cannot be used becomes a problem."""

    metrics: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def note(self, key: str, wanted: str, found: object, hint: str = "") -> None:
        self.problems.append(Problem(wanted=wanted, found=found, field=f"metrics.{key}", hint=hint))

    def text(self, key: Key) -> str:
        return str(self.metrics.get(key) or self.defaults.get(key) or "")

    def check_keys(self) -> None:
        """Refuse keys that nothing reads; those of a source left behind do no harm."""
        known = get_args(Key)
        for key in self.metrics:
            if key not in known and not key.startswith("elasticsearch."):
                meant = nearest(key, known)
                hint = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
                self.problems.append(
                    Problem(wanted="a known key", found=key, field="metrics", hint=hint)
                )

    def kind(self) -> str:
        kind = self.text("type")
        one_of = " or ".join(_TYPES)
        if kind and kind not in _TYPES:
            meant = nearest(kind, _TYPES)
            self.note("type", one_of, kind, f"did you mean {meant}?" if meant else "")
            return ""
        if not kind and self.text("address"):
            self.note("type", one_of, ABSENT, "without a type the address is not used")
        return kind

    def seconds(self, key: Key, default: float, least: float = 0.001) -> float:
        text = self.text(key)
        if not text:
            return default
        try:
            seconds = parse_duration(text)
        except InputError:
            seconds = 0.0  # below the least, so told like one
        if least <= seconds <= _DAY:
            return seconds
        self.note(key, f"a duration from {least:g}s to 24h", text, "such as 30s or 1m30s")
        return default

    def endpoint(self) -> Endpoint | None:
        """Make the way to the service, None after a problem."""
        address = self._address()
        token, token_file = self._token()
        tls = self._tls()
        timeout_s = self.seconds("timeout", TIMEOUT)
        if self.problems:
            return None
        return Endpoint(
            address, token=token, token_file=token_file or None, tls=tls, timeout_s=timeout_s
        )

    def _address(self) -> str:
        text = self.text("address")
        wanted = "an address such as http://prometheus.monitoring:9090"
        if "@" in text:  # the text may hold a password
            hint = "give a token or a tokenFile: addresses are shown in logs"
            self.note("address", "an address without a user", "one with a user", hint)
            return ""
        try:
            parts = urlsplit(text)
            port_is_right = parts.port != 0
        except ValueError:
            self.note("address", wanted, text)
            return ""
        whole = parts.scheme in ("http", "https") and parts.hostname and port_is_right
        if not whole or parts.query or parts.fragment or not re.fullmatch(r"[!-~]+", text):
            self.note("address", wanted, text or ABSENT, _address_hint(text))
        return text.rstrip("/")

    def _token(self) -> tuple[str, str]:
        token = self.text("token")
        token_file = self.metrics.get("tokenFile") or ("" if token else self.text("tokenFile"))
        if token and token_file:
            self.note("token", "either token or tokenFile", "both")
        elif token and not TOKEN.fullmatch(token):
            self.note("token", "one token, in ASCII", "something else", "it is not shown here")
        return token, token_file

    def _tls(self) -> ssl.SSLContext | None:
        skip = self.text("tls.insecureSkipVerify").lower()
        if skip not in ("", "true", "false"):
            self.note("tls.insecureSkipVerify", "true or false", skip)
            return None
        file = self.text("tls.caFile")
        if not file and not skip and not self.text("address").startswith("https:"):
            return None
        try:
            return tls_context(file or None, verify=skip != "true")
        except OSError as error:
            hint = "outside a pod, give an address" if self.defaults else ""
            reason = error.strerror or str(error)
            self.note("tls.caFile", "a file with certificates", file, hint or reason)
            return None


def _address_hint(text: str) -> str:
    if text and "://" not in text:
        return "begin it with http:// or https://"
    return ""

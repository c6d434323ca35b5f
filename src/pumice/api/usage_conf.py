"""The section ``metrics`` of the scheduler configuration: the source of measured node usage.

Keys and defaults are Volcano's where it has them.  All mistakes are reported at once.  Read by the
check of a configuration and by the maker of the source; files that it names are not read here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from pumice.api.conf_lines import Problem, Severity
from pumice.api.duration import parse_duration
from pumice.api.shown_text import without_secrets
from pumice.api.wording import nearest
from pumice.errors import ABSENT, ConfError, InputError, Words

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
    "elasticsearch.index",
    "elasticsearch.username",
    "elasticsearch.password",
    "elasticsearch.hostnameFieldName",
]
SourceType = Literal["", "prometheus", "prometheus_adaptor", "elasticsearch", "metrics-server"]

_TYPES: Final = get_args(SourceType)[1:]
_ALIASES: Final = {"prometheus_adapt": "prometheus_adaptor"}
"""Volcano's documentation has both spellings."""
_OF_API_SERVER: Final = frozenset({"prometheus_adaptor", "metrics-server"})
"""Sources behind an API server; without an address it is the scheduler's own."""
_DAY: Final = 86400.0
_TOKEN: Final = re.compile(r"[!-~]{1,16384}")


@dataclass(frozen=True, slots=True)
class UsageConf:
    """The section as values; without a source nothing is measured."""

    source: SourceType = ""
    address: str = ""
    interval_s: float = 30.0
    """Seconds between two readings."""
    timeout_s: float = 30.0
    """Seconds for all calls of one reading together."""
    period_s: float = 600.0
    """Seconds over which load is averaged."""
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    verify: bool = True
    index: str = "metricbeat-*"
    host_field: str = "host.hostname"


_DEFAULTS: Final = UsageConf()


def is_token(text: str) -> bool:
    """Return whether a text can be a token in a header."""
    return _TOKEN.fullmatch(text) is not None


def usage_conf(metrics: Mapping[str, str]) -> UsageConf:
    """Read the section.

    Raises:
        ConfError: with every problem of the section.
    """
    found, problems = read_usage_conf(metrics)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise ConfError(errors)
    return found


def read_usage_conf(
    metrics: Mapping[str, str], lines: Mapping[str, int] | None = None
) -> tuple[UsageConf, list[Problem]]:
    """Read the section and list its problems; ``lines`` are those of its keys."""
    section = _Section(metrics, lines or {})
    return section.read(), section.problems


class _Section(msgspec.Struct):
    """The section while it is read; a value that cannot be used becomes a problem."""

    metrics: Mapping[str, str]
    lines: Mapping[str, int]
    problems: list[Problem] = msgspec.field(default_factory=list)

    def read(self) -> UsageConf:
        self._check_keys()
        source = self._source()
        token, token_file = self._token() if source else ("", "")
        return UsageConf(
            source=source,
            address=self._address(source),
            interval_s=self._seconds("interval", _DEFAULTS.interval_s),
            timeout_s=self._seconds("timeout", _DEFAULTS.timeout_s),
            period_s=self._seconds("period", _DEFAULTS.period_s, least=30.0),
            token=token,
            token_file=token_file,
            username=self._text("elasticsearch.username"),
            password=self._text("elasticsearch.password"),
            ca_file=self._text("tls.caFile"),
            verify=self._verifies(),
            index=self._name("elasticsearch.index", _DEFAULTS.index),
            host_field=self._name("elasticsearch.hostnameFieldName", _DEFAULTS.host_field),
        )

    def _note(
        self, key: str, wanted: str, found: object, hint: str = "", severity: Severity = "error"
    ) -> None:
        where = f"metrics.{key}" if key else "metrics"
        line = self.lines.get(key or str(found), self.lines.get("", 0))
        self.problems.append(
            Problem(
                line=line, field=where, wanted=wanted, found=found, hint=hint, severity=severity
            )
        )

    def _text(self, key: Key) -> str:
        return str(self.metrics.get(key) or "")

    def _check_keys(self) -> None:
        """Report keys that nothing reads."""
        known = get_args(Key)
        for key in self.metrics:
            if key not in known:
                meant = nearest(key, known)
                hint = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
                self._note("", "a known key", key, hint)

    def _source(self) -> SourceType:
        text = self._text("type")
        text = _ALIASES.get(text, text)
        for source in _TYPES:
            if text == source:
                return source
        one_of = f"{', '.join(_TYPES[:-1])} or {_TYPES[-1]}"
        if text:
            meant = nearest(text, _TYPES)
            self._note("type", one_of, text, f"did you mean {meant}?" if meant else "")
        elif self._text("address"):
            self._note("type", one_of, ABSENT, "without a type the address is not used")
        return ""

    def _seconds(self, key: Key, default: float, least: float = 0.001) -> float:
        text = self._text(key)
        if not text:
            return default
        try:
            seconds = parse_duration(text)
        except InputError:
            seconds = 0.0  # below the least, so reported like one
        if least <= seconds <= _DAY:
            return seconds
        self._note(key, f"a duration from {least:g}s to 24h", text, "such as 30s or 1m30s")
        return default

    def _address(self, source: SourceType) -> str:
        text = self._text("address")
        if not source or (source in _OF_API_SERVER and not text):
            return ""
        wanted = "an address such as http://prometheus.monitoring:9090"
        if "@" in text:  # the text may hold a password
            hint = "give a token or a tokenFile: addresses are shown in logs"
            self._note("address", "an address without a user", "one with a user", hint)
            return ""
        try:
            parts = urlsplit(text)
            port_is_right = parts.port != 0
        except ValueError:
            self._note("address", wanted, without_secrets(text))
            return ""
        whole = parts.scheme in ("http", "https") and parts.hostname and port_is_right
        if not whole or parts.query or parts.fragment or not re.fullmatch(r"[!-~]+", text):
            hint = "begin it with http:// or https://" if text and "://" not in text else ""
            self._note("address", wanted, without_secrets(text) or ABSENT, hint)
        return text.rstrip("/")

    def _token(self) -> tuple[str, str]:
        token, token_file = self._text("token"), self._text("tokenFile")
        if token and token_file:
            self._note("token", "either token or tokenFile", Words("both"))
        elif token and not is_token(token):
            hidden = Words("something else")
            self._note("token", "one token, in ASCII", hidden, "it is not shown here")
        elif (token or token_file) and self._text("elasticsearch.username"):
            self._note("elasticsearch.username", "either a user or a token", Words("both"))
        return token, token_file

    def _verifies(self) -> bool:
        skip = self._text("tls.insecureSkipVerify").lower()
        if skip not in ("", "true", "false"):
            self._note("tls.insecureSkipVerify", "true or false", skip)
        return skip != "true"

    def _name(self, key: Key, default: str) -> str:
        text = self._text(key)
        if text and not re.fullmatch(r"[!-~]+", text):
            self._note(key, "a name without blanks, in ASCII", text)
        return text or default

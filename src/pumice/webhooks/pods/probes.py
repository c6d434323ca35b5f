"""Probes, hooks and signals of a container."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.fields import FieldError, Path, forbidden, invalid, required, unsupported
from pumice.webhooks.names import each, header_name, port_name, port_number

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS: Final = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
_PLAIN_SIGNALS: Final = (
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL",
    "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT",
    "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN",
    "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
    "SIGRTMIN", "SIGRTMAX",
)  # fmt: skip
_LINUX_SIGNALS: Final = tuple(
    sorted(
        (
            *_PLAIN_SIGNALS,
            *(f"SIGRTMIN+{number}" for number in range(1, 16)),
            *(f"SIGRTMAX-{number}" for number in range(1, 15)),
        )
    )
)


def check_probes(
    container: Mapping[str, Any], path: Path, grace: int, system: str | None
) -> Iterator[FieldError]:
    """Check the hooks and probes of a container that may have them."""
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        yield from _lifecycle(lifecycle, (*path, "lifecycle"), grace, system)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            yield from _probe(probe, (*path, name), grace)
            yield from _of_kind(name, probe, (*path, name))


def _of_kind(name: str, probe: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if name != "readinessProbe":
        if probe["successThreshold"] != 1:
            yield invalid((*path, "successThreshold"), probe["successThreshold"], "must be 1")
    elif probe.get("terminationGracePeriodSeconds") is not None:
        given = probe["terminationGracePeriodSeconds"]
        text = "must not be set for readinessProbes"
        yield invalid((*path, "terminationGracePeriodSeconds"), given, text)


def _probe(probe: Mapping[str, Any], path: Path, grace: int) -> Iterator[FieldError]:
    yield from _handler(probe, path, grace)
    for name in _COUNTS:
        if probe.get(name, 0) < 0:
            yield invalid((*path, name), probe[name], "must be greater than or equal to 0")
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and own <= 0:
        yield invalid((*path, "terminationGracePeriodSeconds"), own, "must be greater than 0")


def _handler(given: Mapping[str, Any], path: Path, grace: int) -> Iterator[FieldError]:
    found = [name for name in _HANDLERS if given.get(name) is not None]
    if not found:
        yield required(path, "must specify a handler type")
        return
    yield from _action(found[0], given[found[0]], (*path, found[0]), grace)
    for name in found[1:]:
        yield forbidden((*path, name), "may not specify more than 1 handler type")


def _action(name: str, action: Mapping[str, Any], path: Path, grace: int) -> Iterator[FieldError]:
    if name == "exec":
        if not action.get("command"):
            yield required((*path, "command"))
    elif name == "httpGet":
        yield from _http(action, path)
    elif name == "sleep":
        if not 0 < action["seconds"] <= grace:
            text = (
                f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace}). "
                "Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
            )
            yield invalid(path, action["seconds"], text)
    else:
        yield from check_port(action["port"], (*path, "port"))


def _http(action: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_port(action["port"], (*path, "port"))
    if action["scheme"] not in ("HTTP", "HTTPS"):
        yield unsupported((*path, "scheme"), action["scheme"], ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        yield from each(header_name(header["name"]), (*path, "httpHeaders"), header["name"])


def check_port(port: int | str, path: Path) -> Iterator[FieldError]:
    """Check a port that is given by number or by name."""
    messages = port_name(port) if isinstance(port, str) else port_number(port)
    yield from each(messages, path, port)


def _lifecycle(
    given: Mapping[str, Any], path: Path, grace: int, system: str | None
) -> Iterator[FieldError]:
    for name in ("postStart", "preStop"):
        if given.get(name) is not None:
            yield from _handler(given[name], (*path, name), grace)
    signal = given.get("stopSignal")
    if signal is None:
        return
    place = (*path, "stopSignal")
    if system is None:
        yield forbidden(place, "may not be set for containers with empty `spec.os.name`")
    known = {"windows": _WINDOWS_SIGNALS, "linux": _LINUX_SIGNALS}.get(system or "")
    if known is not None and signal not in known:
        yield unsupported(place, signal, known)

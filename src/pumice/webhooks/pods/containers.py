"""Containers of a pod: variables, ports, mounts, probes, and restrictions by kind."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from pumice.api.quantity import amount
from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.field_rules import (
    Rule,
    Struct,
    items,
    needed,
    one_of,
    part,
    passes,
    refused_here,
    walk,
)
from pumice.webhooks.fields import (
    FieldError,
    Path,
    Shown,
    duplicate,
    forbidden,
    go_json,
    invalid,
    not_found,
    required,
    unsupported,
)
from pumice.webhooks.names import (
    Messages,
    at_least,
    config_key,
    descending,
    dns_label,
    dns_prefix,
    dns_subdomain,
    each,
    env_name,
    header_name,
    no_steps_back,
    port_name,
    port_number,
    qualified_name,
    relaxed_env_name,
)
from pumice.webhooks.pods.resources import container_resources
from pumice.webhooks.pods.security import CONTAINER_CONTEXT

_ENV_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_FILE_FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
_KNOWN_FIELDS: Final = frozenset(
    {*_ENV_FIELDS, *_FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE: Final = ("requests.hugepages-", "limits.hugepages-")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_ONE_OF: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
)
_SEVERAL: Final = "may not have more than one field specified at a time"


def check_env(container: Struct, path: Path, around: Any) -> Iterable[FieldError]:
    """Check the variables of a container; in a new pod, almost any name is allowed."""
    name = needed("name", test=relaxed_env_name if around.of_pod else env_name)
    return items("env", name, _source)(container, path, around)


def _source(variable: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    source, place = variable.get("valueFrom"), (*path, "valueFrom")
    if source is None:
        return
    yield from walk(_SOURCES, source, place)
    number = len(source)
    if not number:
        yield invalid(place, "", _ONE_OF)
    elif variable.get("value"):
        yield invalid(place, "", "may not be specified when `value` is not empty")
    elif number > 1:
        yield invalid(place, "", _SEVERAL)


def check_env_from(container: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    """Check the sources of many variables at once; findings on their number name the list."""
    test = relaxed_env_name if around.of_pod else env_name
    rules = (passes(test, "prefix", when="filled"), *_MANY)
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from walk(rules, source, (*path, "envFrom", index))
        number = sum(source.get(name) is not None for name in ("configMapRef", "secretRef"))
        if number != 1:
            one = "must specify one of: `configMapRef` or `secretRef`"
            yield invalid((*path, "envFrom"), "", _SEVERAL if number else one)


def _field(allowed: tuple[str, ...]) -> Rule:
    """Return the rule for a reference to a field of the pod."""

    def check(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        for key in ("apiVersion", "fieldPath"):
            if not given.get(key):
                yield required((*path, key))
                return
        field = given["fieldPath"]
        problem = _unknown_field(given["apiVersion"], field)
        owner, key = _subscript(field)
        if problem:
            text = f"error converting fieldPath: {problem}"
            yield invalid((*path, "fieldPath"), field, text)
        elif owner is not None:
            key = key.lower() if owner == "metadata.annotations" else key
            yield from each(qualified_name(key), path, key)
        else:
            field = "spec.nodeName" if field == "spec.host" else field
            if field not in allowed:
                yield unsupported((*path, "fieldPath"), field, allowed)

    return check


def _subscript(field: str) -> tuple[str | None, str]:
    """Split ``metadata.labels['key']``; None and an empty text without a subscript."""
    owner, opened, rest = field.partition("['")
    return (owner, rest[:-2]) if opened and rest.endswith("']") else (None, "")


def _unknown_field(version: str, field: str) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    owner, _ = _subscript(field)
    if owner is not None:
        if owner in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    known = field in _KNOWN_FIELDS or field == "spec.host"
    return "" if known else f"field label not supported: {field}"


def check_resource_field(given: Struct, path: Path, *, in_volume: bool) -> Iterator[FieldError]:
    """Check a reference to a request or limit of a container."""
    resource = given["resource"]
    if in_volume and not given.get("containerName"):
        yield required((*path, "containerName"))
    elif not resource:
        yield required((*path, "resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield unsupported((*path, "resource"), resource, _RESOURCES)
    divisor = amount(given.get("divisor", "0"))
    if divisor.nano:
        yield from _divisor(resource, str(divisor), (*path, "divisor"))


def _divisor(resource: str, divisor: str, path: Path) -> Iterator[FieldError]:
    name = resource.partition(".")[2]
    listed = ", ".join(_BYTES)
    if name == "cpu" and divisor not in ("1m", "1"):
        text = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield invalid(path, resource, text)
    kind = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name, "")
    if resource not in _RESOURCES:
        kind = "hugepages" if resource.startswith(_HUGE) else ""
    if kind and divisor not in _BYTES:
        text = f"only divisor's values {listed} are supported with the {kind} resource"
        yield invalid(path, resource, text)


file_field: Final = _field(_FILE_FIELDS)
"""Check a reference to a field of the pod that a volume shows."""
_KEY: Final = (passes(dns_subdomain, "name", when="always"), needed("key", test=config_key))
_SOURCES: Final = (
    part("fieldRef", _field(_ENV_FIELDS)),
    part(
        "resourceFieldRef",
        lambda given, path, _: check_resource_field(given, path, in_volume=False),
    ),
    part("configMapKeyRef", *_KEY),
    part("secretKeyRef", *_KEY),
    part(
        "fileKeyRef",
        needed("key", test=relaxed_env_name),
        needed("volumeName", test=dns_label),
        needed("path", test=no_steps_back),
    ),
)
_MANY: Final = (
    part("configMapRef", needed("name", test=dns_prefix)),
    part("secretRef", needed("name", test=dns_prefix)),
)


PULL: Final = ("Always", "IfNotPresent", "Never")
_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
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


class Around(msgspec.Struct, frozen=True):
    """Facts about a pod for the checks of its parts."""

    spec: Mapping[str, Any]
    of_pod: bool
    """Whether a pod is created; the rules for templates are older."""
    volumes: dict[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """The valid volumes by name."""

    @property
    def system(self) -> str | None:
        """The operating system that the pod names."""
        named = self.spec.get("os")
        return None if named is None else named.get("name")


def check_containers(spec: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    """Check the containers of all kinds."""
    regular = spec["containers"] or []
    if not regular:
        yield required((*path, "containers"))
    names: set[str] = set()
    for index, container in enumerate(regular):
        place = (*path, "containers", index)
        yield from walk(_COMMON, container, place, around)
        yield from _repeated(container, place, names)
        yield from walk((*_HOOKS, _NO_RESTART), container, place, around)
    yield from _host_ports(regular, (*path, "containers"))
    init = set(names)
    for index, container in enumerate(spec.get("initContainers") or ()):
        place = (*path, "initContainers", index)
        yield from walk((*_COMMON, _restart_policy), container, place, around)
        if container["name"] or "" in init:  # two without a name are no repetition
            yield from _repeated(container, place, init)
        yield from _host_ports([container], (*path, "initContainers"))
        yield from _sidecar(container, place, around)
    yield from _ephemeral_containers(spec, (*path, "ephemeralContainers"), around)


def _repeated(container: Struct, path: Path, names: set[str]) -> Iterator[FieldError]:
    if container["name"] in names:
        yield duplicate((*path, "name"), container["name"])
    names.add(container["name"])


def _restart_policy(container: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    policy, place = container.get("restartPolicy"), (*path, "restartPolicy")
    if policy is None and container.get("restartPolicyRules"):
        yield required(place, "must specify restartPolicy when restart rules are used")
    elif policy not in (None, "Always"):
        yield unsupported(place, policy, ("Always",))


def _sidecar(container: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    """Check fields that only a sidecar may have."""
    always = container.get("restartPolicy") == "Always"
    yield from walk(_HOOKS if always else (_NO_SIDECAR,), container, path, around)
    resizing = container.get("resizePolicy") or []
    if resizing:
        fields = [
            {"ResourceName": one["resourceName"], "RestartPolicy": one["restartPolicy"]}
            for one in resizing
        ]
        shown = Shown(go_json(fields, sort=False))
        yield invalid((*path, "resizePolicy"), shown, "must not be set for init containers")
    for index, one in enumerate(resizing if not always else ()):
        if one["restartPolicy"] == "RestartContainer":
            text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            place = (*path, "resizePolicy", index, "restartPolicy")
            yield invalid(place, "RestartContainer", text)


def _ephemeral_containers(spec: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    """Check the containers that are only added later."""
    others = {
        one["name"]
        for one in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    }
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        place = (*path, index)
        yield from walk((*_COMMON, check_image), container, place, around)
        yield from _repeated(container, place, names)
        target = container.get("targetContainerName")
        if target and target not in others:
            yield not_found((*place, "targetContainerName"), target)
        yield from walk(_ONLY_EPHEMERAL, container, place)


def _no_sub_paths(container: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield forbidden((*path, "volumeMounts", index, name), _EPHEMERAL)


def check_image(container: Struct, path: Path, _: Any = None) -> Iterator[FieldError]:
    """Check the image beyond the checks of templates: blanks around it."""
    image = container.get("image", "")
    if image != image.strip():
        text = "must not have leading or trailing whitespace"
        yield invalid((*path, "image"), image, text)


def _ports(container: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        place, name = (*path, "ports", index), port.get("name")
        if name:
            messages = port_name(name)
            yield from each(messages, (*place, "name"), name)
            if not messages:
                yield from _repeated(port, place, names)
        yield from walk(_PORT, port, place)


def _host_ports(containers: list[Struct], path: Path) -> Iterator[FieldError]:
    """Find ports of the host that are asked for twice."""
    seen: set[str] = set()
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            text = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if text in seen:
                yield duplicate((*path, number, "ports", index, "hostPort"), text)
            seen.add(text)


def _resizing(container: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    seen: set[str] = set()
    place = (*path, "resizePolicy")
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        resource, restart = policy["resourceName"], policy["restartPolicy"]
        if resource in seen:
            yield duplicate((*place, index), resource)
        seen.add(resource)
        for given, known in (
            (resource, ("cpu", "memory")),
            (restart, ("NotRequired", "RestartContainer")),
        ):
            if not given:
                yield required(place)
            elif given not in known:
                yield unsupported(place, given, known)
        if around.spec["restartPolicy"] == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(place, restart, text)


def _mounts(container: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    devices = {one["name"]: one["devicePath"] for one in container.get("volumeDevices") or ()}
    places: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place = (*path, "volumeMounts", index)
        name, where = mount["name"], mount["mountPath"]
        if not name:
            yield required((*place, "name"))
        if name not in around.volumes:
            yield not_found((*place, "name"), name)
        if not where:
            yield required((*place, "mountPath"))
        if where in places:
            yield invalid((*place, "mountPath"), where, "must be unique")
        places.add(where)
        yield from _other_use(mount, "mountPath", devices, "volumeDevices", place)
        yield from _inside(mount, place)
        privileged = (container.get("securityContext") or {}).get("privileged")
        yield from walk(_PROPAGATION, mount, place[:-1], privileged)


def _other_use(
    given: Struct, key: str, others: Mapping[str, str], listed: str, path: Path
) -> Iterator[FieldError]:
    """Refuse a volume or a path that is used as a mount and as a device."""
    if given["name"] in others:
        yield invalid((*path, "name"), given["name"], f"must not already exist in {listed}")
    if given[key] in others.values():
        text = f"must not already exist as a path in {listed}"
        yield invalid((*path, key), given[key], text)


def _inside(mount: Struct, path: Path) -> Iterator[FieldError]:
    """Check the path inside the volume; its findings name the list, not the item."""
    inner, expression = mount.get("subPath"), mount.get("subPathExpr")
    if inner:
        yield from each(descending(inner), (*path[:-1], "subPath"), inner)
    if inner and expression:
        text = "subPathExpr and subPath are mutually exclusive"
        yield invalid((*path, "subPathExpr"), expression, text)
    if expression:
        yield from each(descending(expression), (*path[:-1], "subPathExpr"), expression)


def _bidirectional(mount: Struct, path: Path, privileged: Any) -> Iterator[FieldError]:
    if mount.get("mountPropagation") == "Bidirectional" and not privileged:
        text = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden((*path, "mountPropagation"), text)


def _read_only(mount: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    place = (*path, "recursiveReadOnly")
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(place, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(place, text)


_PROPAGATION: Final = (
    one_of("mountPropagation", ("Bidirectional", "HostToContainer", "None")),
    _bidirectional,
    one_of("recursiveReadOnly", ("Disabled", "Enabled", "IfPossible")),
    _read_only,
)


def _devices(container: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    mounts = {one["name"]: one["mountPath"] for one in container.get("volumeMounts") or ()}
    names: set[str] = set()
    places: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        place = (*path, "volumeDevices", index)
        name, where = device["name"], device["devicePath"]
        yield from _device_name(name, names, around, (*place, "name"))
        if not where:
            yield required((*place, "devicePath"))
        if where in places:
            yield invalid((*place, "devicePath"), where, "must be unique")
        if ".." in where.split("/"):
            text = "can not contain backsteps ('..')"
            yield invalid((*place, "devicePath"), where, text)
        else:
            places.add(where)
        yield from _other_use(device, "devicePath", mounts, "volumeMounts", place)
        if name:
            names.add(name)


def _device_name(name: str, names: set[str], around: Around, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    if name in names:
        yield invalid(path, name, "must be unique")
    if name not in around.volumes:
        yield not_found(path, name)
    elif not {"persistentVolumeClaim", "ephemeral"} & set(around.volumes[name]):
        text = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        yield invalid(path, name, text)


def _port_test(port: int | str) -> Messages:
    """Check a port that is given by number or by name."""
    return port_name(port) if isinstance(port, str) else port_number(port)


def _headers(action: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    for header in action.get("httpHeaders") or ():
        yield from each(header_name(header["name"]), (*path, "httpHeaders"), header["name"])


def _sleep(action: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    grace = around.spec["terminationGracePeriodSeconds"]
    if not 0 < action["seconds"] <= grace:
        text = (
            f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace}). "
            "Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
        )
        yield invalid(path, action["seconds"], text)


_TO_PORT: Final = passes(_port_test, "port")
_ACTIONS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "exec": (needed("command"),),
    "httpGet": (_TO_PORT, one_of("scheme", ("HTTP", "HTTPS")), _headers),
    "tcpSocket": (_TO_PORT,),
    "grpc": (_TO_PORT,),
    "sleep": (_sleep,),
}


def _handler(given: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    found = [name for name in _ACTIONS if given.get(name) is not None]
    if not found:
        yield required(path, "must specify a handler type")
        return
    yield from walk(_ACTIONS[found[0]], given[found[0]], (*path, found[0]), around)
    for name in found[1:]:
        yield forbidden((*path, name), "may not specify more than 1 handler type")


def _stop_signal(lifecycle: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    signal, place = lifecycle.get("stopSignal"), (*path, "stopSignal")
    if signal is None:
        return
    if around.system is None:
        yield forbidden(place, "may not be set for containers with empty `spec.os.name`")
    known = {"windows": _WINDOWS_SIGNALS, "linux": _LINUX_SIGNALS}.get(around.system or "")
    if known is not None and signal not in known:
        yield unsupported(place, signal, known)


def _one_success(count: int) -> Messages:
    return [] if count == 1 else ["must be 1"]


_PROBE: Final = (
    _handler,
    passes(
        at_least(0, "must be greater than or equal to 0"),
        "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
        "failureThreshold",
    ),
    passes(at_least(1, "must be greater than 0"), "terminationGracePeriodSeconds"),
)  # fmt: skip
_ONCE: Final = passes(_one_success, "successThreshold")
_NO_GRACE: Final = passes(
    lambda _: ["must not be set for readinessProbes"], "terminationGracePeriodSeconds"
)
_HOOKS: Final = (
    part("lifecycle", part("postStart", _handler), part("preStop", _handler), _stop_signal),
    part("livenessProbe", *_PROBE, _ONCE),
    part("readinessProbe", *_PROBE, _NO_GRACE),
    part("startupProbe", *_PROBE, _ONCE),
)
_NO_RESTART: Final = refused_here("restartPolicy", detail="may not be set for non-init containers")
_NO_SIDECAR: Final = refused_here(
    "lifecycle", *_PROBES, detail="may not be set for init containers without restartPolicy=Always"
)
_PORT: Final = (
    needed("containerPort", test=port_number),
    passes(port_number, "hostPort", when="filled"),
    one_of("protocol", ("SCTP", "TCP", "UDP")),
)


def _within_budget(_struct: Struct, _path: Path, _around: Around) -> tuple[()]:
    check_cpu()
    return ()


_COMMON: Final[tuple[Rule, ...]] = (
    _within_budget,
    needed("name", test=dns_label),
    needed("image"),
    one_of("terminationMessagePolicy", ("File", "FallbackToLogsOnError")),
    _ports,
    check_env,
    check_env_from,
    _mounts,
    _devices,
    one_of("imagePullPolicy", PULL),
    part("resources", container_resources),
    _resizing,
    part("securityContext", *CONTAINER_CONTEXT),
)
"""The rules for containers of every kind."""
_ONLY_EPHEMERAL: Final = (
    refused_here("ports", detail=_EPHEMERAL),
    refused_here("resources", detail=_EPHEMERAL, when="filled"),  # written even if empty
    refused_here(
        "resizePolicy", "restartPolicy", "restartPolicyRules", *_PROBES, "lifecycle",
        detail=_EPHEMERAL,
    ),
    _no_sub_paths,
)  # fmt: skip

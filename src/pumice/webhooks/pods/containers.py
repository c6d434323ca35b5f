"""Containers of a pod: names, images, ports, mounts, and restrictions by kind."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from pumice.webhooks.cpu_budget import check_cpu
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
from pumice.webhooks.names import dns_label, each, port_name, port_number
from pumice.webhooks.pods.environment import check_env, check_env_from
from pumice.webhooks.pods.mounts import check_devices, check_mounts
from pumice.webhooks.pods.probes import check_probes
from pumice.webhooks.pods.resources import check_resources
from pumice.webhooks.pods.security import check_container_context

_PULL: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_RESIZED: Final = ("cpu", "memory")
_RESIZING: Final = ("NotRequired", "RestartContainer")
_NO_SIDECAR: Final = "may not be set for init containers without restartPolicy=Always"
_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
    "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip


_MAPPINGS: Final = ("resources",)
"""Written even if empty."""


class Around(msgspec.Struct, frozen=True):
    """Facts about a pod for the checks of its containers."""

    volumes: Mapping[str, Mapping[str, Any]]
    claims: frozenset[str]
    restart_policy: str
    grace: int
    system: str | None
    host_users: bool
    of_pod: bool
    """Whether a pod is created; the rules for templates are older."""


def check_containers(
    containers: list[Mapping[str, Any]], path: Path, around: Around
) -> Iterator[FieldError]:
    """Check the regular containers."""
    if not containers:
        yield required(path)
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        place = (*path, index)
        yield from _common(container, place, around)
        if container["name"] in names:
            yield duplicate((*place, "name"), container["name"])
        names.add(container["name"])
        yield from check_probes(container, place, around.grace, around.system)
        if container.get("restartPolicy") is not None:
            yield forbidden((*place, "restartPolicy"), "may not be set for non-init containers")
    yield from _host_ports(containers, path)


def check_init_containers(
    containers: list[Mapping[str, Any]],
    regular: list[Mapping[str, Any]],
    path: Path,
    around: Around,
) -> Iterator[FieldError]:
    """Check the containers that run before the others."""
    names = {container["name"] for container in regular}
    for index, container in enumerate(containers):
        place = (*path, index)
        yield from _common(container, place, around)
        policy = container.get("restartPolicy")
        if policy is None and container.get("restartPolicyRules"):
            text = "must specify restartPolicy when restart rules are used"
            yield required((*place, "restartPolicy"), text)
        elif policy not in (None, "Always"):
            yield unsupported((*place, "restartPolicy"), policy, ("Always",))
        if container["name"] in names:
            yield duplicate((*place, "name"), container["name"])
        elif container["name"]:
            names.add(container["name"])
        yield from _host_ports([container], path)
        yield from _sidecar(container, place, around)


def _sidecar(container: Mapping[str, Any], path: Path, around: Around) -> Iterator[FieldError]:
    """Check fields that only a sidecar may have."""
    always = container.get("restartPolicy") == "Always"
    if always:
        yield from check_probes(container, path, around.grace, around.system)
    else:
        for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(name) is not None:
                yield forbidden((*path, name), _NO_SIDECAR)
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


def check_ephemeral_containers(
    spec: Mapping[str, Any], path: Path, around: Around
) -> Iterator[FieldError]:
    """Check the containers that are only added later."""
    others = {
        one["name"]
        for one in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    }
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        place = (*path, index)
        yield from _common(container, place, around)
        yield from check_image(container, place)
        if container["name"] in names:
            yield duplicate((*place, "name"), container["name"])
        names.add(container["name"])
        target = container.get("targetContainerName")
        if target and target not in others:
            yield not_found((*place, "targetContainerName"), target)
        yield from _only_ephemeral(container, place)


def _only_ephemeral(container: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for name in _NOT_EPHEMERAL:
        if container.get(name) or (name not in _MAPPINGS and container.get(name) is not None):
            yield forbidden((*path, name), _EPHEMERAL)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield forbidden((*path, "volumeMounts", index, name), _EPHEMERAL)


def check_image(container: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check the image beyond the checks of templates: blanks around it."""
    image = container.get("image", "")
    if image != image.strip():
        text = "must not have leading or trailing whitespace"
        yield invalid((*path, "image"), image, text)


def _common(container: Mapping[str, Any], path: Path, around: Around) -> Iterator[FieldError]:
    """Check the rules for containers of every kind."""
    check_cpu()
    name = container["name"]
    if name:
        yield from each(dns_label(name), (*path, "name"), name)
    else:
        yield required((*path, "name"))
    if not container.get("image"):
        yield required((*path, "image"))
    message = container["terminationMessagePolicy"]
    if message not in _MESSAGES:
        yield unsupported((*path, "terminationMessagePolicy"), message, _MESSAGES)
    yield from _ports(container.get("ports") or [], (*path, "ports"))
    relaxed = around.of_pod
    yield from check_env(container.get("env") or [], (*path, "env"), relaxed=relaxed)
    yield from check_env_from(container.get("envFrom") or [], (*path, "envFrom"), relaxed=relaxed)
    yield from check_mounts(container, around.volumes, (*path, "volumeMounts"))
    yield from check_devices(container, around.volumes, (*path, "volumeDevices"))
    pull = container["imagePullPolicy"]
    if pull not in _PULL:
        yield unsupported((*path, "imagePullPolicy"), pull, _PULL)
    yield from check_resources(container["resources"], (*path, "resources"), around.claims)
    resizing = container.get("resizePolicy") or []
    yield from _resizing(resizing, (*path, "resizePolicy"), around.restart_policy)
    yield from check_container_context(
        container.get("securityContext"), (*path, "securityContext"), host_users=around.host_users
    )


def _ports(ports: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        place = (*path, index)
        name = port.get("name")
        if name:
            messages = port_name(name)
            yield from each(messages, (*place, "name"), name)
            if not messages:
                if name in names:
                    yield duplicate((*place, "name"), name)
                names.add(name)
        if port["containerPort"]:
            number = port["containerPort"]
            yield from each(port_number(number), (*place, "containerPort"), number)
        else:
            yield required((*place, "containerPort"))
        if port.get("hostPort"):
            yield from each(port_number(port["hostPort"]), (*place, "hostPort"), port["hostPort"])
        if port["protocol"] not in _PROTOCOLS:
            yield unsupported((*place, "protocol"), port["protocol"], _PROTOCOLS)


def _host_ports(containers: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
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


def _resizing(
    policies: list[Mapping[str, Any]], path: Path, restart_policy: str
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy["resourceName"], policy["restartPolicy"]
        if resource in seen:
            yield duplicate((*path, index), resource)
        seen.add(resource)
        for given, known in ((resource, _RESIZED), (restart, _RESIZING)):
            if not given:
                yield required(path)
            elif given not in known:
                yield unsupported(path, given, known)
        if restart_policy == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, restart, text)

"""The defaults of Kubernetes for pod templates and pods.

Works on decoded templates (see webhooks.go_types), returns a filled copy; only what a check
needs, or a stored pod shows, is filled in.
"""

from collections.abc import Iterator
from typing import Any

from pumice.api.cloning import clone
from pumice.api.pod_resources import default_requests
from pumice.api.quantity import Amount, amount

_MILLI = 10**6


def filled_template(template: dict[str, Any]) -> dict[str, Any]:
    """Fill in a pod template."""
    filled = clone(template)
    _fill_spec(filled["spec"])
    return filled


def filled_pod(pod: dict[str, Any]) -> dict[str, Any]:
    """Fill in a pod: as a template, and what follows from limits and the host's network."""
    filled = clone(pod)
    spec = filled["spec"]
    _fill_spec(spec)
    default_requests(spec, amount)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port["containerPort"])
    spec.setdefault("enableServiceLinks", True)
    return filled


def all_containers(spec: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the containers of all kinds, init containers first."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield name, index, container


def _fill_spec(spec: dict[str, Any]) -> None:
    for key, value in (
        ("dnsPolicy", "ClusterFirst"),
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("schedulerName", "default-scheduler"),
    ):
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    if not spec.get("serviceAccountName") and spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]  # its old name
    for _, _, container in all_containers(spec):
        _fill_container(container)
    for volume in spec.get("volumes") or ():
        _fill_volume(volume)
    for resources in (spec.get("resources") or {}, {"limits": spec.get("overhead")}):
        _round_amounts(resources)


def _fill_container(container: dict[str, Any]) -> None:
    latest = container.get("image", "").rpartition(":")[2] == "latest"
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    _round_amounts(container["resources"])
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _fill_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _fill_http(hook)


def _fill_probe(probe: dict[str, Any]) -> None:
    _fill_http(probe)
    for key, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(key, value)


def _fill_http(handler: dict[str, Any]) -> None:
    request = handler.get("httpGet")
    if request is not None:
        request.setdefault("path", "/")
        request.setdefault("scheme", "HTTP")


def _round_amounts(resources: dict[str, Any]) -> None:
    """Round amounts up to thousandths."""
    for name in ("limits", "requests"):
        for key, text in (resources.get(name) or {}).items():
            given = amount(text)
            if given.nano % _MILLI:
                resources[name][key] = str(Amount(given.milli * _MILLI, given.form))


def _fill_volume(volume: dict[str, Any]) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    disk = volume.get("azureDisk")
    if disk is not None:
        disk.setdefault("cachingMode", "ReadWrite")
        disk.setdefault("kind", "Shared")
    image = volume.get("image")
    if image is not None:
        latest = image.get("reference", "").rpartition(":")[2] == "latest"
        image.setdefault("pullPolicy", "Always" if latest else "IfNotPresent")
    items = list((volume.get("downwardAPI") or {}).get("items") or ())
    for source in (volume.get("projected") or {}).get("sources") or ():
        items += (source.get("downwardAPI") or {}).get("items") or ()
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)
    for item in items:
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")

"""The specification of a pod as a whole; gathers the rules of its parts in Kubernetes' order."""

from collections.abc import Iterator
from typing import Any, Final, Literal

from pumice.api.pod_resources import container_amounts
from pumice.api.quantity import amount, amounts
from pumice.webhooks.field_rules import (
    Rule,
    Struct,
    all_pass,
    items,
    label_map,
    one_of,
    part,
    passes,
    walk,
)
from pumice.webhooks.fields import (
    FieldError,
    Key,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.names import (
    dns_label,
    dns_subdomain,
    each,
    in_range,
    ip_address,
    qualified_name,
)
from pumice.webhooks.pods.containers import Around, check_containers
from pumice.webhooks.pods.defaults import all_containers
from pumice.webhooks.pods.placement import AFFINITY, spreading, toleration
from pumice.webhooks.pods.resources import check_resources, claim_names, pod_resource
from pumice.webhooks.pods.security import POD_CONTEXT, host_process, on_linux, on_windows
from pumice.webhooks.pods.volumes import check_volumes, resource_claims

_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_SEARCH_LENGTH: Final = 2048


def check_spec(spec: dict[str, Any], path: Path, *, of_pod: bool) -> list[FieldError]:
    """Check a pod's specification that has its defaults."""
    return walk(_SPEC, spec, path, Around(spec, of_pod))


def _preemption(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    preemption, place = spec.get("preemptionPolicy"), (*path, "preemptionPolicy")
    if preemption == "":
        yield required(place)
    elif preemption is not None and preemption not in _PREEMPTION:
        yield unsupported(place, preemption, _PREEMPTION)


def _overhead(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    over = {"limits": spec.get("overhead")}
    return check_resources(over, (*path, "overhead"), frozenset())


def _group(group: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if group.get("podGroupName") is None:
        place = (*path, "podGroupName")
        yield invalid(place, None, "must specify one of: `podGroupName`")


def _system(spec: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    system = around.system
    if system is None:
        return
    if not system:
        yield required((*path, "os", "name"))
    elif system not in ("linux", "windows"):
        yield unsupported((*path, "os"), system, ("linux", "windows"))
    else:
        yield from (on_linux if system == "linux" else on_windows)(spec, path, around)


def _host_network(spec: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    """Check that ports are the host's where there is no network of the pod's own."""
    if not spec.get("hostNetwork"):
        return
    for number, container in enumerate(spec["containers"] or ()):
        for index, port in enumerate(container.get("ports") or ()):
            on_host = port.get("hostPort", 0)
            if (around.of_pod or on_host) and on_host != port["containerPort"]:
                text = "must match `containerPort` when `hostNetwork` is true"
                place = (*path, "containers", number, "ports", index, "hostPort")
                yield invalid(place, on_host, text)


def _dns(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    given, place = spec.get("dnsConfig"), (*path, "dnsConfig")
    alone = spec["dnsPolicy"] == "None"
    if given is None:
        if alone:
            yield required(place, "must provide `dnsConfig` when `dnsPolicy` is None")
    elif alone and not given.get("nameservers"):
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required((*place, "nameservers"), text)
    else:
        yield from walk(_DNS_CONFIG, given, place)


def _at_most(key: str, most: int, what: str) -> Rule:
    def check(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        if len(given.get(key) or ()) > most:
            yield invalid((*path, key), given[key], f"must not have more than {most} {what}")

    return check


def _searches(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    searches, place = given.get("searches") or [], (*path, "searches")
    if len(" ".join(searches)) > _SEARCH_LENGTH:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid(place, searches, text)
    for index, search in enumerate(searches):
        plain = search.removesuffix(".")
        yield from each(dns_subdomain(plain), (*place, index), plain)


def _option(option: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if not option.get("name"):
        yield required(path, "must not be empty")


_DNS_CONFIG: Final = (
    _at_most("nameservers", 3, "nameservers"),
    all_pass(ip_address, "nameservers"),
    _at_most("searches", 32, "search paths"),
    _searches,
    items("options", _option),
)


def _gates(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        place = (*path, "schedulingGates", index)
        yield from each(qualified_name(gate["name"]), place, gate["name"])
        if gate["name"] in seen:
            yield duplicate(place, gate["name"])
        seen.add(gate["name"])


def _host_users(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if spec.get("hostUsers") is not False:
        return
    text = "when `hostUsers` is false"
    for key, field in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(key):
            yield forbidden((*path, field), text)
    for name, index, container in all_containers(dict(spec)):
        if container.get("volumeDevices"):
            yield forbidden((*path, name, index, "volumeDevices"), text)


def _host_name(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    name, place = spec.get("hostnameOverride"), (*path, "hostnameOverride")
    if name is None:
        return
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(place, "may not be specified when hostNetwork is true")
    if len(name) > 64:
        yield too_long(place, 64)
    yield from each(dns_subdomain(name), place, name)


def _file_keys(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    """Check that variables read from files name volumes that hold files of the pod."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for name, index, container in all_containers(dict(spec)):
        for number, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            place = (*path, name, index, "env", number, "valueFrom", "fileKeyRef", "volumeName")
            volume = reference["volumeName"]
            if volume not in volumes:
                yield not_found(place, volume)
            elif volumes[volume].get("emptyDir") is None:
                yield invalid(place, volume, "referenced volume must be of type emptyDir")


def _pod_resources(given: Struct, path: Path, around: Around) -> Iterator[FieldError]:
    """Check the resources of a pod as a whole, also against those of its containers."""
    spec = around.spec
    if around.system == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if given.get("claims") is not None:
        text = "claims may not be set for Resources at pod-level"
        yield forbidden((*path, "claims"), text)
    yield from check_resources(given, path, claim_names(spec), pod_resource)
    asked, limits = amounts(given.get("requests")), amounts(given.get("limits"))
    kinds: tuple[Literal["requests", "limits"], ...] = ("requests", "limits")
    for kind, own in zip(kinds, (asked, limits), strict=True):
        sums = container_amounts(spec, kind, amount)
        for name in sorted(sums):
            counts = kind == "requests" or name.startswith("hugepages-")
            if counts and name in own and sums[name].nano > own[name].nano:
                least = f"aggregate container {kind} of {sums[name]}"
                text = f"must be greater than or equal to {least}"
                yield invalid((*path, kind, Key(name)), str(own[name]), text)
    for index, container in enumerate(spec["containers"] or ()):
        own = amounts(container["resources"].get("limits"))
        for name in sorted(own):
            if name in limits and own[name].nano > limits[name].nano:
                text = f"must be less than or equal to pod limits of {limits[name]}"
                place = (*path, "containers", index, Key(name), "limits")
                yield invalid(place, str(own[name]), text)


_SPEC: Final[tuple[Rule, ...]] = (
    check_volumes,
    resource_claims,
    check_containers,
    part("resources", _pod_resources),
    _host_network,
    one_of("restartPolicy", ("Always", "OnFailure", "Never")),
    one_of("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    label_map("nodeSelector"),
    part("securityContext", *POD_CONTEXT),
    AFFINITY,
    _dns,
    items("readinessGates", passes(qualified_name, "conditionType")),
    _gates,
    spreading,
    host_process,
    _host_users,
    _host_name,
    passes(dns_subdomain, "serviceAccountName", "nodeName", when="filled"),
    passes(in_range(1, 2**31 - 1), "activeDeadlineSeconds"),
    passes(dns_label, "hostname", "subdomain", when="filled"),
    items("tolerations", toleration),
    items("hostAliases", passes(ip_address, "ip"), all_pass(dns_subdomain, "hostnames")),
    passes(dns_subdomain, "priorityClassName", when="filled"),
    passes(dns_subdomain, "runtimeClassName"),
    _preemption,
    _overhead,
    _system,
    part("schedulingGroup", _group, passes(dns_subdomain, "podGroupName")),
    _file_keys,
)

"""The specification of a pod as a whole; gathers the checks of its parts in Kubernetes' order."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.api.pod_resources import container_amounts
from pumice.api.quantity import amount, amounts
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
    between,
    dns_label,
    dns_subdomain,
    each,
    ip_address,
    labels,
    qualified_name,
)
from pumice.webhooks.pods.affinity import check_affinity, check_spreading, check_tolerations
from pumice.webhooks.pods.claims import check_resource_claims
from pumice.webhooks.pods.containers import (
    Around,
    check_containers,
    check_ephemeral_containers,
    check_init_containers,
)
from pumice.webhooks.pods.defaults import all_containers
from pumice.webhooks.pods.resources import check_resources, pod_resource
from pumice.webhooks.pods.security import check_pod_context
from pumice.webhooks.pods.volumes import check_volumes
from pumice.webhooks.pods.windows import check_host_process, check_on_linux, check_on_windows

Spec = dict[str, Any]
_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSTEMS: Final = ("linux", "windows")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_LONGEST_DEADLINE: Final = 2**31 - 1
_SEARCH_LENGTH: Final = 2048


def check_spec(spec: Spec, path: Path, *, of_pod: bool) -> Iterator[FieldError]:
    """Check a pod's specification that has its defaults."""
    system = (spec.get("os") or {}).get("name") if spec.get("os") is not None else None
    volumes, found = check_volumes(spec.get("volumes") or [], (*path, "volumes"))
    yield from found
    claims = spec.get("resourceClaims") or []
    yield from check_resource_claims(claims, (*path, "resourceClaims"))
    around = Around(
        volumes=volumes,
        claims=frozenset(one["name"] for one in claims if one["name"]),
        restart_policy=spec["restartPolicy"],
        grace=spec["terminationGracePeriodSeconds"],
        system=system,
        host_users=spec.get("hostUsers") is not False,
        of_pod=of_pod,
    )
    regular = spec["containers"] or []
    yield from check_containers(regular, (*path, "containers"), around)
    first = spec.get("initContainers") or []
    yield from check_init_containers(first, regular, (*path, "initContainers"), around)
    yield from check_ephemeral_containers(spec, (*path, "ephemeralContainers"), around)
    if spec.get("resources") is not None:
        yield from _pod_resources(spec, (*path, "resources"), around.claims)
    yield from _host_network(spec, (*path, "containers"), of_pod=of_pod)
    for key, known in (("restartPolicy", _RESTART), ("dnsPolicy", _DNS)):
        if spec[key] not in known:
            yield unsupported((*path, key), spec[key], known)
    yield from labels(spec.get("nodeSelector"), (*path, "nodeSelector"))
    yield from check_pod_context(spec, path)
    yield from check_affinity(spec.get("affinity") or {}, (*path, "affinity"))
    yield from _dns(spec, (*path, "dnsConfig"))
    yield from _gates(spec, path)
    spreading = spec.get("topologySpreadConstraints") or []
    yield from check_spreading(spreading, (*path, "topologySpreadConstraints"))
    yield from check_host_process(spec, path)
    yield from _host_users(spec, path)
    yield from _host_name(spec, path)
    yield from _names(spec, path)
    yield from _rest(spec, path, system)


def _names(spec: Spec, path: Path) -> Iterator[FieldError]:
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            yield from each(dns_subdomain(spec[key]), (*path, key), spec[key])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        text = between(1, _LONGEST_DEADLINE)
        yield invalid((*path, "activeDeadlineSeconds"), deadline, text)
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            yield from each(dns_label(spec[key]), (*path, key), spec[key])


def _rest(spec: Spec, path: Path, system: str | None) -> Iterator[FieldError]:
    yield from check_tolerations(spec.get("tolerations") or [], (*path, "tolerations"))
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        place = (*path, "hostAliases", index)
        yield from each(ip_address(alias["ip"]), (*place, "ip"), alias["ip"])
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from each(dns_subdomain(name), (*place, "hostnames", number), name)
    for key in ("priorityClassName", "runtimeClassName"):
        name = spec.get(key)
        if name or (key == "runtimeClassName" and name is not None):
            yield from each(dns_subdomain(name), (*path, key), name)
    preemption = spec.get("preemptionPolicy")
    if preemption == "":
        yield required((*path, "preemptionPolicy"))
    elif preemption is not None and preemption not in _PREEMPTION:
        yield unsupported((*path, "preemptionPolicy"), preemption, _PREEMPTION)
    if spec.get("overhead"):
        over = {"limits": spec["overhead"]}
        yield from check_resources(over, (*path, "overhead"), frozenset())
    if system is not None:
        yield from _system(spec, path, system)
    group = spec.get("schedulingGroup")
    if group is not None:
        yield from _group(group.get("podGroupName"), (*path, "schedulingGroup", "podGroupName"))
    yield from _file_keys(spec, path)


def _group(name: str | None, path: Path) -> Iterator[FieldError]:
    if name is None:
        yield invalid(path, None, "must specify one of: `podGroupName`")
    else:
        yield from each(dns_subdomain(name), path, name)


def _system(spec: Spec, path: Path, system: str) -> Iterator[FieldError]:
    if not system:
        yield required((*path, "os", "name"))
    elif system not in _SYSTEMS:
        yield unsupported((*path, "os"), system, _SYSTEMS)
    elif system == "linux":
        yield from check_on_linux(spec, path)
    else:
        yield from check_on_windows(spec, path)


def _host_network(spec: Spec, path: Path, *, of_pod: bool) -> Iterator[FieldError]:
    """Check that ports are the host's where there is no network of the pod's own."""
    if not spec.get("hostNetwork"):
        return
    for number, container in enumerate(spec["containers"] or ()):
        for index, port in enumerate(container.get("ports") or ()):
            on_host = port.get("hostPort", 0)
            if (of_pod or on_host) and on_host != port["containerPort"]:
                text = "must match `containerPort` when `hostNetwork` is true"
                yield invalid((*path, number, "ports", index, "hostPort"), on_host, text)


def _dns(spec: Spec, path: Path) -> Iterator[FieldError]:
    given = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if given is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not given.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required((*path, "nameservers"), text)
            return
    if given is not None:
        yield from _dns_lists(given, path)


def _dns_lists(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    servers, searches = given.get("nameservers") or [], given.get("searches") or []
    if len(servers) > 3:
        text = "must not have more than 3 nameservers"
        yield invalid((*path, "nameservers"), servers, text)
    for index, server in enumerate(servers):
        yield from each(ip_address(server), (*path, "nameservers", index), server)
    if len(searches) > 32:
        text = "must not have more than 32 search paths"
        yield invalid((*path, "searches"), searches, text)
    if len(" ".join(searches)) > _SEARCH_LENGTH:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid((*path, "searches"), searches, text)
    for index, search in enumerate(searches):
        plain = search.removesuffix(".")
        yield from each(dns_subdomain(plain), (*path, "searches", index), plain)
    for index, option in enumerate(given.get("options") or ()):
        if not option.get("name"):
            yield required((*path, "options", index), "must not be empty")


def _gates(spec: Spec, path: Path) -> Iterator[FieldError]:
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate["conditionType"]
        place = (*path, "readinessGates", index, "conditionType")
        yield from each(qualified_name(kind), place, kind)
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        place = (*path, "schedulingGates", index)
        yield from each(qualified_name(gate["name"]), place, gate["name"])
        if gate["name"] in seen:
            yield duplicate(place, gate["name"])
        seen.add(gate["name"])


def _host_users(spec: Spec, path: Path) -> Iterator[FieldError]:
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
    for name, index, container in all_containers(spec):
        if container.get("volumeDevices"):
            yield forbidden((*path, name, index, "volumeDevices"), text)


def _host_name(spec: Spec, path: Path) -> Iterator[FieldError]:
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


def _file_keys(spec: Spec, path: Path) -> Iterator[FieldError]:
    """Check that variables read from files name volumes that hold files of the pod."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for name, index, container in all_containers(spec):
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


def _pod_resources(spec: Spec, path: Path, claims: frozenset[str]) -> Iterator[FieldError]:
    """Check the resources of a pod as a whole, also against those of its containers."""
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    given = spec["resources"]
    if given.get("claims") is not None:
        text = "claims may not be set for Resources at pod-level"
        yield forbidden((*path, "claims"), text)
    yield from check_resources(given, path, claims, pod_resource)
    asked, limits = amounts(given.get("requests")), amounts(given.get("limits"))
    sums = container_amounts(spec, "requests", amount)
    for name in sorted(sums):
        if name in asked and sums[name].nano > asked[name].nano:
            text = f"must be greater than or equal to aggregate container requests of {sums[name]}"
            yield invalid((*path, "requests", Key(name)), str(asked[name]), text)
    sums = container_amounts(spec, "limits", amount)
    for name in sorted(sums):
        huge = name.startswith("hugepages-")
        if huge and name in limits and sums[name].nano > limits[name].nano:
            text = f"must be greater than or equal to aggregate container limits of {sums[name]}"
            yield invalid((*path, "limits", Key(name)), str(limits[name]), text)
    for index, container in enumerate(spec["containers"] or ()):
        own = amounts(container["resources"].get("limits"))
        for name in sorted(own):
            if name in limits and own[name].nano > limits[name].nano:
                text = f"must be less than or equal to pod limits of {limits[name]}"
                place = (*path, "containers", index, Key(name), "limits")
                yield invalid(place, str(own[name]), text)

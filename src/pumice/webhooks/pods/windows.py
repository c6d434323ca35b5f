"""Rules for pods on Windows, and fields that one of the systems forbids."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.fields import FieldError, Path, Shown, forbidden, go_json, invalid
from pumice.webhooks.names import dns_subdomain, each
from pumice.webhooks.pods.defaults import all_containers

_NETBIOS: Final = r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}'
_DNS: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_LARGEST_SPEC: Final = 64 * 1024
_POD_CONTEXT: Final = (
    "appArmorProfile", "seLinuxOptions", "/hostUsers", "/hostPID", "/hostIPC", "seccompProfile",
    "fsGroup", "fsGroupChangePolicy", "sysctls", "/shareProcessNamespace", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_CONTAINER_CONTEXT: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
    "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser",
    "runAsGroup",
)  # fmt: skip
_FLAGS: Final = frozenset({"hostPID", "hostIPC"})
_NOT_HERE: Final = "cannot be set for a windows pod"


def check_windows_options(given: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    """Check the options of a container on Windows."""
    if given is None:
        return
    name = given.get("gmsaCredentialSpecName")
    if name is not None:
        place = (*path, "gmsaCredentialSpecName")
        yield from each(dns_subdomain(name), place, Shown(go_json(name)))
    spec, place = given.get("gmsaCredentialSpec"), (*path, "gmsaCredentialSpec")
    if spec == "":
        yield invalid(place, spec, "gmsaCredentialSpec cannot be an empty string")
    elif spec is not None and len(spec.encode(errors="replace")) > _LARGEST_SPEC:
        yield invalid(place, spec, "gmsaCredentialSpec size must be under 64 KiB")
    user = given.get("runAsUserName")
    if user is not None:
        yield from each(_user_name(user), (*path, "runAsUserName"), Shown(go_json(user)))


def _user_name(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if re.search(r"[\x00-\x1f\x7f]", name):
        return ["runAsUserName cannot contain control characters"]
    parts = name.split("\\")
    if len(parts) > 2:
        return ["runAsUserName cannot contain more than one backslash"]
    found = [] if len(parts) == 1 else _domain(parts[0])
    user = parts[-1]
    if not user:
        found.append("runAsUserName's User cannot be empty")
    elif len(user) > 104:
        found.append("runAsUserName's User length must not be longer than 104 characters")
    if re.fullmatch(r"[. ]+", user):
        found.append("runAsUserName's User cannot contain only periods or spaces")
    if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        text = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        found.append(text)
    return found


def _domain(domain: str) -> list[str]:
    found = []
    if len(domain) >= 256:
        found.append("runAsUserName's Domain length must be under 256 characters")
    if not (re.fullmatch(_NETBIOS, domain) or re.fullmatch(rf"{_DNS}(?:\.{_DNS})*", domain)):
        found.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    return found


def check_host_process(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check that host processes are not mixed with others."""
    of_pod = (spec["securityContext"].get("windowsOptions") or {}).get("hostProcess")
    count = running = 0
    for name, index, container in all_containers(dict(spec)):
        count += 1
        context = container.get("securityContext") or {}
        own = (context.get("windowsOptions") or {}).get("hostProcess")
        if of_pod is not None and own is not None and of_pod != own:
            text = (
                "pod hostProcess value must be identical if both are specified, "
                f"was {str(of_pod).lower()}"
            )
            place = (*path, name, index, "securityContext", "windowsOptions", "hostProcess")
            yield invalid(place, own, text)
        running += bool(own if own is not None else of_pod)
    if running and running != count:
        text = (
            "If pod contains any hostProcess containers then all containers "
            "must be HostProcess containers"
        )
        yield invalid(path, "", text)
    if running and not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid((*path, "hostNetwork"), value=False, detail=text)


def check_on_linux(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Refuse what only Windows knows."""
    text = "windows options cannot be set for a linux pod"
    if spec["securityContext"].get("windowsOptions") is not None:
        yield forbidden((*path, "securityContext", "windowsOptions"), text)
    for name, index, container in all_containers(dict(spec)):
        context = container.get("securityContext") or {}
        if context.get("windowsOptions") is not None:
            yield forbidden((*path, name, index, "securityContext", "windowsOptions"), text)


def check_on_windows(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Refuse what Windows does not know."""
    context = spec["securityContext"]
    for name in _POD_CONTEXT:
        key = name.removeprefix("/")
        holder, place = (spec, path) if name != key else (context, (*path, "securityContext"))
        given = holder.get(key)
        if given if key in _FLAGS else given is not None:
            yield forbidden((*place, key), _NOT_HERE)
    for name, index, container in all_containers(dict(spec)):
        own = container.get("securityContext") or {}
        for key in _CONTAINER_CONTEXT:
            if own.get(key) is not None:
                yield forbidden((*path, name, index, "securityContext", key), _NOT_HERE)

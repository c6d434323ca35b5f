"""Security contexts of pods and containers, and fields that one of the systems forbids."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.field_rules import (
    Rule,
    Struct,
    all_pass,
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
    go_json,
    invalid,
    required,
    too_long,
)
from pumice.webhooks.names import descending, dns_subdomain, each, user_id
from pumice.webhooks.pods.defaults import all_containers

_NETBIOS: Final = r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}'
_DNS: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_LARGEST_SPEC: Final = 64 * 1024
_NOT_HERE: Final = "cannot be set for a windows pod"


def _not_here(*keys: str) -> Rule:
    return refused_here(*keys, detail=_NOT_HERE)


def _context(*keys: str) -> Rule:
    return part("securityContext", _not_here(*keys))


def windows_options(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    """Check the options of a container on Windows."""
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


def host_process(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
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


def _of_system(pod: tuple[Rule, ...], container: Rule) -> Rule:
    """Return the rule that forbids fields of a pod and of the contexts of its containers."""

    def check(spec: Struct, path: Path, around: Any) -> Iterator[FieldError]:
        yield from walk(pod, spec, path, around)
        for name, index, one in all_containers(dict(spec)):
            yield from part("securityContext", container)(one, (*path, name, index), around)

    return check


_NO_WINDOWS: Final = refused_here(
    "windowsOptions", detail="windows options cannot be set for a linux pod"
)
on_linux: Final = _of_system((part("securityContext", _NO_WINDOWS),), _NO_WINDOWS)
on_windows: Final = _of_system(
    (
        _context("appArmorProfile", "seLinuxOptions"),
        _not_here("hostUsers"),
        refused_here("hostPID", "hostIPC", detail=_NOT_HERE, when="filled"),
        _context("seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls"),
        _not_here("shareProcessNamespace"),
        _context(
            "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
            "seLinuxChangePolicy",
        ),
    ),
    _not_here(
        "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
        "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount",
        "runAsUser", "runAsGroup",
    ),
)  # fmt: skip
"""Refuse what Windows does not know."""


_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE: Final = 4095
_IPC: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_CONTEXT: Final = (
    "Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup",
    "RunAsNonRoot", "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount",
    "SeccompProfile", "AppArmorProfile",
)  # fmt: skip
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Capabilities": ("Add", "Drop"),
    "SELinuxOptions": ("User", "Role", "Type", "Level"),
    "WindowsOptions": (
        "GMSACredentialSpecName", "GMSACredentialSpec", "RunAsUserName", "HostProcess",
    ),
    "SeccompProfile": ("Type", "LocalhostProfile"),
    "AppArmorProfile": ("Type", "LocalhostProfile"),
}  # fmt: skip
_SPELLED: Final = {
    "SELinuxOptions": "seLinuxOptions",
    "GMSACredentialSpecName": "gmsaCredentialSpecName",
    "GMSACredentialSpec": "gmsaCredentialSpec",
}
_EMPTY_TEXT: Final = frozenset({"User", "Role", "Level", "Type"})


def _shared_processes(_: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    if around.spec.get("shareProcessNamespace") and around.spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid((*path, "shareProcessNamespace"), value=True, detail=text)


def _sysctls(context: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        name, place = sysctl["name"], (*path, "sysctls", index, "name")
        if not name:
            yield required(place)
        elif len(name) > 253 or re.fullmatch(_SYSCTL, name) is None:
            text = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            yield invalid(place, name, text)
        elif name in seen:
            yield duplicate(place, name)
        dotted = _dotted(name)
        if around.spec.get("hostNetwork") and dotted.startswith("net."):
            yield invalid(place, name, "may not be specified when 'hostNetwork' is true")
        elif around.spec.get("hostIPC") and dotted.startswith(_IPC):
            yield invalid(place, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _dotted(name: str) -> str:
    """Write a sysctl with dots between its parts; the first separator decides."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))


def _unmasked(given: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    mount = given.get("procMount")
    if mount == "Unmasked" and around.spec.get("hostUsers") is not False:
        text = "`hostUsers` must be false to use `Unmasked`"
        yield invalid((*path, "procMount"), mount, text)


def _escalation(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if given.get("allowPrivilegeEscalation") is not False:
        return
    start = "cannot set `allowPrivilegeEscalation` to false and"
    if given.get("privileged"):
        yield invalid(path, _shown(given), f"{start} `privileged` to true")
    for name in (given.get("capabilities") or {}).get("add") or ():
        if name == "CAP_SYS_ADMIN":
            yield invalid(path, _shown(given), f"{start} `capabilities.Add` CAP_SYS_ADMIN")


def _shown(given: Struct) -> Shown:
    """Show a security context as Kubernetes' own type is written."""
    fields = {}
    for name in _CONTEXT:
        part = given.get(_key(name))
        if part is not None and name in _PARTS:
            part = {
                inner: part.get(_key(inner), "" if inner in _EMPTY_TEXT else None)
                for inner in _PARTS[name]
            }
        fields[name] = part
    return Shown(go_json(fields, sort=False))


def _key(name: str) -> str:
    return _SPELLED.get(name, name[0].lower() + name[1:])


def _seccomp_profile(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    kind, profile, place = given["type"], given.get("localhostProfile"), (*path, "localhostProfile")
    if kind == "Localhost":
        if profile is None:
            yield required(place, "must be set when seccomp type is Localhost")
        else:
            yield from each(descending(profile), place, profile)
    elif profile is not None:
        fields = Shown(go_json({"Type": kind, "LocalhostProfile": profile}, sort=False))
        yield invalid(place, fields, "can only be set when seccomp type is Localhost")


def _apparmor_profile(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    kind, profile, place = given["type"], given.get("localhostProfile"), (*path, "localhostProfile")
    if kind != "Localhost":
        if kind in _PROFILES and profile is not None:
            yield invalid(place, profile, "can only be set when AppArmor type is Localhost")
        return
    if not profile:
        yield required(place, "must be set when AppArmor type is Localhost")
    elif profile.strip() != profile:
        yield invalid(place, profile, "must not be padded with whitespace")
    if profile is not None and len(profile) > _LONGEST_PROFILE:
        yield too_long(place, _LONGEST_PROFILE)


def _profile(key: str, rule: Rule) -> Rule:
    kind = needed("type", detail=f"type is required when {key} is set")
    return part(key, kind, one_of("type", _PROFILES, when="filled"), rule)


_SECCOMP: Final = _profile("seccompProfile", _seccomp_profile)
_APPARMOR: Final = _profile("appArmorProfile", _apparmor_profile)
_WINDOWS: Final = part("windowsOptions", windows_options)
POD_CONTEXT: Final = (
    passes(user_id, "fsGroup", "runAsUser", "runAsGroup"),
    all_pass(user_id, "supplementalGroups"),
    _shared_processes,
    _sysctls,
    one_of("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    _SECCOMP,
    _WINDOWS,
    _APPARMOR,
    one_of("supplementalGroupsPolicy", ("Merge", "Strict")),
    one_of("seLinuxChangePolicy", ("MountOption", "Recursive")),
)
CONTAINER_CONTEXT: Final = (
    passes(user_id, "runAsUser", "runAsGroup"),
    one_of("procMount", ("Default", "Unmasked")),
    _unmasked,
    _SECCOMP,
    _escalation,
    _WINDOWS,
    _APPARMOR,
)

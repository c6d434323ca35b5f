"""Security contexts of pods and containers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.fields import (
    FieldError,
    Path,
    Shown,
    duplicate,
    go_json,
    invalid,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.names import each, user_id
from pumice.webhooks.pods.paths import descending
from pumice.webhooks.pods.windows import check_windows_options

_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE: Final = 4095
_IPC: Final = ("kernel.shm_rmid_forced",)
_IPC_PREFIXES: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")
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


def check_pod_context(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check the security context of a pod."""
    given, place = spec["securityContext"], (*path, "securityContext")
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if given.get(name) is not None:
            yield from each(user_id(given[name]), (*place, name), given[name])
    for index, group in enumerate(given.get("supplementalGroups") or ()):
        yield from each(user_id(group), (*place, "supplementalGroups", index), group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid((*place, "shareProcessNamespace"), value=True, detail=text)
    yield from _sysctls(given.get("sysctls") or [], (*place, "sysctls"), spec)
    change = given.get("fsGroupChangePolicy")
    if change is not None and change not in ("Always", "OnRootMismatch"):
        yield unsupported((*place, "fsGroupChangePolicy"), change, ("Always", "OnRootMismatch"))
    yield from _seccomp(given.get("seccompProfile"), (*place, "seccompProfile"))
    yield from check_windows_options(given.get("windowsOptions"), (*place, "windowsOptions"))
    yield from _apparmor(given.get("appArmorProfile"), (*place, "appArmorProfile"))
    for name, known in (
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if given.get(name) is not None and given[name] not in known:
            yield unsupported((*place, name), given[name], known)


def _sysctls(
    given: list[Mapping[str, Any]], path: Path, spec: Mapping[str, Any]
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, sysctl in enumerate(given):
        name, place = sysctl["name"], (*path, index, "name")
        if not name:
            yield required(place)
        elif len(name) > 253 or re.fullmatch(_SYSCTL, name) is None:
            text = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            yield invalid(place, name, text)
        elif name in seen:
            yield duplicate(place, name)
        dotted = _dotted(name)
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield invalid(place, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and _is_ipc(dotted):
            yield invalid(place, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _dotted(name: str) -> str:
    """Write a sysctl with dots between its parts; the first separator decides."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))


def _is_ipc(name: str) -> bool:
    return name == "kernel.sem" or name in _IPC or name.startswith(_IPC_PREFIXES)


def check_container_context(
    given: Mapping[str, Any] | None, path: Path, *, host_users: bool
) -> Iterator[FieldError]:
    """Check the security context of a container."""
    if given is None:
        return
    for name in ("runAsUser", "runAsGroup"):
        if given.get(name) is not None:
            yield from each(user_id(given[name]), (*path, name), given[name])
    mount = given.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield unsupported((*path, "procMount"), mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            text = "`hostUsers` must be false to use `Unmasked`"
            yield invalid((*path, "procMount"), mount, text)
    yield from _seccomp(given.get("seccompProfile"), (*path, "seccompProfile"))
    if given.get("allowPrivilegeEscalation") is False:
        yield from _escalation(given, path)
    yield from check_windows_options(given.get("windowsOptions"), (*path, "windowsOptions"))
    yield from _apparmor(given.get("appArmorProfile"), (*path, "appArmorProfile"))


def _escalation(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    start = "cannot set `allowPrivilegeEscalation` to false and"
    if given.get("privileged"):
        yield invalid(path, _shown(given), f"{start} `privileged` to true")
    for name in (given.get("capabilities") or {}).get("add") or ():
        if name == "CAP_SYS_ADMIN":
            yield invalid(path, _shown(given), f"{start} `capabilities.Add` CAP_SYS_ADMIN")


def _shown(given: Mapping[str, Any]) -> Shown:
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


def _seccomp(given: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    if given is None:
        return
    kind, profile = given["type"], given.get("localhostProfile")
    if not kind:
        yield required((*path, "type"), "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported((*path, "type"), kind, _PROFILES)
    place = (*path, "localhostProfile")
    if kind == "Localhost":
        if profile is None:
            yield required(place, "must be set when seccomp type is Localhost")
        else:
            yield from descending(profile, place)
    elif profile is not None:
        fields = Shown(go_json({"Type": kind, "LocalhostProfile": profile}, sort=False))
        yield invalid(place, fields, "can only be set when seccomp type is Localhost")


def _apparmor(given: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    if given is None:
        return
    kind, profile, place = given["type"], given.get("localhostProfile"), (*path, "localhostProfile")
    if kind == "Localhost":
        yield from _local_profile(profile, place)
    elif kind in _PROFILES:
        if profile is not None:
            yield invalid(place, profile, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield required((*path, "type"), "type is required when appArmorProfile is set")
    else:
        yield unsupported((*path, "type"), kind, _PROFILES)


def _local_profile(profile: str | None, place: Path) -> Iterator[FieldError]:
    text = "must be set when AppArmor type is Localhost"
    if profile is None:
        yield required(place, text)
        return
    if profile.strip() != profile:
        yield invalid(place, profile, "must not be padded with whitespace")
    elif not profile:
        yield required(place, text)
    if len(profile) > _LONGEST_PROFILE:
        yield too_long(place, _LONGEST_PROFILE)

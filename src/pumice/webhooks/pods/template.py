"""Whole pod templates and pods: metadata, special annotations, and the spec."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.api.annotations import MIRROR
from pumice.api.kinds import Manifest
from pumice.webhooks.contents import content_key
from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.field_rules import items
from pumice.webhooks.fields import FieldError, Key, Path, forbidden, invalid, quoted
from pumice.webhooks.go_types import DecodeError, decode
from pumice.webhooks.metadata import check_annotations, check_metadata
from pumice.webhooks.names import descending, each, labels
from pumice.webhooks.pods.containers import check_image
from pumice.webhooks.pods.defaults import all_containers, filled_pod, filled_template
from pumice.webhooks.pods.placement import toleration
from pumice.webhooks.pods.spec import check_spec

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_OF: Final = "container.apparmor.security.beta.kubernetes.io/"


class TemplateChecks:
    """Checks decoded pod templates; equal ones once: many tasks differ by their names alone."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[FieldError]] = {}

    def errors(self, template: dict[str, Any], *, name: str, namespace: str) -> list[FieldError]:
        """Find what is wrong; ``name`` and ``namespace`` are those its pods would have."""
        check_cpu()
        metadata = {"name": name, "namespace": namespace}
        return [*check_metadata(metadata, namespaced=True), *self._of_content(template)]

    def _of_content(self, template: dict[str, Any]) -> list[FieldError]:
        key = content_key({"template": template})
        if key in self._known:
            return self._known[key]
        found = [*_check_content(template)]
        if key:
            self._known[key] = found
        return found


def _check_content(template: dict[str, Any]) -> Iterator[FieldError]:
    filled = filled_template(template)
    path: Path = ("template",)
    own = filled["metadata"]
    annotations = own.get("annotations") or {}
    yield from labels(own.get("labels"), (*path, "labels"))
    yield from check_annotations(annotations, (*path, "annotations"))
    yield from _annotations(annotations, filled["spec"], (*path, "annotations"))
    yield from check_spec(filled["spec"], (*path, "spec"), of_pod=False)
    yield from _profiles(annotations, filled["spec"], (*path, "spec"))
    if filled["spec"].get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        yield forbidden((*path, "spec", "ephemeralContainers"), text)


def check_pod(pod: dict[str, Any]) -> Iterator[FieldError]:
    """Check a decoded new pod."""
    yield from check_metadata(pod["metadata"], namespaced=True)
    yield from check_pod_content(pod)


def check_pod_content(pod: dict[str, Any]) -> Iterator[FieldError]:
    """Check all of a decoded new pod but what metadata has in common with other kinds."""
    filled = filled_pod(pod)
    annotations, spec = filled["metadata"].get("annotations") or {}, filled["spec"]
    yield from _annotations(annotations, spec, ("metadata", "annotations"))
    yield from check_spec(spec, ("spec",), of_pod=True)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield from check_image(container, ("spec", name, index))
    if spec.get("ephemeralContainers"):
        yield forbidden(("spec", "ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        yield forbidden(("spec", "nodeName"), text)
    yield from _profiles(annotations, spec, ("spec",))


def pod_content(pod: Manifest, *, is_new: bool) -> bytes:
    """Return a short form of what the check of a pod's content depends on.

    Of annotations, only those of Kubernetes itself count.
    """
    metadata = pod.get("metadata")
    given = metadata.get("annotations") if isinstance(metadata, dict) else None
    given = given if isinstance(given, dict) else {}
    special = [(key, value) for key, value in given.items() if "kubernetes.io/" in str(key)]
    return content_key(pod, is_new, special)


def _annotations(
    given: Mapping[str, str], spec: Mapping[str, Any], path: Path
) -> Iterator[FieldError]:
    if MIRROR in given and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid((*path, Key(MIRROR)), given[MIRROR], text)
    if given.get(_TOLERATIONS):
        yield from _annotated_tolerations(given[_TOLERATIONS], path)
    if _COST in given and not _is_cost(given[_COST]):
        yield invalid((*path, Key(_COST)), given[_COST], "must be a 32bit integer")
    if _SECCOMP in given:
        yield from _seccomp(given[_SECCOMP], (*path, _SECCOMP))
    for key in sorted(given):
        if key.startswith(_SECCOMP_OF):
            yield from _seccomp(given[key], (*path, key))
    names = {container["name"] for _, _, container in all_containers(dict(spec))}
    for key in sorted(given):
        if key.startswith(_APPARMOR_OF):
            yield from _apparmor(key, given[key], names, path)


def _apparmor(key: str, profile: str, names: set[str], path: Path) -> Iterator[FieldError]:
    container, place = key.removeprefix(_APPARMOR_OF), (*path, Key(key))
    if container not in names:
        yield invalid(place, container, "container not found")
    known = ("", "runtime/default", "unconfined")
    if profile not in known and not profile.startswith("localhost/"):
        text = f"invalid AppArmor profile name: {quoted(profile)}"
        yield invalid(place, profile, text)


def _is_cost(text: str) -> bool:
    plain = text.removeprefix("-")
    if not plain.isascii() or not plain.isdigit() or len(plain) > 10:
        return False
    leading = plain[0] == "0" and text != "0"
    return not leading and -(2**31) <= int(text) < 2**31


def _annotated_tolerations(text: str, path: Path) -> Iterator[FieldError]:
    try:
        given = json.loads(text)
        read = decode({"tolerations": given}, "v1.PodSpec").get("tolerations") or []
    except json.JSONDecodeError:
        yield invalid(path, _TOLERATIONS, "invalid character in the annotation")
        return
    except DecodeError as error:
        yield invalid(path, _TOLERATIONS, str(error))
        return
    rule = items(_TOLERATIONS, toleration)
    yield from rule({_TOLERATIONS: read}, path, None)


def _seccomp(profile: str, path: Path) -> Iterator[FieldError]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith("localhost/"):
        local = profile.removeprefix("localhost/")
        yield from each(descending(local), path, local)
    else:
        yield invalid(path, profile, "must be a valid seccomp profile")


def _profiles(
    annotations: Mapping[str, str], spec: dict[str, Any], path: Path
) -> Iterator[FieldError]:
    """Compare profiles in fields with those in the older annotations."""
    context = spec["securityContext"]
    profile = context.get("seccompProfile")
    if profile is not None and _SECCOMP in annotations:
        place = (*path, "securityContext", "seccompProfile")
        yield from _match(annotations[_SECCOMP], profile, place, "seccomp")
    for name, index, container in all_containers(spec):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        key = f"{_SECCOMP_OF}{container['name']}"
        if profile is not None and key in annotations:
            place = (*path, name, index, "securityContext", "seccompProfile")
            yield from _match(annotations[key], profile, place, "seccomp")
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for name, index, container in all_containers(spec):
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = own if own is not None else context.get("appArmorProfile")
        key = f"{_APPARMOR_OF}{container['name']}"
        if profile is not None and key in annotations:
            place = (*path, name, index, "securityContext", "appArmorProfile")
            yield from _match(annotations[key], profile, place, "apparmor")


def _match(
    annotation: str, profile: Mapping[str, Any], path: Path, what: str
) -> Iterator[FieldError]:
    accepted = {
        "Unconfined": ("unconfined",),
        "RuntimeDefault": ("runtime/default", *(("docker/default",) if what == "seccomp" else ())),
    }
    kind = profile["type"]
    wrong = f"{what} type in annotation and field must match"
    if kind in accepted:
        if annotation not in accepted[kind]:
            yield forbidden((*path, "type"), wrong)
    elif kind == "Localhost":
        if not annotation.startswith("localhost/"):
            yield forbidden((*path, "type"), wrong)
        elif annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
            text = f"{what} profile in annotation and field must match"
            yield forbidden((*path, "localhostProfile"), text)

"""Roles, made from the table of what each process may do."""

from collections.abc import Iterable
from typing import Any, Final

from pumice.api.permissions import (
    ADMISSION,
    CONTROLLERS,
    FOR_PODGROUPS,
    FOR_UI,
    FOR_UI_ACTIONS,
    FOR_UI_LOGIN,
    SCHEDULER,
    SHADOW,
    Component,
    Grant,
    grant,
)

__all__ = [
    "ADMISSION",
    "CONTROLLERS",
    "FOR_PODGROUPS",
    "FOR_UI",
    "FOR_UI_ACTIONS",
    "FOR_UI_LOGIN",
    "SCHEDULER",
    "SHADOW",
    "Component",
    "Grant",
    "admission_init",
    "listed",
    "rules",
]
Manifest = dict[str, Any]

WEBHOOKS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def admission_init(secret: str, webhooks: Iterable[str]) -> Component:
    """Return the component that makes the webhooks' certificate: it changes named objects only."""
    names = tuple(webhooks)
    unseen = "a command of its own with tests of its own"
    return Component(
        "admission-init",
        everywhere=(
            grant(
                "admissionregistration.k8s.io",
                " ".join(WEBHOOKS),
                "get patch",
                names=names,
                unseen=unseen,
            ),
        ),
        at_home=(
            grant("", "secrets", "create", unseen=unseen),
            grant("", "secrets", "get update", names=(secret,), unseen=unseen),
        ),
    )


def rules(grants: Iterable[Grant]) -> list[Manifest]:
    """Return the rules of a role; lines about the same resources become one."""
    merged: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in grants:
        for resource in each.resources:
            verbs = merged.setdefault((each.group, (resource,), each.names), [])
            verbs += [verb for verb in each.verbs if verb not in verbs]
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resources, names), verbs in merged.items():
        together.setdefault((group, tuple(verbs), names), []).extend(resources)
    return [
        Grant(group, tuple(resources), verbs, names).rule()
        for (group, verbs, names), resources in together.items()
    ]


def listed(components: Iterable[Component]) -> str:
    """Return all permissions as lists for the documentation, one line for the same verbs."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for component in components:
        for where, grants in (
            ("in the whole cluster", component.everywhere),
            ("in its own namespace", component.at_home),
            ("in `custom.job_secret_namespaces`", component.in_job_namespaces),
        ):
            for rule in rules(grants):
                group = rule["apiGroups"][0]
                names = [f"`{one}{f'.{group}' if group else ''}`" for one in rule["resources"]]
                if "resourceNames" in rule:
                    names[-1] += f" ({', '.join(rule['resourceNames'])})"
                row = (component.name, where, " ".join(rule["verbs"]))
                rows.setdefault(row, []).extend(names)
    lines = []
    last = None
    for (name, where, verbs), of in rows.items():
        if (name, where) != last:
            lines += ["", f"**{name}**, {where}:", ""]
            last = (name, where)
        lines.append(f"- {verbs}: {', '.join(of)}")
    return "\n".join(lines) + "\n\n"

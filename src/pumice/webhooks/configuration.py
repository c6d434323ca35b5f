"""Reads the configuration of resource groups, the file behind ``--admission-conf``."""

from typing import Any

from pumice.webhooks.review import ResourceGroup


def read_groups(content: Any) -> tuple[ResourceGroup, ...]:
    """Read what a YAML file says; what is of the wrong type is left out."""
    listed = content.get("resourceGroups") if isinstance(content, dict) else None
    return tuple(_group(one) for one in listed or () if isinstance(one, dict))


def _group(given: dict[str, Any]) -> ResourceGroup:
    chosen = given.get("object")
    chosen = chosen if isinstance(chosen, dict) else {}
    labels = given.get("labels")
    return ResourceGroup(
        name=str(given.get("resourceGroup") or ""),
        key=str(chosen.get("key") or ""),
        values=tuple(str(value) for value in chosen.get("value") or ()),
        scheduler_name=str(given.get("schedulerName") or ""),
        tolerations=tuple(
            _toleration(one) for one in given.get("tolerations") or () if isinstance(one, dict)
        ),
        labels={str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        affinity=str(given.get("affinity") or ""),
    )


def _toleration(given: dict[str, Any]) -> dict[str, Any]:
    order = ("key", "operator", "value", "effect", "tolerationSeconds")
    return {name: given[name] for name in order if given.get(name) not in (None, "")}

"""Applies the JSON patches of webhooks, as an API server does."""

from typing import Any

from pumice.api.cloning import clone
from pumice.webhooks.review import Patch


class PatchError(ValueError):
    """A patch that does not apply; the message is the API server's."""


def applied(document: Any, patch: Patch) -> Any:
    """Return a changed copy of a document.

    Raises:
        PatchError: the place of a change does not exist.
    """
    changed = clone(document)
    for change in patch:
        _apply(changed, change)
    return changed


def _apply(document: Any, change: dict[str, Any]) -> None:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in change["path"].split("/")[1:]]
    holder = document
    for step in steps[:-1]:
        holder = holder.get(step) if isinstance(holder, dict) else _item(holder, step)
        if holder is None:
            text = f'doc is missing path: "{change["path"]}": missing value'
            raise PatchError(f"{change['op']} operation does not apply: {text}")
    last, value = steps[-1], clone(change.get("value"))
    if isinstance(holder, list):
        holder.insert(len(holder) if last == "-" else int(last), value)
    elif change["op"] == "replace" and last not in holder:
        text = f"doc is missing key: {change['path']}: missing value"
        raise PatchError(f"replace operation does not apply: {text}")
    else:
        holder[last] = value


def _item(holder: Any, step: str) -> Any:
    if isinstance(holder, list) and step.isascii() and step.isdecimal() and int(step) < len(holder):
        return holder[int(step)]
    return None

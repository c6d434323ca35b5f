"""Plugins that failed in this session, as findings."""

from typing import Final

from pumice.api.codes import Cause
from pumice.examine.findings import Finding
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

EXTENDER: Final = "extender"


def failed_in(ssn: Session, plugin: Plugin, hook: str) -> Finding | None:
    """Return that a plugin failed in a hook, if it did."""
    error = ssn.failures.errors.get((plugin.name, hook))
    if error is None:
        return None
    text = f"plugin {plugin.name} failed in {hook}: {type(error).__name__}: {error}"
    return Finding(Cause.PLUGIN_FAILED, text, None, {"plugin": plugin.name, "hook": hook})

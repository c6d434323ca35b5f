"""Plugins that failed in this session, as findings."""

from typing import Final

from pumice.api.codes import Cause
from pumice.examine.findings import Finding
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

EXTENDER: Final = "extender"


def failed_in(ssn: Session, plugin: Plugin, hook: str) -> Finding | None:
    """Return that a plugin failed in a hook, if it did."""
    text = ssn.failures.line(plugin.name, hook)
    if not text:
        return None
    return Finding(Cause.PLUGIN_FAILED, text, None, {"plugin": plugin.name, "hook": hook})

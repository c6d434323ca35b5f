"""resourcequota: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class ResourceQuotas(Plugin, name="resourcequota"):
    """Not written yet."""

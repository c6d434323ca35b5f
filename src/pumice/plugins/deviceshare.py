"""deviceshare: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class DeviceShare(Plugin, name="deviceshare"):
    """Not written yet."""

"""deviceshare: several pods on one accelerator card, by memory, by number or by cores."""

from pumice.plugins.deviceshare.plugin import DeviceShare

__all__ = ["DeviceShare"]

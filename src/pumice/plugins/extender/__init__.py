"""extender: call an external service at nearly every step of scheduling."""

from pumice.plugins.extender.plugin import Extender, ExtenderClient

__all__ = ["Extender", "ExtenderClient"]

"""conformance: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Conformance(Plugin, name="conformance"):
    """Not written yet."""

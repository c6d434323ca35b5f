"""pdb: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Pdb(Plugin, name="pdb"):
    """Not written yet."""

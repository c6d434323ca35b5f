"""What happened to pods while time passed."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A pod that was bound, evicted, ended or is gone."""

    at: float
    pod: str
    job: str
    """The name of its job: the Volcano job if there is one, else the pod group."""
    node: str = ""
    whom: str = ""
    """The pod or pod group that it was evicted for; empty: for none."""
    whose: str = ""
    """The name of the job that it was evicted for."""
    action: str = ""


@dataclass
class Story:
    """The events so far, in order."""

    binds: list[Moved] = field(default_factory=list)
    evictions: list[Moved] = field(default_factory=list)
    ends: list[Moved] = field(default_factory=list)
    gone: list[Moved] = field(default_factory=list)
    instants: list[tuple[float, str]] = field(default_factory=list)
    """Times at which time alone changed an answer, and the plugin."""

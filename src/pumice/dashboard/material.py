"""The objects of a cluster at a moment: the input of expensive answers.

Taking material costs a list of references for each kind: objects are shared with their owner
and must not be changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pumice.api.kinds import JOB, Manifest
from pumice.api.objects import KINDS
from pumice.cluster.base import Cluster
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.sources import load_world
from pumice.errors import ClusterError, NotFoundError, RejectedError
from pumice.framework.registry import load_plugins

CONF_KIND: Final = "ConfigMap"
READ: Final = tuple(
    f"{kind}.{version.partition('/')[0]}" if "/" in version else kind for version, kind in KINDS
)
"""Kinds that scheduling reads."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """Objects by kind, as a cluster lists them, a complete world, or a record."""

    now: float
    objects: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)
    """By kind; the kinds that scheduling reads, Volcano jobs, and config maps."""
    conf: str = ""
    """The scheduler configuration; empty: it is among the config maps, if anywhere."""
    world: ClusterState | None = None
    """A world that was read from files, without its plugins; then there are no objects."""
    record: Path | None = None
    """Where the record is of which this is the moment ``now``; then there are no objects."""
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Kinds that the cluster did not show, with its reason."""
    plugins: tuple[str, ...] = ()
    """Where plugins of the user's own come from: texts, since classes stay in their process."""

    def to_world(self) -> ClusterState:
        """Return the world for answers."""
        plugins = load_plugins(self.plugins)
        if self.world is not None:
            return replace(self.world, plugins=plugins)
        world = (
            load_world([self.record], now=self.now) if self.record else load_world([_Held(self)])
        )
        # a reader passes over config maps that are not shown
        world = replace(world, plugins=plugins, hidden={**self.hidden, **world.hidden})
        if self.conf:
            source = "--conf" if self.record else "the running scheduler"
            return replace(world, conf=self.conf, conf_source=source)
        return world


class _Held:
    """Material as a cluster that can only be listed."""

    def __init__(self, material: Material) -> None:
        self._material = material

    def now(self) -> float:
        return self._material.now

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        del namespace, labels
        if kind in self._material.hidden:
            raise RejectedError(kind, problem=self._material.hidden[kind])
        return list(self._material.objects.get(kind, ())), ""

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        for one in self._material.objects.get(kind, ()):
            meta = one["metadata"]
            if (meta.get("namespace", ""), meta["name"]) == (namespace, name):
                return one
        raise NotFoundError(kind, namespace, name)


def gather(cluster: Cluster, kinds: Iterable[str], *, now: float, conf: str = "") -> Material:
    """List the kinds of a cluster; one that it does not show is left out, with its reason."""
    objects: dict[str, Sequence[Manifest]] = {}
    hidden: dict[str, str] = {}
    for kind in kinds:
        try:
            objects[kind] = cluster.list(kind)[0]
        except NotFoundError:
            continue
        except ClusterError as error:
            hidden[kind] = error.problem
    return Material(now=now, objects=objects, conf=conf, hidden=hidden)


ALL_KINDS: Final[tuple[str, ...]] = (*READ, JOB, CONF_KIND)
"""Kinds that an embedded and a real cluster can show."""


def header(material: Material) -> dict[str, Any]:
    """Return a material without its objects."""
    return {
        "now": material.now,
        "conf": material.conf,
        "hidden": dict(material.hidden),
        "plugins": material.plugins,
    }

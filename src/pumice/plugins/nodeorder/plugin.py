"""nodeorder: Kubernetes' own scores, weighted and added."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import HOSTNAME
from pumice.core.labels import node_labels, untolerated
from pumice.core.pod_terms import ShapeTerms, pod_terms
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Shape
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.placement.kernel import NodeTerm, requested_score
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.nodeorder.amounts import AmountScores
from pumice.plugins.nodeorder.ranks import (
    ByNeighbours,
    ByNodeAffinity,
    BySpread,
    ByTaints,
    Rank,
    SoftSpread,
)

_DERIVED = "nodeorder.images"


class NodeImages:
    """Image name to the rows of the nodes that have it, and its size; kept between sessions.

    Only nodes whose list of images changed are read again.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._names: list[str] = []
        self._seen: list[Any] = []
        self._rows: dict[str, dict[int, int]] = {}

    def follow(self, snapshot: Snapshot) -> None:
        """Read nodes that changed since the last call."""
        nodes = snapshot.nodes
        if self._generation == nodes.generation:
            return
        self._generation = nodes.generation
        names = nodes.names[: nodes.n]
        if names[: len(self._names)] != self._names:  # rows moved
            self._seen, self._rows = [], {}
        self._names = list(names)
        self._seen += [()] * (len(names) - len(self._seen))
        for row in range(len(names)):
            node: Any = nodes.objects[row]
            images = node.status.images
            if images is not self._seen[row] and images != self._seen[row]:
                self._replace(row, images)
            self._seen[row] = images

    def _replace(self, row: int, images: Any) -> None:
        for image in self._seen[row]:
            for name in image.names:
                self._rows.get(name, {}).pop(row, None)
        for image in images:
            for name in image.names:
                self._rows.setdefault(name, {})[row] = image.size_bytes

    def find(self, name: str) -> tuple[int, NDArray[np.intp]] | None:
        """Return the size of an image, as the first node reports it, and the nodes that have it."""
        found = self._rows.get(name)
        if not found:
            return None
        rows = np.fromiter(found, dtype=np.intp, count=len(found))
        return found[int(rows.min())], rows


def node_images(snapshot: Snapshot) -> NodeImages:
    """Return the images on the nodes of a snapshot."""
    found: NodeImages | None = snapshot.derived.get(_DERIVED)
    if found is None:
        found = snapshot.derived[_DERIVED] = NodeImages()
    found.follow(snapshot)
    return found


GPU = "nvidia.com/gpu"
_MIB = 1024 * 1024
_SMALL, _LARGE = 23 * _MIB, 1000 * _MIB
"""Bytes of images below which none count; above the second (for each container) no more do."""


@dataclass(kw_only=True)
class NodeOrder(Plugin, name="nodeorder"):
    """Score nodes as Kubernetes' scheduler does: eight scores of 0 to 100, each with its weight.

    Reads the Kubernetes view of nodes, which is up to date only with predicates;
    otherwise every task is scored against the state in which the session opened.
    """

    simulator = SimulatorAssumptions()
    least: int = arg("leastrequested.weight", default=1, doc="weight of free CPU and memory")
    most: int = arg("mostrequested.weight", default=0, doc="weight of used CPU and memory")
    node_affinity: int = arg("nodeaffinity.weight", default=2, doc="weight of node affinity")
    pod_affinity: int = arg("podaffinity.weight", default=2, doc="weight of pod affinity")
    balanced: int = arg("balancedresource.weight", default=1, doc="weight of even use")
    taints: int = arg("tainttoleration.weight", default=3, doc="weight of taints to avoid")
    images: int = arg("imagelocality.weight", default=1, doc="weight of images that are present")
    spread: int = arg("podtopologyspread.weight", default=2, doc="weight of soft topology spread")

    def on_open(self, ssn: PluginSession) -> None:
        """Find the scores that can differ at all."""
        snapshot = ssn.snapshot
        self._snapshot, self._nodes, self._tasks = snapshot, snapshot.nodes, snapshot.tasks
        self._amounts: AmountScores | None = None
        if self.least or self.most or self.balanced:
            gpu = snapshot.resources.row(GPU)
            self._amounts = AmountScores(self.least, self.most, self.balanced, gpu)
        self._terms = pod_terms(snapshot)
        self.tells_apart = bool(self.pod_affinity and self._terms.preferred)
        self._ranks: dict[Any, tuple[Rank, ...]] = {}

    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column | None:
        """Score images that are present on a node, by size and by how many nodes have them."""
        spec, n, images = shape.spec, self._nodes.n, node_images(facts.snapshot)
        containers = (*spec.init_containers, *spec.containers)
        if not self.images or not containers:
            return None
        ready: Any = None
        for container in containers:
            found = images.find(_full_name(container.image))
            if found is not None:
                size, rows = found
                ready = np.zeros(n, dtype=np.int64) if ready is None else ready
                ready[rows] += int(size * (len(rows) / n))
        if ready is None:
            return None
        most = _LARGE * len(containers)
        score = 100 * (ready[facts.rows].clip(_SMALL, most) - _SMALL) // (most - _SMALL)
        return np.asarray(self.images * score, dtype=np.float64)

    def node_terms(self, task: Task) -> list[NodeTerm]:
        """State the scores of requests, and those that compare candidates."""
        amounts, ranks = self._amounts, [rank.as_term() for rank in self._ranks_for(task)]
        if amounts is None:
            return [*ranks]
        return [requested_score(amounts.least, amounts.most, amounts.balanced, amounts.gpu), *ranks]

    def score_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Score requests: least, most and balanced."""
        return None if self._amounts is None else self._amounts.of(task.shape, nodes)

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Compare candidates: node affinity, taints, neighbours, soft spread."""
        total: Column | None = None
        for rank in self._ranks_for(task):
            column = rank.of(nodes.rows)
            if column is not None:
                total = column if total is None else total + column
        return total

    def vary_by(self, task: Task) -> Hashable:
        """Return the wishes of other pods for or against this one."""
        if not self.tells_apart:
            return None
        return tuple(self._terms.binding(int(self._tasks.label_class[task.row]))[1]) or None

    def _ranks_for(self, task: Task) -> tuple[Rank, ...]:
        key: Any = task.shape.id
        if self._terms.speaking:
            key = (task.shape.id, self._terms.like(self._tasks.label_class.item(task.row)))
        ranks = self._ranks.get(key)
        if ranks is None:
            ranks = self._ranks[key] = tuple(self._find_ranks(task))
        return ranks

    def _find_ranks(self, task: Task) -> list[Rank]:
        """List the scores that can differ for a pod."""
        found: list[Rank] = []
        shape, label_class = task.shape, int(self._tasks.label_class[task.row])
        raw = self._wished_nodes(shape) if self.node_affinity else None
        if raw is not None:
            found.append(ByNodeAffinity(self.node_affinity, raw))
        raw = (
            untolerated(self._snapshot, shape.spec, ("PreferNoSchedule",)) if self.taints else None
        )
        if raw is not None:
            found.append(ByTaints(self.taints, raw))
        if not self._terms.speaking:
            return found
        terms = self._terms.book.of(shape, label_class) or ShapeTerms()
        if self.pod_affinity:
            matching, wishing = self._terms.matching, self._terms.wishing
            wishes = [(w, matching([term.matcher], term.key)) for w, term in terms.preferred]
            wishes += [(wish[0], wishing(wish)) for wish in self._terms.binding(label_class)[1]]
            if wishes:
                found.append(ByNeighbours(self.pod_affinity, wishes))
        if self.spread and terms.soft_spread:
            found.append(BySpread(self.spread, self._spreads(shape, terms)))
        return found

    def _wished_nodes(self, shape: Shape) -> Any:
        """Add up, node by node, the weights of preferred node affinity."""
        affinity = shape.spec.affinity.node_affinity if shape.spec.affinity else None
        raw: Any = None
        for each in affinity.preferred if affinity else ():
            here = each.weight * node_labels(self._snapshot).matching(each.preference)
            raw = here if raw is None else raw + here
        return raw

    def _spreads(self, shape: Shape, terms: ShapeTerms) -> list[SoftSpread]:
        """Return the counts of soft constraints; for hosts, every node is counted."""
        matching, labels = self._terms.matching, node_labels(self._snapshot)
        found = []
        for each, mask in self._terms.eligible(shape, terms.soft_spread):
            if each.key == HOSTNAME:
                counter = matching([each.counted], None, staying=True)
            else:
                counter = matching([each.counted], each.key, eligible=mask, staying=True)
            found.append(SoftSpread(labels.column(each.key), counter, each.max_skew))
        return found


def _full_name(image: str) -> str:
    """Return the full name of an image; without a tag it is ``latest``."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"

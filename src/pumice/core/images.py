"""The container images on nodes, kept from session to session.

Only nodes whose list of images changed are read again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.snapshot import Snapshot

_DERIVED = "core.images"


class NodeImages:
    """Image name to the rows of the nodes that have it, and its size."""

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

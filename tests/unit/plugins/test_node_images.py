"""Images on nodes are known from session to session."""

from typing import Any

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.plugins.nodeorder.plugin import node_images
from pumice.testing import node
from tests.present import present


def having(name: Any, **sizes: Any) -> Any:
    made = node(name)
    made["status"]["images"] = [{"names": [k], "sizeBytes": v} for k, v in sizes.items()]
    return from_manifest(made)


def test_an_image_has_the_size_its_first_node_tells_and_all_its_nodes() -> None:
    snapshot = Ingest(Snapshot()).load([having("a"), having("b", x=5), having("c", x=7)])
    size, rows = present(node_images(snapshot).find("x"))
    assert (size, sorted(rows.tolist())) == (5, [1, 2])


def test_an_image_that_is_nowhere_is_not_found() -> None:
    assert node_images(Ingest(Snapshot()).load([having("a")])).find("x") is None


def test_images_follow_nodes_that_change_come_and_go() -> None:
    ingest = Ingest(Snapshot())
    snapshot = ingest.load([having("a", x=5), having("b", x=5, y=1), having("c", y=1)])
    assert sorted(present(node_images(snapshot).find("x"))[1].tolist()) == [0, 1]
    ingest.load([having("a", y=1), having("d", x=9)])
    assert sorted(present(node_images(snapshot).find("x"))[1].tolist()) == [1, 3]
    ingest.delete(having("b"))
    ingest.settle()
    assert (
        present(node_images(snapshot).find("x"))[0],
        present(node_images(snapshot).find("x"))[1].tolist(),
    ) == (9, [2])
    assert sorted(present(node_images(snapshot).find("y"))[1].tolist()) == [0, 1]

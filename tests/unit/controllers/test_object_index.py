"""Objects by kind: those below another one are found without a look at all."""

from typing import Any

from pumice.controllers.view import ObjectIndex


def queue(name: str, parent: Any = None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": parent}}


def names(index: ObjectIndex, parent: str) -> list[str]:
    return [one["metadata"]["name"] for one in index.below(parent)]


def test_objects_below_another_follow_every_change() -> None:
    index = ObjectIndex()
    assert names(index, "a") == []
    index.fill([queue("c", "a"), queue("b", "a"), queue("a"), {"metadata": {"name": "odd"}}])
    assert names(index, "a") == ["b", "c"]
    index.put(queue("c", "b"))
    index.put(queue("d", "a"))
    assert (names(index, "a"), names(index, "b")) == (["b", "d"], ["c"])
    index.remove(queue("d"))
    index.put(queue("b", "a"))
    assert (names(index, "a"), names(index, "x")) == (["b"], [])

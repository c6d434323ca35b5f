"""A group whose content is known to be valid gets the answer of one that is not."""

from typing import Any

import pytest

from pumice.webhooks import small_kinds as podgroup
from pumice.webhooks.contents import KnownContents
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import Answer, Options, Request

_OPEN = {"metadata": {"name": "q"}, "status": {"state": "Open"}}
_CLOSED = {"metadata": {"name": "q"}, "status": {"state": "Closed"}}


class _World:
    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def queue(self, name: str) -> Any:
        return self._queue

    def queues(self) -> Any:
        return []

    def below(self, name: str) -> Any:
        return []

    def namespace(self, name: str) -> Any:
        return None


def _group(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", **metadata},
        "spec": {"minMember": 2, "queue": "q", "minResources": {"cpu": "1"}},
    }


def _answer(group: Any, queue: Any, operation: str = "CREATE") -> Answer:
    request = Request(operation=operation, object=group, namespace="default", name="g")
    return SERVICES["/podgroups/validate"].answer(request, _World(queue), Options())


@pytest.mark.parametrize("queue", [_OPEN, _CLOSED, None])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize(
    "metadata", [{}, {"name": "another"}, {"labels": "none"}, {"labels": {"a": 1}}]
)
def test_known_contents_get_the_same_answer(
    metadata: Any, operation: str, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(podgroup, "_VALID", KnownContents[str]())
    unknown = _answer(_group(**metadata), queue, operation)
    assert _answer(_group(), _OPEN).allowed  # which makes the content known
    assert len(podgroup._VALID._known) == 1
    assert _answer(_group(**metadata), queue, operation) == unknown


def test_a_content_with_a_fault_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podgroup, "_VALID", KnownContents[str]())
    group = _group()
    group["spec"]["minResources"] = {"not a name": "1"}
    first, second = _answer(group, _OPEN), _answer(group, _OPEN)
    assert not first.allowed
    assert first == second

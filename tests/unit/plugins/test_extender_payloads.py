"""extender: amounts and indices as they are sent, and which pods share an answer."""

from typing import Any

import pytest

from pumice.testing import node, pod, pod_group, queue
from tests.unit.plugins.test_extender import Service, opened, task_of


def test_at_open_amounts_and_indices_are_those_of_the_session() -> None:
    zone = "volcano.sh/revocable-zone"
    marks = {"volcano.sh/hierarchy": "root/q", "volcano.sh/hierarchy-weights": "1/2"}
    objects = [
        node("n0", cpu=4, memory="1Gi"),
        node("lent", cpu=4, labels={zone: "rz"}),
        queue("default", weight=3, annotations=marks),
        pod_group(
            "g", min_member=2, min_task_member={"w": 1, "v": 2}, created="2026-01-01T00:00:00Z"
        ),
        pod("r", group="g", cpu=1, node="n0"),
        pod("w", group="g", cpu=2, memory="1Mi", annotations={zone: "*"}),
        pod("done", group="g", cpu=1, node="n0", phase="Succeeded"),
        pod("other", cpu=1, node="lent", scheduler="another"),
    ]
    service = Service()
    opened(service, "open", objects=objects)
    [(_, sent)] = service.asked
    job = sent["Jobs"]["default/g"]
    assert (job["TaskMinAvailableTotal"], job["Queue"]) == (3, "default")
    assert (job["Allocated"]["MilliCPU"], job["TotalRequest"]["MilliCPU"]) == (1000, 3000)
    assert job["TotalRequest"]["Memory"] == 2**20
    assert {status: len(each) for status, each in job["TaskStatusIndex"].items()} == {
        "1": 1,
        "32": 1,
        "128": 1,
    }
    assert job["CreationTimestamp"] == "2026-01-01T00:00:00Z"
    tasks = {name: each["Tasks"].keys() for name, each in sent["Nodes"].items()}
    assert tasks == {"n0": {"default/r"}, "lent": {"default/other"}}
    assert sent["RevocableNodes"].keys() == {"lent"}
    assert sent["Nodes"]["lent"]["State"] == {"Phase": 1, "Reason": ""}
    assert sent["Nodes"]["n0"]["Idle"]["MilliCPU"] == 3000
    assert sent["Queues"]["default"]["Hierarchy"] == "root/q"
    assert sent["Queues"]["default"]["Weights"] == "1/2"
    (waiting,) = (each for each in job["Tasks"].values() if each["Name"] == "w")
    assert waiting["RevocableZone"] == "*"


@pytest.mark.parametrize(
    ("fields", "varied"),
    [({}, True), ({"one_answer": True}, False), ({"managed": ["x/y"]}, None)],
)
def test_answers_vary_by_task_or_by_labels(fields: Any, varied: bool | None) -> None:
    plugin, ssn = opened(Service(), "predicate", **fields)
    found = [plugin.vary_by(task_of(ssn, name)) for name in ("p", "old")]
    if varied is None:
        assert found == [None, None]
    else:
        assert (found[0] == task_of(ssn, "p").row) is varied
        assert found[0] != found[1]

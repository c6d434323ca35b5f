"""What a pod asks for."""

from typing import Any

import pytest

from pumice.api.objects import Pod
from pumice.cache.requests import (
    NONZERO_CPU,
    NONZERO_MEMORY,
    pod_nonzero,
    pod_request,
    resource_lists,
)
from pumice.core.resources import CPU, MEMORY, PODS, Resources
from pumice.testing import pod
from tests.present import read_as

GI = 1024**3
MI = 1024**2


def container(cpu: Any = None, memory: Any = None, **fields: Any) -> Any:
    amounts = {name: n for name, n in (("cpu", cpu), ("memory", memory)) if n is not None}
    return {"name": "c", "image": "i", "resources": {"requests": amounts}, **fields}


def spec_of(containers: Any, init: Any = (), overhead: Any = None, whole: Any = None) -> Any:
    spec: dict[str, Any] = {"containers": list(containers), "initContainers": list(init)}
    if overhead:
        spec["overhead"] = overhead
    if whole:
        spec["resources"] = {"requests": whole}
    return read_as(Pod, pod("p", spec=spec)).spec


def sidecar(cpu: Any) -> Any:
    return container(cpu=cpu, restartPolicy="Always")


CASES = {
    "containers are added": (spec_of([container(1), container(2, "1Gi")]), 3000),
    "the largest init container counts if it is larger": (
        spec_of([container(1)], [container(3), container(2)]),
        3000,
    ),
    "a small init container does not count": (spec_of([container(2)], [container(1)]), 2000),
    "sidecars run beside the containers": (spec_of([container(1)], [sidecar(2)]), 3000),
    "an init container runs beside earlier sidecars": (
        spec_of([container(1)], [sidecar(1), container(4)]),
        5000,
    ),
    "but not beside later ones": (spec_of([container(1)], [container(4), sidecar(1)]), 4000),
    "overhead is added": (spec_of([container(1)], overhead={"cpu": "250m"}), 1250),
    "nothing asked": (spec_of([container()]), 0),
    "what the pod asks for as a whole replaces its containers": (
        spec_of([container(1), container(1)], [sidecar(1), container(9)], whole={"cpu": "5"}),
        5000,
    ),
    "also where containers ask for nothing": (spec_of([container()], whole={"cpu": "2"}), 2000),
    "also where it is less": (spec_of([container(4)], whole={"cpu": "500m"}), 500),
    "overhead comes on top of the whole": (
        spec_of([container(1)], overhead={"cpu": "250m"}, whole={"cpu": "2"}),
        2250,
    ),
    "a resource that the pod does not state is its containers'": (
        spec_of([container(1), container(2)], whole={"memory": "1Gi"}),
        3000,
    ),
}
WHOLE = {
    "the whole counts and nothing is assumed": (
        spec_of([container(), container(cpu=1)], whole={"cpu": "2", "memory": "1Gi"}),
        [2000, GI],
    ),
    "what nobody names is assumed of each container": (
        spec_of([container(), container()], whole={"cpu": "2"}),
        [2000, 2 * NONZERO_MEMORY],
    ),
    "what one container names is assumed of none": (
        spec_of([container(), container(memory="1Gi")], whole={"cpu": "2"}),
        [2000, GI],
    ),
}


@pytest.mark.parametrize(("spec", "wanted"), CASES.values(), ids=CASES)
def test_cpu_of_a_pod(spec: Any, wanted: Any) -> None:
    request = pod_request(spec, Resources())
    assert (request[CPU], request[PODS]) == (wanted, 1)


def test_memory_is_in_bytes() -> None:
    assert pod_request(spec_of([container(memory="1Gi")]), Resources())[MEMORY] == GI


def test_silent_containers_are_assumed_to_ask_for_something() -> None:
    spec = spec_of([container(cpu=1), container(memory="1Gi")])
    assert pod_nonzero(spec, Resources()).tolist() == [1000 + NONZERO_CPU, GI + NONZERO_MEMORY]
    assert (NONZERO_CPU, NONZERO_MEMORY) == (100, 200 * MI)


def test_a_container_that_asks_for_zero_is_not_silent() -> None:
    assert pod_nonzero(spec_of([container(cpu=0, memory=0)]), Resources()).tolist() == [0, 0]


@pytest.mark.parametrize(("spec", "wanted"), WHOLE.values(), ids=WHOLE)
def test_scores_of_a_pod_that_asks_as_a_whole(spec: Any, wanted: Any) -> None:
    assert pod_nonzero(spec, Resources()).tolist() == wanted


def test_a_pod_as_a_whole_asks_for_cpu_memory_and_huge_pages_only() -> None:
    whole = {"cpu": "1", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "3", "ephemeral-storage": "1Gi"}
    spec = spec_of([container(cpu=1) | {"name": "c"}], whole=whole)
    resources = Resources()
    resources.learn(list(whole))
    request = dict(zip(resources.names, pod_request(spec, resources).tolist(), strict=True))
    assert request["hugepages-2Mi"] == 4 * MI * 1000
    assert (request["nvidia.com/gpu"], request["ephemeral-storage"]) == (0, 0)
    counted = [dict(each) for each in resource_lists(spec)]
    assert {"cpu": "1", "hugepages-2Mi": "4Mi"} in counted

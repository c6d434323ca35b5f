"""What a claim counts for its queue: devices by class, and their capacities."""

from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.framework.queue_limits.device_quota import claim_amounts
from pumice.testing import device_request, resource_claim

EITHER = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "big", "deviceClassName": "big", "count": 2},
        {"name": "small", "deviceClassName": "small", "count": 3},
        {"name": "tiny", "deviceClassName": "tiny"},
    ],
}
MEMORY = device_request(count=2, capacity={"requests": {"memory": "10"}})


def amounts(*requests: Any, results: Any = None) -> dict[str, float]:
    """Return the sum of each name, in units."""
    status = None
    if results is not None:
        made = [
            {"request": name, "driver": "d", "pool": "p", "device": f"d{i}"}
            for i, name in enumerate(results)
        ]
        status = {"allocation": {"devices": {"results": made}}}
    found: dict[str, float] = {}
    claim: Any = from_manifest(resource_claim("c", requests=requests, status=status))
    for name, amount in claim_amounts(claim):
        found[name] = found.get(name, 0.0) + amount / 1000
    return found


@pytest.mark.parametrize(
    ("requests", "results", "wanted"),
    [
        ([device_request()], None, {"deviceclass/gpu": 1}),
        ([device_request(count=3)], None, {"deviceclass/gpu": 3}),
        ([device_request(allocationMode="All")], None, {"deviceclass/gpu": 1}),
        ([device_request(allocationMode="All")], ["gpu"] * 4, {"deviceclass/gpu": 4}),
        ([device_request(adminAccess=True)], None, {}),
        ([device_request("a"), device_request("b", count=2)], None, {"deviceclass/gpu": 3}),
        (
            [device_request("a"), device_request("b", device_class="x")],
            None,
            {"deviceclass/gpu": 1, "deviceclass/x": 1},
        ),
        ([EITHER], None, {"deviceclass/big": 2}),
        ([EITHER], ["gpu/small"] * 3, {"deviceclass/small": 3}),
        ([EITHER], ["gpu/tiny"], {"deviceclass/tiny": 1}),
        ([MEMORY], None, {"deviceclass/gpu": 2, "memory.deviceclass/gpu": 20}),
        ([MEMORY], ["gpu"], {"deviceclass/gpu": 1, "memory.deviceclass/gpu": 10}),
    ],
)
def test_a_claim_counts_what_it_has_or_else_what_it_asks_for_first(
    requests: Any, results: Any, wanted: dict[str, float]
) -> None:
    assert amounts(*requests, results=results) == wanted

"""Material for answers: kinds that a cluster does not show are noted with its reason."""

import pytest

from pumice.dashboard.material import Material
from pumice.errors import RejectedError
from pumice.testing import node


def hiding(kind: str) -> Material:
    return Material(now=1.0, objects={"Node": [node("n1", cpu=1)]}, hidden={kind: "forbidden"})


@pytest.mark.parametrize("kind", ["ConfigMap", "ResourceQuota"])
def test_a_kind_that_is_not_shown_is_noted_once(kind: str) -> None:
    assert hiding(kind).to_world().notes == (f"{kind} left out: forbidden",)


def test_there_is_no_answer_without_pods() -> None:
    with pytest.raises(RejectedError, match="Pod: forbidden"):
        hiding("Pod").to_world()

"""Resource names, amounts, and the comparisons that every layer shares."""

from typing import Any

import numpy as np
import pytest

from pumice.core.resources import (
    CPU,
    MEMORY,
    PODS,
    STEP,
    Resources,
    dominant_share,
    fits,
    is_coarse,
    is_empty,
    is_schedulable_name,
    need_of,
    saturate,
    share,
    weighted_sum,
    within_requested,
)
from pumice.errors import InputError

GPU = "example.com/gpu"


def column(*amounts: Any) -> Any:
    return np.array(amounts, dtype=float)


@pytest.mark.parametrize(
    "name",
    ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "attachable-volumes-x", GPU],
)
def test_names_that_nodes_offer_are_scheduled(name: Any) -> None:
    assert is_schedulable_name(name)


@pytest.mark.parametrize(
    "name", ["requests.cpu", "limits.memory", "count/pods", f"requests.{GPU}", "storage", "gpu"]
)
def test_names_of_quotas_are_not_scheduled(name: Any) -> None:
    assert not is_schedulable_name(name)


def test_cpu_memory_and_pods_have_fixed_rows() -> None:
    resources = Resources()
    assert [resources.row(name) for name in ("cpu", "memory", "pods")] == [CPU, MEMORY, PODS]


def test_a_learnt_name_keeps_its_row() -> None:
    resources = Resources()
    assert resources.learn(["cpu", GPU, "requests.cpu"])
    assert not resources.learn([GPU])
    assert resources.row(GPU) == 3
    assert resources.row("requests.cpu") is None
    assert len(resources) == 4


def test_a_vector_has_milli_units_bytes_and_whole_pods() -> None:
    resources = Resources()
    resources.learn([GPU])
    found = resources.vector({"cpu": "1500m", "memory": "1Ki", "pods": 3, GPU: "2", "unheard": 1})
    assert found.tolist() == [1500, 1024, 3, 2000]


def test_a_vector_says_what_is_missing() -> None:
    assert Resources().vector({"cpu": 1}, missing=np.inf).tolist() == [1000, np.inf, np.inf]


def test_need_fits_room_up_to_less_than_a_step() -> None:
    need = column(1, 1)[:, None]
    room = np.array([[1, 0.95, 0.85, 9], [1, 1, 1, 0]], dtype=float)
    assert fits(need, room).tolist() == [True, True, False, False]
    assert bool(fits(column(1, 1), column(2, 2)))


def test_a_scalar_that_is_not_requested_fits_less_than_none() -> None:
    need = need_of(np.array([0.0, 0.0, 1.0, 0.0]))
    assert fits(need, np.array([0.0, 0.0, 1.0, -1000.0]))
    assert not fits(need, np.array([-1.0, 0.0, 1.0, 0.0]))


def test_nothing_but_pods_is_empty() -> None:
    assert is_empty(column(0, 0, 5, 0.05))
    assert not is_empty(column(STEP, 0, 0, 0))
    assert not is_empty(column(0, 0, 0, STEP))


def test_a_limit_binds_only_what_is_asked_for_and_not_pods() -> None:
    used, limit = column(5, 5, 5), column(4, 9, 1)
    assert not within_requested(used, limit, column(1, 0, 1))
    assert within_requested(used, limit, column(0, 1, 1))
    assert within_requested(column(4, 0, 0), limit, column(1, 0, 0))
    assert not within_requested(column(4.01, 0, 0), limit, column(1, 0, 0))


def test_a_share_of_nothing_is_none_or_all() -> None:
    assert share(column(1, 0, 3), column(4, 0, 0)).tolist() == [0.25, 0.0, 1.0]


def test_the_dominant_share_passes_over_what_the_whole_lacks() -> None:
    amounts = np.array([[2, 1], [1, 6], [5, 5]], dtype=float)
    whole = column(4, 8, 0)[:, None]
    assert dominant_share(amounts, whole).tolist() == [0.5, 0.75]


def test_a_weighted_sum_has_the_same_bits_for_one_column_and_for_many() -> None:
    rng = np.random.default_rng(7)
    rows, weights = rng.random((11, 300)), rng.random((11, 1))
    full = weighted_sum(weights, rows)
    ones = [weighted_sum(weights, rows[:, i : i + 1])[0] for i in range(300)]
    assert full.tolist() == ones
    assert np.allclose(full, (weights * rows).sum(axis=0))


def test_amounts_end_where_sums_would_not_be_exact() -> None:
    resources = Resources()
    resources.learn([GPU])
    most = "9223372036854775807"
    found = resources.vector({"cpu": most, "memory": most, "pods": most, GPU: most})
    assert found.tolist() == [2.0**50, 2.0**50, 2.0**50, 2.0**60]
    assert saturate(found * 3).tolist() == found.tolist()
    small = column(1, 2, 3, 4)
    assert saturate(small).tolist() == small.tolist()


@pytest.mark.parametrize(
    ("amounts", "wanted"),
    [
        ({"cpu": "100k", "memory": "24Ti", "ephemeral-storage": "1T"}, False),
        ({"cpu": "5M"}, True),
        ({"memory": "64Ti"}, True),
        ({"ephemeral-storage": "2T"}, True),
    ],
)
def test_amounts_beyond_any_pod_are_coarse(amounts: Any, wanted: bool) -> None:
    resources = Resources()
    resources.learn(amounts)
    assert is_coarse(resources.vector(amounts)) == wanted


def test_only_so_many_names_may_be_known_from_requests_alone() -> None:
    resources = Resources()
    resources.most_asked = 2
    resources.learn(["x.org/a", "x.org/b"], asked=True)
    with pytest.raises(InputError, match=r"at most 2 resources .* 'x\.org/c'"):
        resources.learn(["x.org/a", "x.org/c"], asked=True)
    assert resources.refused
    assert resources.row("x.org/c") is None
    resources.learn(["x.org/a", "x.org/d"])  # by a node
    resources.learn(["x.org/c"], asked=True)
    assert resources.names[3:] == ["x.org/a", "x.org/b", "x.org/d", "x.org/c"]


def test_a_name_that_something_offers_no_longer_counts_as_asked_for() -> None:
    resources = Resources()
    resources.most_asked = 1
    assert resources.learn(["x.org/a"], asked=True)
    assert not resources.learn(["x.org/a", "requests.cpu"])
    assert resources.learn(["x.org/b"], asked=True)
    assert not resources.refused
    assert resources.names[3:] == ["x.org/a", "x.org/b"]
    assert not resources.learn(["requests.cpu"], asked=True)

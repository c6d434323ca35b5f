"""The base class: names, misspelt hooks, one node at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU
from pumice.core.views import ALL, Nodes, Task
from pumice.errors import UnknownHookError
from pumice.framework.plugin import Plugin, Reason, per_node, states_terms
from pumice.plugins.binpack import Binpack
from pumice.testing import node
from pumice.testing.samples import snapshot_of


def test_a_misspelt_hook_is_refused_with_the_one_probably_meant() -> None:
    with pytest.raises(UnknownHookError, match="did you mean 'score_nodes'") as caught:

        class Typo(Plugin, name="typo"):
            def score_node(self, task: Any, nodes: Any) -> Any:
                return None

    error = caught.value
    assert (error.plugin, error.hook, error.nearest) == ("typo", "score_node", "score_nodes")


def test_a_method_far_from_any_hook_is_refused_without_a_guess() -> None:
    with pytest.raises(UnknownHookError) as caught:

        class Strange(Plugin, name="strange"):
            def xyzzy(self) -> Any:
                return None

    assert caught.value.nearest == ""


def test_private_methods_and_fields_are_free() -> None:
    @dataclass(kw_only=True)
    class Free(Plugin, name="free"):
        weight: int = 3

        def _own(self) -> Any:
            return self.weight

    assert Free()._own() == 3


def test_a_plugin_is_named_by_its_class_line() -> None:
    class Named(Plugin, name="some-name"):
        reasons = (Reason("no"),)

    class Child(Named):
        pass

    assert (Named.name, Child.name, Child().name) == ("some-name",) * 3


def test_per_node_asks_one_node_at_a_time_and_gives_a_column() -> None:
    class Warm(Plugin, name="warm"):
        @per_node
        def score_nodes(self, task: Any, node: Any) -> Any:
            return node.allocatable[CPU] + len(node.labels) + (node.name == "n1")

        @per_node
        def filter_nodes(self, task: Any, node: Any) -> Any:
            return bool(node.idle[CPU] >= node.used[CPU])

    snapshot = snapshot_of([node("n0", cpu=1), node("n1", cpu=2)])
    nodes = Nodes(snapshot, ALL)
    scores = Warm().score_nodes(None, nodes)
    assert (scores.dtype, scores.tolist()) == (np.float64, [1001.0, 2002.0])
    assert Warm().filter_nodes(None, nodes).tolist() == [True, True]
    assert Warm().score_nodes(None, Nodes(snapshot, slice(1, 2))).tolist() == [2002.0]


def test_a_subclass_with_its_own_scores_does_not_inherit_the_terms() -> None:
    class Inverse(Binpack, name="inverse"):
        def score_nodes(self, task: Task, nodes: Nodes) -> Any:
            return -np.asarray(super().score_nodes(task, nodes))

    class Renamed(Binpack, name="renamed"):
        pass

    assert [states_terms(made()) for made in (Binpack, Inverse, Renamed)] == [True, False, True]

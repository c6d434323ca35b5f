"""What Pumice offers to others: the names that are promised, and that they are really there."""

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import pumice

SOURCE = Path(pumice.__file__).parent
TESTING = {
    "CaseResult",
    "CompareOptions",
    "CycleScheduler",
    "Scenario",
    "ScenarioFile",
    "SchedulerFactory",
    "check",
    "compare",
    "find_scenarios",
    "load_scenario",
    "node",
    "pdb",
    "play",
    "pod",
    "pod_group",
    "priority_class",
    "queue",
    "run_files",
}
"""For tests of scenarios; what checks plugins is imported by itself, since it loads NumPy."""

PLUGIN_AUTHORS = {
    "pumice.plugin": [
        *("ABSTAIN", "ALLOCATED_CLASS", "CPU", "MEMORY", "NOWHERE", "PERMIT", "PODS", "REJECT"),
        *("STEP", "Amount", "Codes", "Column", "Domain", "Duration", "Fault", "GangEviction"),
        *("InputError", "Ints", "Job", "Jobs", "Mask", "NodeFacts", "NodeRow", "Nodes", "Plugin"),
        *("Queue", "Queues", "Reason", "Shape", "Status", "SubGroup", "Task", "Tasks", "Texts"),
        *("arg", "arg_pattern", "dominant_share", "epoch", "fits", "parse_duration", "per_node"),
        *("share", "weighted_sum"),
    ],
    "pumice.core.resources": [
        "CPU",
        "MEMORY",
        "PODS",
        "STEP",
        "Column",
        "Mask",
        "fits",
        "weighted_sum",
    ],
    "pumice.core.views": ["Job", "NodeFacts", "NodeRow", "Nodes", "Queue", "Task"],
    "pumice.core.status": ["Status"],
    "pumice.framework.arguments": ["Amount", "Duration", "arg", "arg_pattern", "dump_arguments"],
    "pumice.framework.columns": ["Jobs", "Queues", "Tasks"],
    "pumice.framework.plugin": [
        "ABSTAIN",
        "PERMIT",
        "REJECT",
        "Codes",
        "Plugin",
        "Reason",
        "per_node",
    ],
    "pumice.framework.session": ["Session"],
    "pumice.framework.plugin_declarations": ["SimulatorAssumptions"],
    "pumice.testing.conformance": ["check_plugin"],
    "pumice.testing.reference": ["ReferenceScheduler", "reference_decide"],
    "pumice.testing.samples": ["open_session", "sample_cluster", "snapshot_of"],
}
"""The names that the documentation tells plugin authors to import, now and before."""

IMPORTED = re.compile(r"(?m)^ *from (pumice[\w.]*) import (\([^)]*\)|.*)$")
ALL = [
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
]


@pytest.mark.parametrize(("module", "names"), PLUGIN_AUTHORS.items(), ids=PLUGIN_AUTHORS)
def test_names_for_authors_of_plugins_are_there(module: Any, names: Any) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in names if not hasattr(loaded, name)] == []


def test_the_testing_package_exports_what_it_promises() -> None:
    testing = importlib.import_module("pumice.testing")
    assert set(testing.__all__) >= TESTING


def test_every_exported_name_is_there() -> None:
    missing = [
        f"{module}.{name}"
        for module in ALL
        for name in getattr(importlib.import_module(module), "__all__", ())
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


def test_no_module_takes_private_names_from_another() -> None:
    """A name with an underscore stays in its module."""
    taken = [
        f"{path.relative_to(SOURCE)}: {found[1]}.{name}"
        for path in SOURCE.rglob("*.py")
        for found in IMPORTED.finditer(path.read_text(encoding="utf-8"))
        for name in re.findall(r"\b_[a-z]\w*", found[2])
    ]
    assert taken == []


def test_a_package_only_imports() -> None:
    """An ``__init__`` module of ours defines no class."""
    defining = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("__init__.py")
        if any(isinstance(each, ast.ClassDef) for each in ast.parse(path.read_text()).body)
    ]
    assert defining == []

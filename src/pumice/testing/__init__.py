"""Scenario files and builders for tests: public, for plugin authors and cluster owners alike."""

from pumice.scenarios.compare import CompareOptions, compare
from pumice.scenarios.runner import (
    CaseResult,
    CycleScheduler,
    ScenarioFile,
    SchedulerFactory,
    check,
    find_scenarios,
    play,
    run_files,
)
from pumice.scenarios.scenario import Scenario, load_scenario
from pumice.testing.builders import (
    device,
    device_class,
    device_request,
    hyper_node,
    node,
    pdb,
    pod,
    pod_group,
    priority_class,
    queue,
    resource_claim,
    resource_claim_template,
    resource_slice,
)

__all__ = [
    "CaseResult",
    "CompareOptions",
    "CycleScheduler",
    "Scenario",
    "ScenarioFile",
    "SchedulerFactory",
    "check",
    "compare",
    "device",
    "device_class",
    "device_request",
    "find_scenarios",
    "hyper_node",
    "load_scenario",
    "node",
    "pdb",
    "play",
    "pod",
    "pod_group",
    "priority_class",
    "queue",
    "resource_claim",
    "resource_claim_template",
    "resource_slice",
    "run_files",
]

"""Every built-in plugin keeps the promises that are asked of foreign ones."""

from typing import Any

import pytest

from pumice.framework.arguments import bind_arguments
from pumice.plugins import builtin_plugins
from pumice.testing.conformance import check_plugin

PLUGINS = builtin_plugins()
GPU = "nvidia.com/gpu"
CONFIGURED = [
    ("binpack", {"binpack.weight": 5, "binpack.resources": GPU, f"binpack.resources.{GPU}": 7}),
    ("capacity", {"ancestorReclaimLevel": 1}),
    ("deviceshare", {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"}),
    ("deviceshare", {"deviceshare.GPUSharingEnable": True}),
    ("fairshare", {"fairshare.by": "user, namespace", "fairshare.resource": GPU}),
    ("network-topology-aware", {"weight": 3, "hypernode.binpack.resources": GPU}),
    ("nodegroup", {"strict": False, "enablePreferredOrder": True}),
    ("nodeorder", {"leastrequested.weight": 0, "mostrequested.weight": 2}),
    ("nodeorder", {"balancedresource.weight": 5, "podtopologyspread.weight": 3}),
    ("overcommit", {"overcommit-factor": 2.0}),
    ("predicates", {"predicate.PodAffinityEnable": False, "predicate.NodePortsEnable": False}),
    ("resource-strategy-fit", {"resourceStrategyFitWeight": 3}),
    ("sla", {"sla-waiting-time": "1h"}),
    ("tdm", {"tdm.revocable-zone.rz1": "00:00-23:59"}),
    ("usage", {"usage.weight": 2, "thresholds": {"cpu": 40, "mem": 50}}),
]


FORESEEABLE = {
    "capacity",
    "cdp",
    "conformance",
    "drf",
    "fairshare",
    "gang",
    "pdb",
    "predicates",
    "priority",
    "proportion",
    "sla",
    "tdm",
}
ASKED_ABOUT_ALL = {"rescheduling", "reservation", "sla", "tdm"}


def test_what_built_in_plugins_declare() -> None:
    assert {name for name, cls in PLUGINS.items() if cls.foreseeable} == FORESEEABLE
    assert [name for name, cls in PLUGINS.items() if cls.simulator is None] == ["extender"]
    found = {name for name, cls in PLUGINS.items() if cls.simulator and cls.simulator.all_jobs}
    assert found == ASKED_ABOUT_ALL


@pytest.mark.parametrize("cls", PLUGINS.values(), ids=PLUGINS)
def test_a_built_in_plugin_keeps_its_promises(cls: Any) -> None:
    check_plugin(cls)


@pytest.mark.parametrize(("name", "arguments"), CONFIGURED, ids=lambda each: str(each)[:40])
def test_a_configured_plugin_keeps_its_promises(name: Any, arguments: Any) -> None:
    fields, problems = bind_arguments(PLUGINS[name], arguments)
    assert problems == []
    check_plugin(PLUGINS[name], **fields)

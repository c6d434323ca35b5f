"""Configurations as in Volcano's documentation: each is read and has the documented meaning.

Settings that Volcano ignores cause warnings; nothing of it stops a scheduler.
"""

from typing import Any

import pytest
import yaml

from pumice.api.conf import parse_conf, read_conf
from pumice.api.usage_conf import usage_conf
from pumice.errors import ConfError
from pumice.framework.arguments import dump_arguments
from pumice.scheduler import Scheduler

USUAL = "enqueue, allocate, backfill"
GPU = "nvidia.com/gpu"


def conf(*plugins: Any, actions: str = USUAL, **more: Any) -> str:
    """Write a configuration with the given plugins in one tier; a name stands for itself."""
    entries = [{"name": one} if isinstance(one, str) else one for one in plugins]
    content = {"actions": actions, "tiers": [{"plugins": entries}], **more}
    return yaml.safe_dump(content, sort_keys=False)


def plugin(name: str, arguments: dict[str, Any] | None = None, **switches: bool) -> dict[str, Any]:
    return {"name": name, **switches, **({"arguments": arguments} if arguments else {})}


USAGE = plugin(
    "usage",
    {"usage.weight": 5, "cpu.weight": 1, "memory.weight": 1, "thresholds": {"cpu": 80, "mem": 70}},
    enablePredicate=False,
)
BINPACK_GPU = {"binpack.resources": GPU, f"binpack.resources.{GPU}": 2}
HYPERNODES = {
    "weight": 10,
    "hypernode.binpack.cpu": 5,
    "hypernode.binpack.memory": 1,
    "hypernode.binpack.resources": f"{GPU}, example.com/foo",
    f"hypernode.binpack.resources.{GPU}": 2,
    "hypernode.binpack.resources.example.com/foo": 3,
    "hypernode.binpack.normal-pod.enable": True,
    "hypernode.binpack.normal-pod.fading": 0.8,
}
STRATEGY = {
    "resourceStrategyFitWeight": 10,
    "resources": {
        GPU: {"type": "MostAllocated", "weight": 2},
        "cpu": {"type": "LeastAllocated", "weight": 1},
    },
    "sra": {"enable": True, "resources": GPU, "weight": 10, "resourceWeight": {GPU: 1}},
}
PROPORTIONAL = {
    "proportional": {
        "enable": True,
        "resources": f"{GPU},nvidia.com/v100-sxm2-16gb",
        "resourceProportion": {f"{GPU}.cpu": 8, f"{GPU}.memory": 8},
    }
}
EXTENDER = {
    "extender.urlPrefix": "http://127.0.0.1:8713",
    "extender.httpTimeout": "100ms",
    "extender.onSessionOpenVerb": "onSessionOpen",
    "extender.onSessionCloseVerb": "onSessionClose",
    "extender.predicateVerb": "predicate",
    "extender.prioritizeVerb": "prioritize",
    "extender.preemptableVerb": "preemptable",
    "extender.reclaimableVerb": "reclaimable",
    "extender.queueOverusedVerb": "queueOverused",
    "extender.jobEnqueueableVerb": "jobEnqueueable",
    "extender.ignorable": True,
}
UTILIZATION = {
    "interval": "5m",
    "metricsPeriod": "5m",
    "strategies": [
        {"name": "offlineOnly"},
        {"name": "lowPriorityFirst"},
        {
            "name": "lowNodeUtilization",
            "params": {
                "thresholds": {"cpu": 20, "memory": 20, "pods": 20},
                "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
            },
        },
    ],
    "queueSelector": ["default", "test-queue"],
    "labelSelector": {"business": "offline", "team": "test"},
}
OF_NODES = {
    "leastrequested.weight": 1,
    "mostrequested.weight": 0,
    "balancedresource.weight": 1,
    "nodeaffinity.weight": 2,
    "podaffinity.weight": 2,
    "tainttoleration.weight": 3,
    "imagelocality.weight": 1,
    "podtopologyspread.weight": 2,
}
METRICS = {"address": "http://192.168.0.10:9090", "interval": "30s"}

# name: the file, the plugin that matters, what it must have read of it, the fields warned of
PUBLISHED: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "the default": (conf("priority", "gang", "conformance"), "gang", {}, []),
    "gang without evictions": (
        conf("priority", plugin("gang", enablePreemptable=False)),
        "gang",
        {"enablePreemptable": False},
        [],
    ),
    "binpack": (
        conf(plugin("binpack", {"binpack.weight": 10, "binpack.cpu": 2, **BINPACK_GPU})),
        "binpack",
        {"binpack.weight": 10, "binpack.cpu": 2, f"binpack.resources.{GPU}": 2},
        [],
    ),
    "capacity": (
        conf("priority", "gang", "capacity", actions="enqueue, allocate, backfill, reclaim"),
        "capacity",
        {"enableHierarchy": False},
        [],
    ),
    "a tree of queues": (
        conf(plugin("capacity", {"ancestorReclaimLevel": 1}, enableHierarchy=True)),
        "capacity",
        {"enableHierarchy": True, "ancestorReclaimLevel": 1},
        [],
    ),
    "device quota of queues": (
        conf(
            plugin(
                "capacity",
                {
                    "capacity.DynamicResourceAllocationEnable": True,
                    "capacity.DRAConsumableCapacityEnable": True,
                },
            )
        ),
        "capacity",
        {"capacity.DynamicResourceAllocationEnable": True},
        [],
    ),
    "resource claims": (
        conf("drf", plugin("predicates", {"predicate.DynamicResourceAllocationEnable": True})),
        "predicates",
        {"predicate.DynamicResourceAllocationEnable": True},
        [],
    ),
    "a cache of filters": (
        conf(plugin("predicates", {"predicate.CacheEnable": True})),
        "predicates",
        {"predicate.CacheEnable": True},
        [],
    ),
    "filters switched off beside the arguments": (
        conf(
            {
                "name": "predicates",
                "arguments": None,
                "predicate.VolumeZoneEnable": False,
                "predicate.PodTopologySpreadEnable": False,
            }
        ),
        "predicates",
        {"predicate.VolumeZoneEnable": True, "predicate.PodTopologySpreadEnable": True},
        ["tiers[0].plugins[0]"] * 2,
    ),
    "shared GPUs, before deviceshare": (
        conf(plugin("predicates", {"predicate.GPUSharingEnable": True})),
        "predicates",
        {},
        ["predicate.GPUSharingEnable"],
    ),
    "counted GPUs, before deviceshare": (
        conf(plugin("predicates", {"predicate.GPUNumberEnable": True})),
        "predicates",
        {},
        ["predicate.GPUNumberEnable"],
    ),
    "filters in proportion, before resource-strategy-fit": (
        conf(
            plugin(
                "predicates",
                {
                    "predicate.ProportionalEnable": True,
                    "predicate.resources": GPU,
                    f"predicate.resources.{GPU}.weight": 100,
                },
            )
        ),
        "predicates",
        {},
        [
            "predicate.ProportionalEnable",
            "predicate.resources",
            f"predicate.resources.{GPU}.weight",
        ],
    ),
    "shared GPUs": (
        conf(plugin("deviceshare", {"deviceshare.GPUSharingEnable": True})),
        "deviceshare",
        {"deviceshare.GPUSharingEnable": True, "deviceshare.GPUNumberEnable": False},
        [],
    ),
    "counted GPUs": (
        conf(plugin("deviceshare", {"deviceshare.GPUNumberEnable": True})),
        "deviceshare",
        {"deviceshare.GPUSharingEnable": False, "deviceshare.GPUNumberEnable": True},
        [],
    ),
    "virtual GPUs": (
        conf(
            plugin(
                "deviceshare",
                {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"},
            )
        ),
        "deviceshare",
        {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"},
        [],
    ),
    "gangs that evict, in the capitals of the announcement": (
        conf("priority", "gang", actions=f"{USUAL}, gangPreempt, gangReclaim"),
        "gang",
        {"actions": ("enqueue", "allocate", "backfill", "gangpreempt", "gangreclaim")},
        [],
    ),
    "an extender": (
        conf(plugin("extender", EXTENDER), actions=f"{USUAL}, preempt, reclaim"),
        "extender",
        {"extender.predicateVerb": "predicate", "extender.httpTimeout": "0.100000000s"},
        [],
    ),
    "network topology": (
        conf(plugin("network-topology-aware", HYPERNODES)),
        "network-topology-aware",
        {"weight": 10, "hypernode.binpack.cpu": 5, f"hypernode.binpack.resources.{GPU}": 2},
        [],
    ),
    "node groups": (
        conf(
            plugin("nodegroup", {"enablePreferredOrder": True}, enableHierarchy=True),
            actions="allocate, backfill, preempt, reclaim",
        ),
        "nodegroup",
        {"enablePreferredOrder": True, "enableHierarchy": True},
        [],
    ),
    "node groups with a switch among the arguments": (
        conf(plugin("nodegroup", {"enableHierarchy": True, "strict": False})),
        "nodegroup",
        {"strict": False, "enableHierarchy": False},
        ["enableHierarchy"],
    ),
    "scores of nodes": (conf(plugin("nodeorder", OF_NODES)), "nodeorder", OF_NODES, []),
    "scores of nodes under names that never counted": (
        conf(
            plugin(
                "nodeorder",
                {"nodeorder.leastrequested.enable": True, "nodeorder.leastrequested.weight": 2},
            )
        ),
        "nodeorder",
        {"leastrequested.weight": 1},
        ["nodeorder.leastrequested.enable", "nodeorder.leastrequested.weight"],
    ),
    "NUMA": (conf(plugin("numa-aware", {"weight": 10})), "numa-aware", {"weight": 10}, []),
    "NUMA under a name that never counted": (
        conf(plugin("numa-aware", {"numa-aware.weight": 10})),
        "numa-aware",
        {"weight": 1},
        ["numa-aware.weight"],
    ),
    "overcommit of queues, as it was proposed": (
        conf(plugin("overcommit", {"overcommit-factor": 1.2, "max-queue-overcommit-factor": 1.2})),
        "overcommit",
        {"overcommit-factor": 1.2},
        ["max-queue-overcommit-factor"],
    ),
    "rescheduling": (
        conf(plugin("rescheduling", UTILIZATION), actions=f"{USUAL}, shuffle"),
        "rescheduling",
        {"interval": "300.000000000s"},
        ["strategies"] * 4 + ["queueSelector", "labelSelector"],
    ),
    "disruption budgets": (
        conf("pdb", actions="reclaim, preempt, shuffle"),
        "pdb",
        {"actions": ("reclaim", "preempt", "shuffle")},
        [],
    ),
    "the best fit by resource": (
        conf(plugin("resource-strategy-fit", STRATEGY)),
        "resource-strategy-fit",
        {"resourceStrategyFitWeight": 10, "resources": STRATEGY["resources"]},
        [],
    ),
    "shares kept for GPUs": (
        conf(plugin("resource-strategy-fit", PROPORTIONAL)),
        "resource-strategy-fit",
        {},
        [],
    ),
    "waiting times": (
        conf(plugin("sla", {"sla-waiting-time": "1h2m3s"})),
        "sla",
        {"sla-waiting-time": "3723.000000000s"},
        [],
    ),
    "waiting times under a name that never counted": (
        conf(plugin("sla", {"sla.JobWaitingTime": "10m"})),
        "sla",
        {},
        ["sla.JobWaitingTime"],
    ),
    "task topology": (
        conf(plugin("task-topology", {"task-topology.weight": 10}), "cdp"),
        "task-topology",
        {"task-topology.weight": 10},
        [],
    ),
    "time division": (
        conf(
            plugin("tdm", {"tdm.revocable-zone.rz1": "1:00-4:00", "tdm.evict.period": "1m"}),
            actions=f"{USUAL}, shuffle",
        ),
        "tdm",
        {"tdm.revocable-zone.rz1": "1:00-4:00", "tdm.evict.period": "60.000000000s"},
        [],
    ),
    "time division by schedules that never counted": (
        conf(plugin("tdm", {"tdm.revocable-zone.zone-a": "0 8 * * *:0 18 * * *"})),
        "tdm",
        {},
        ["tdm.revocable-zone.zone-a"],
    ),
    "a switch of kube-batch": (
        conf(plugin("drf", disableTaskOrder=True), actions="reclaim, allocate, backfill, preempt"),
        "drf",
        {"enableTaskOrder": True},
        ["tiers[0].plugins[0]"],
    ),
    "arguments for what is no action": (
        conf("gang", configurations=[{"name": "dynamicConf", "arguments": {"klogLevel": "5"}}]),
        "gang",
        {},
        ["configurations"],
    ),
    "use of nodes from Prometheus": (
        conf(USAGE, metrics={"type": "prometheus", **METRICS}),
        "usage",
        {"usage.weight": 5, "enablePredicate": False, "metrics": "prometheus"},
        [],
    ),
    "use of nodes from the custom metrics API": (
        conf(USAGE, metrics={"type": "prometheus_adaptor", "interval": "30s"}),
        "usage",
        {"thresholds": {"cpu": 80, "mem": 70}, "metrics": "prometheus_adaptor"},
        [],
    ),
    "use of nodes from the custom metrics API, in its other spelling": (
        conf(USAGE, metrics={"type": "prometheus_adapt"}),
        "usage",
        {"metrics": "prometheus_adaptor"},
        [],
    ),
    "use of nodes from Elasticsearch, in nested keys": (
        conf(
            USAGE,
            metrics={
                "type": "elasticsearch",
                **METRICS,
                "tls": {"insecureSkipVerify": "false"},
                "elasticsearch": {
                    "index": "custom-index-name",
                    "username": "",
                    "password": "",
                    "hostnameFieldName": "host.hostname",
                },
            },
        ),
        "usage",
        {"metrics": "elasticsearch", "index": "custom-index-name"},
        [],
    ),
    "use of nodes from Elasticsearch, in dotted keys": (
        conf(
            USAGE,
            metrics={
                "type": "elasticsearch",
                **METRICS,
                "tls.insecureSkipVerify": "true",
                "elasticsearch.index": "beats",
            },
        ),
        "usage",
        {"metrics": "elasticsearch", "index": "beats"},
        [],
    ),
    "preemption by topology": (
        conf(
            "gang",
            actions=f"{USUAL}, preempt",
            configurations=[
                {
                    "name": "preempt",
                    "arguments": {
                        "enableTopologyAwarePreemption": True,
                        "topologyAwarePreemptWorkerNum": 16,
                        "minCandidateNodesPercentage": 10,
                        "minCandidateNodesAbsolute": 1,
                        "maxCandidateNodesAbsolute": 100,
                    },
                }
            ],
        ),
        "gang",
        {},
        [],
    ),
}


def meaning(scheduler: Scheduler, name: str) -> dict[str, Any]:
    """Return all that a configuration made of one plugin and of the whole."""
    (entry,) = [each for tier in scheduler.tiers() for each in tier if each.plugin.name == name]
    measured = usage_conf(scheduler.conf.metrics)
    return {
        **entry.switches,
        **dump_arguments(entry.plugin),
        "actions": scheduler.conf.actions,
        "metrics": measured.source,
        "index": measured.index,
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_configuration_is_read_and_means_what_it_says(name: str) -> None:
    text, about, means, warned = PUBLISHED[name]
    scheduler = Scheduler(parse_conf(text))
    found = meaning(scheduler, about)
    assert {key: found.get(key) for key in means} == means
    in_vain = [each for each in scheduler.warnings if each.severity == "ignored"]
    assert [problem.field for problem in in_vain] == warned


# what Volcano refuses, or what names things that are nowhere to be found
REFUSED = {
    "actions that are gone": ("enqueue, elect, allocate, backfill, reserve", conf("gang")),
    "no actions": ("", conf("tdm")),
    "a plugin of one's own that is not there": (USUAL, conf("priority", "magic")),
    "plugins beside their tier": (
        USUAL,
        "actions: x\ntiers:\n- plugins:\n- name: priority\n- name: gang\n",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused(name: str) -> None:
    actions, text = REFUSED[name]
    content = yaml.safe_load(text) | {"actions": actions}
    with pytest.raises(ConfError):
        Scheduler(read_conf(yaml.safe_dump(content)))


@pytest.mark.parametrize(
    "arguments",
    [
        {
            "deviceshare.AscendHAMiVNPUEnable": True,
            "deviceshare.SchedulePolicy": "binpack",
            "deviceshare.KnownGeometriesCMNamespace": "kube-system",
            "deviceshare.KnownGeometriesCMName": "hami-scheduler-device",
        },
        {"deviceshare.AscendMindClusterVNPUEnable": True},
    ],
)
def test_cards_of_other_makers_stop_no_scheduler(arguments: Any) -> None:
    scheduler = Scheduler(parse_conf(conf(plugin("deviceshare", arguments))))
    found = meaning(scheduler, "deviceshare")
    known = {key: value for key, value in arguments.items() if key in found}
    assert {key: found[key] for key in known} == known
    warned = {each.field for each in scheduler.warnings}
    assert set(arguments) - set(known) <= warned <= set(arguments)

"""What exists before every recorded admission case: queues, namespaces, resource groups."""

from typing import Any, Final

BASE: Final[dict[str, Any]] = {
    "queues": [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"state": "Open"},
        }
        for name, spec in (
            ("root", {"weight": 1, "reclaimable": False}),
            ("default", {"weight": 1, "parent": "root"}),
        )
    ],
    "namespaces": ["default", "kube-system", "volcano-system", "mgmt", "nsq"],
    "admissionConf": """
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value:
    - mgmt
  schedulerName: default-scheduler
  tolerations:
  - effect: NoSchedule
    key: taint
    operator: Exists
  labels:
    volcano.sh/nodetype: management
- resourceGroup: cpu
  object:
    key: annotation
    value:
    - "volcano.sh/resource-group: cpu"
    - "team: red"
  schedulerName: volcano
  labels:
    volcano.sh/nodetype: cpu
  affinity: >-
    {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}
- resourceGroup: gpu
  schedulerName: volcano
  labels:
    volcano.sh/nodetype: gpu
""",
}

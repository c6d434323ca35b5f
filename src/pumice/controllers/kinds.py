"""The kinds of object that controllers watch and make, as ``kind_of`` names them."""

from typing import Final

CLAIM: Final = "PersistentVolumeClaim"
COMMAND: Final = "Command.bus.volcano.sh"
CRONJOB: Final = "CronJob.batch.volcano.sh"
JOB: Final = "Job.batch.volcano.sh"
JOB_FLOW: Final = "JobFlow.flow.volcano.sh"
JOB_TEMPLATE: Final = "JobTemplate.flow.volcano.sh"
NETWORK_POLICY: Final = "NetworkPolicy.networking.k8s.io"
POD: Final = "Pod"
PODGROUP: Final = "PodGroup.scheduling.volcano.sh"
PRIORITY_CLASS: Final = "PriorityClass.scheduling.k8s.io"
QUEUE: Final = "Queue.scheduling.volcano.sh"
STORAGE_CLASS: Final = "StorageClass.storage.k8s.io"

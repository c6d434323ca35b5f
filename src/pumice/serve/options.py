"""What a serving process can be told: one class for each, with Volcano's names and defaults.

Filled by the command line from flags, read by whatever runs live.  A field is called as its flag,
with ``_s`` where it counts seconds; reading flags is not done here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

FEATURE_GATES: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "WorkLoadSupport": True,
        "VolcanoJobSupport": True,
        "PodDisruptionBudgetsSupport": True,
        "QueueCommandSync": True,
        "PriorityClass": True,
        "CSIStorage": False,
        "ResourceTopology": True,
        "CronVolcanoJobSupport": True,
        "SchedulingGatesQueueAdmission": False,
    }
)
"""The gates of Volcano itself, and whether they are open unless told otherwise."""
DEFAULT_ADMISSION: Final = (
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,"
    "/queues/mutate,/queues/validate"
)


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """What every process can be told."""

    master: str = ""
    kubeconfig: str = ""
    kube_api_qps: float = 50.0
    kube_api_burst: int = 100
    ca_cert_file: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    scheduler_name: tuple[str, ...] = ("volcano",)
    enable_healthz: bool = False
    healthz_address: str = ":11251"
    listen_address: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=lambda: FEATURE_GATES)
    v: int = 0
    vmodule: str = ""
    logging_format: str = "text"
    skip_headers: bool = False

    def gate(self, name: str) -> bool:
        """Say whether a feature gate is open; one that nobody knows is not."""
        return self.feature_gates.get(name, False)


@dataclass(frozen=True, kw_only=True)
class LeaderOptions(CommonOptions):
    """What a process can be told of which only one may be at work."""

    enable_metrics: bool = False
    leader_elect: bool = True
    leader_elect_lease_duration_s: float = 15.0
    leader_elect_renew_deadline_s: float = 10.0
    leader_elect_retry_period_s: float = 2.0
    leader_elect_resource_name: str = "volcano"
    leader_elect_resource_namespace: str = "volcano-system"


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions(LeaderOptions):
    """What ``pumice serve scheduler`` can be told."""

    kube_api_qps: float = 2000.0
    kube_api_burst: int = 2000
    listen_address: str = ":8080"
    scheduler_conf: str = ""
    schedule_period_s: float = 1.0
    default_queue: str = "default"
    node_selector: tuple[str, ...] = ()
    """Labels ("key:value") of the nodes to work with; a node needs one of them, all if empty."""
    cache_dumper: bool = True
    cache_dump_dir: str = "/tmp"  # noqa: S108  # Volcano's default; written to on a signal only
    resource_sync_timeout_s: float = 60.0
    disable_default_scheduler_config: bool = False
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ControllerOptions(LeaderOptions):
    """What ``pumice serve controllers`` can be told."""

    listen_address: str = ":8081"
    leader_elect_resource_name: str = "vc-controller-manager"
    worker_threads: int = 3
    worker_threads_for_cronjob: int = 3
    worker_threads_for_podgroup: int = 5
    worker_threads_for_gc: int = 1
    worker_threads_for_queue: int = 5
    max_requeue_num: int = 15
    inherit_owner_annotations: bool = True
    controllers: tuple[str, ...] = ("*", "-sharding-controller")


@dataclass(frozen=True, kw_only=True)
class WebhookOptions(CommonOptions):
    """What ``pumice serve webhooks`` can be told."""

    port: int = 8443
    webhook_namespace: str = ""
    webhook_service_name: str = ""
    webhook_url: str = ""
    enabled_admission: str = DEFAULT_ADMISSION
    admission_conf: str = ""
    graceful_shutdown_time_s: float = 30.0
    enable_queue_allocated_pods_check: bool = False
    max_queue_depth: int = 5
    enable_root_queue_protection: bool = True

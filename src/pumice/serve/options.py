"""Options of a serving process: the flags of Volcano's own, with their names and defaults.

Each option is declared here and nowhere else: the command line, ``--help`` and the documentation
are made from these classes.  A field has the name of its flag, with ``_s`` where it counts seconds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pumice.api.kinds import CONTROLLERS_LEASE, DEFAULT_QUEUE, SCHEDULER_LEASE, SYSTEM_NAMESPACE
from pumice.errors import InputError, Words
from pumice.serve.flags import Flag, flag, flags_of, ignored, parse

QUEUE_GATES: Final = "SchedulingGatesQueueAdmission"
"""Pods are held back by a scheduling gate until their queue has room."""
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
        QUEUE_GATES: False,
    }
)
"""The gates of Volcano itself, and their defaults."""
DEFAULT_ADMISSION: Final = (
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,"
    "/queues/mutate,/queues/validate"
)
_ALL_NODES: Final = "all nodes are examined in each cycle"
_ONE_LOG: Final = "logs go to standard error"
_NO_SHARDS: Final = "nodes are not split into shards"
_NOT_PYTHON: Final = "plugins are installed as Python packages (entry point pumice.plugins)"
_WORKERS: Final = "objects of this kind reconciled in parallel"


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options of every process."""

    # Connection
    master: str = flag("", "address of the API server, instead of the kubeconfig's")
    kubeconfig: str = flag("", "file that names the cluster; inside a pod none is needed")
    kube_api_qps: float = flag(50.0, "requests a second to the API server", least=0.01)
    kube_api_burst: int = flag(100, "requests at once to the API server", least=1)

    # Serving
    ca_cert_file: str = flag("", "authority of --tls-cert-file")
    tls_cert_file: str = flag("", "certificate to serve with")
    tls_private_key_file: str = flag("", "key of --tls-cert-file")
    enable_healthz: bool = flag(default=False, help="serve /healthz and /readyz")
    healthz_address: str = flag(":11251", "where to serve them", kind="address")
    scheduler_name: tuple[str, ...] = flag(
        ("volcano",), "schedulerName of the pods to schedule; repeatable", kind="array"
    )
    feature_gates: Mapping[str, bool] = flag(
        FEATURE_GATES, "features on or off: Name=true,…", kind="gates"
    )
    version: bool = flag(default=False, help="print the version and exit")

    # Logging
    v: int = flag(0, "verbosity of the log", least=0)
    vmodule: str = flag("", "verbosity by part: lease=4,…", kind="levels")
    logging_format: str = flag("text", "form of the log", choices=("text", "json"))
    skip_headers: bool = flag(default=False, help="no time and place on log lines")
    logtostderr: bool = ignored(default=True, why=_ONE_LOG)
    alsologtostderr: bool = ignored(default=False, why=_ONE_LOG)
    alsologtostderrthreshold: str = ignored("", _ONE_LOG)
    stderrthreshold: str = ignored("INFO", _ONE_LOG)
    log_dir: str = ignored("", _ONE_LOG)
    log_file: str = ignored("", _ONE_LOG)
    log_file_max_size: int = ignored(1800, _ONE_LOG)
    log_backtrace_at: str = ignored(":0", "log lines carry no backtrace")
    log_flush_frequency_s: float = ignored(5.0, "each line is written")
    add_dir_header: bool = ignored(default=False, why="lines name the file")
    skip_log_headers: bool = ignored(default=False, why="log files are not written")
    one_output: bool = ignored(default=False, why=_ONE_LOG)
    legacy_stderr_threshold_behavior: bool = ignored(default=False, why=_ONE_LOG)

    def gate(self, name: str) -> bool:
        """Return whether a feature gate is open; an unknown one is not."""
        return self.feature_gates.get(name, False)


@dataclass(frozen=True, kw_only=True)
class LeaderOptions(CommonOptions):
    """Options of a process of which only one may be active."""

    enable_metrics: bool = flag(default=False, help="serve /metrics")
    leader_elect: bool = flag(default=True, help="work only while holding the lease")
    leader_elect_lease_duration_s: float = flag(
        15.0,
        "how long other processes wait before they take over a lease that is not renewed",
        least=1,
    )
    leader_elect_renew_deadline_s: float = flag(
        10.0, "how long after a renewal this process still works"
    )
    leader_elect_retry_period_s: float = flag(2.0, "time between tries to get or renew")
    leader_elect_resource_lock: str = ignored(
        "leases", "leases are the only kind", choices=("leases",)
    )
    leader_elect_resource_name: str = flag(SCHEDULER_LEASE, "name of the lease")
    leader_elect_resource_namespace: str = flag(SYSTEM_NAMESPACE, "namespace of the lease")
    lock_object_namespace: str = flag("", "older name of --leader-elect-resource-namespace")
    listen_address: str = flag(":8080", "where to serve /metrics", kind="address")


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions(LeaderOptions):
    """Options of ``pumice serve scheduler``."""

    kube_api_qps: float = 2000.0
    kube_api_burst: int = 2000
    scheduler_conf: str = flag("", "configuration file; read again when it changes")
    schedule_period_s: float = flag(1.0, "time between cycles", least=0.001)
    default_queue: str = flag(DEFAULT_QUEUE, "queue of jobs that name none")
    node_selector: tuple[str, ...] = flag((), "nodes to use, key:value; one must match")
    resource_sync_timeout_s: float = flag(
        60.0,
        "time after which the log names the kinds that are not synced yet; 0 for never",
        least=0,
    )
    disable_default_scheduler_config: bool = flag(
        default=True,
        help="exit if the configuration file is bad at the start; false: use the built-in default",
    )
    cache_dumper: bool = flag(default=True, help="on SIGUSR1 or SIGUSR2 write the cache to a file")
    cache_dump_dir: str = flag("/tmp", "folder of that file")  # noqa: S108  # Volcano's default
    seed: int = flag(0, "seed of choices among equals", least=0)
    shadow: bool = flag(
        default=False,
        help="write nothing; decide beside the running scheduler and report differences",
    )
    shadow_report: str = flag("", "file for that report, JSON, written again every 5 s")
    ui: bool = flag(default=False, help="serve the dashboard")
    ui_address: str = flag("127.0.0.1:11252", "where to serve it", kind="address")
    ui_host: tuple[str, ...] = flag(
        (), "host name under which it is reached, beside loopback; repeatable", kind="array"
    )
    ui_tls_cert_file: str = flag("", "certificate to serve it with")
    ui_tls_private_key_file: str = flag("", "key of --ui-tls-cert-file")
    ui_token_file: str = flag("", "anyone with the token in this file may look")
    ui_cluster_login: bool = flag(
        default=False, help="users log in with cluster tokens and see what they may read"
    )
    ui_allow_actions: bool = flag(
        default=False, help="pages may suspend, resume and end jobs, and open and close queues"
    )
    resync_period_s: float = ignored(0.0, "watches are complete")
    priority_class: bool = ignored(default=True, why="priority classes always count")
    csi_storage: bool = ignored(default=True, why="storage is always considered")
    minimum_feasible_nodes: int = ignored(100, _ALL_NODES)
    minimum_percentage_nodes_to_find: int = ignored(5, _ALL_NODES)
    percentage_nodes_to_find: int = ignored(0, _ALL_NODES)
    plugins_dir: str = ignored("", _NOT_PYTHON)
    enable_pprof: bool = ignored(default=False, why="there is no Go profile")
    node_worker_threads: int = ignored(20, "nodes need no threads")
    gate_removal_worker_num: int = ignored(5, "gates need no threads")
    ignored_provisioners: tuple[str, ...] = ignored(
        (), "claims are counted by the limits of their CSI nodes"
    )
    scheduler_sharding_mode: str = ignored("none", _NO_SHARDS, choices=("none", "hard", "soft"))
    scheduler_sharding_name: str = ignored("volcano", _NO_SHARDS)


@dataclass(frozen=True, kw_only=True)
class ControllerOptions(LeaderOptions):
    """Options of ``pumice serve controllers``."""

    listen_address: str = ":8081"
    leader_elect_resource_name: str = CONTROLLERS_LEASE
    worker_threads: int = flag(3, f"jobs: {_WORKERS}", least=1)
    worker_threads_for_cronjob: int = flag(3, f"cron jobs: {_WORKERS}", least=1)
    worker_threads_for_podgroup: int = flag(5, f"pod groups: {_WORKERS}", least=1)
    worker_threads_for_gc: int = flag(1, f"finished jobs: {_WORKERS}", least=1)
    worker_threads_for_queue: int = flag(5, f"queues: {_WORKERS}", least=1)
    max_requeue_num: int = flag(15, "tries before an object is given up", least=-1)
    inherit_owner_annotations: bool = flag(
        default=True, help="pod groups of plain pods get the annotations of the pods' owner"
    )
    controllers: tuple[str, ...] = flag(
        ("*", "-sharding-controller"), "controllers to run: *, name, -name"
    )
    scheduler_configs: tuple[str, ...] = ignored((), _NO_SHARDS)
    shard_sync_period_s: float = ignored(60.0, _NO_SHARDS)
    enable_node_event_trigger: bool = ignored(default=True, why=_NO_SHARDS)
    sharding_configmap: str = ignored("", _NO_SHARDS)
    sharding_configmap_namespace: str = ignored("", _NO_SHARDS)


@dataclass(frozen=True, kw_only=True)
class WebhookOptions(CommonOptions):
    """Options of ``pumice serve webhooks``."""

    listen_address: str = flag("", "address to serve admission on; all if empty")
    port: int = flag(8443, "port to serve admission on", least=1, most=65535)
    webhook_namespace: str = flag("", "namespace of the service in front")
    webhook_service_name: str = flag("", "name of the service in front")
    webhook_url: str = flag("", "address to register instead of a service")
    enabled_admission: str = flag(DEFAULT_ADMISSION, "paths to serve, separated by commas")
    admission_conf: str = flag("", "file with resource groups for pods")
    graceful_shutdown_time_s: float = flag(30.0, "time for open requests at shutdown", least=0)
    enable_queue_allocated_pods_check: bool = flag(
        default=False, help="refuse to delete queues that hold pods"
    )
    max_queue_depth: int = flag(5, "levels of queues below the root", least=1)
    max_job_replicas: int = flag(
        100_000, "pods that one job may ask for; 0 for any number", least=0
    )
    enable_root_queue_protection: bool = flag(
        default=True, help="refuse changes of the root queue's resources"
    )


def _joined(*tables: tuple[Flag, ...]) -> tuple[Flag, ...]:
    found: dict[str, Flag] = {}
    for table in tables:
        for each in table:
            found.setdefault(each.name, each)
    return tuple(found.values())


_SCHEDULER: Final = flags_of(SchedulerOptions)
_CONTROLLERS: Final = flags_of(ControllerOptions)
_WEBHOOKS: Final = flags_of(WebhookOptions)
FLAGS: Final[Mapping[str, tuple[Flag, ...]]] = {
    "scheduler": _SCHEDULER,
    "controllers": _CONTROLLERS,
    "webhooks": _WEBHOOKS,
    "all": _joined(_SCHEDULER, _CONTROLLERS, _WEBHOOKS),
}
"""The flags of each process."""


# From a command line to options, checked as a whole

_JITTER: Final = 1.2
"""A renewal may come later than the retry period by this factor."""
_Options = TypeVar("_Options", bound=CommonOptions)


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """The options of one process; a part that is None does not run."""

    scheduler: SchedulerOptions | None = None
    controllers: ControllerOptions | None = None
    webhooks: WebhookOptions | None = None
    warnings: Sequence[str] = ()
    wants_help: bool = False

    @property
    def common(self) -> CommonOptions:
        """The options that all parts have."""
        found = self.leader or self.webhooks
        if found is None:
            raise TypeError("nothing is to run")
        return found

    @property
    def leader(self) -> LeaderOptions | None:
        """The options of the elected parts, None if there are none."""
        return self.scheduler or self.controllers


def read_options(process: str, words: Sequence[str]) -> ProcessOptions:
    """Read the command line of a process: scheduler, controllers, webhooks or all of them.

    Raises:
        InputError: an invalid value, or an invalid combination.
    """
    parsed = parse(FLAGS[process], words)
    values = parsed.values
    if older := values.get("lock_object_namespace"):
        values["leader_elect_resource_namespace"] = older
        parsed.warnings.append(
            "--lock-object-namespace is deprecated: use --leader-elect-resource-namespace"
        )
    everything = process == "all"
    options = ProcessOptions(
        scheduler=_filled(SchedulerOptions, values) if process in ("scheduler", "all") else None,
        controllers=(
            _filled(ControllerOptions, values) if process in ("controllers", "all") else None
        ),
        webhooks=_webhooks(values, everything=everything)
        if process in ("webhooks", "all")
        else None,
        warnings=parsed.warnings,
        wants_help=parsed.wants_help,
    )
    if options.scheduler is not None and options.scheduler.shadow:
        options = _in_shadow(options, options.scheduler)
    if options.leader is not None:
        _check_election(options.leader)
    return options


def _in_shadow(options: ProcessOptions, scheduler: SchedulerOptions) -> ProcessOptions:
    """Join no election: a shadow leaves the lease to the running scheduler."""
    if options.controllers is not None or options.webhooks is not None:
        raise InputError(
            field="--shadow",
            wanted="a scheduler alone",
            found=Words("controllers and webhooks"),
            hint="use pumice serve scheduler --shadow",
        )
    if scheduler.ui_allow_actions:
        raise InputError(
            field="--ui-allow-actions",
            wanted="a scheduler that may write",
            found="--shadow",
            hint="a shadow writes nothing",
        )
    return replace(options, scheduler=replace(scheduler, leader_elect=False))


def _filled(kind: type[_Options], values: Mapping[str, Any]) -> _Options:
    names = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})


def _webhooks(values: Mapping[str, Any], *, everything: bool) -> WebhookOptions:
    """Return the options of the webhooks; with all in one, --listen-address is that of metrics."""
    if everything:
        values = {name: value for name, value in values.items() if name != "listen_address"}
    return _filled(WebhookOptions, values)


def _check_election(options: LeaderOptions) -> None:
    """Refuse times by which two processes could lead at once, or none for long."""
    if not options.leader_elect:
        return
    lease, renew = options.leader_elect_lease_duration_s, options.leader_elect_renew_deadline_s
    retry = options.leader_elect_retry_period_s
    written = math.floor(lease)  # a lease holds whole seconds
    if not written > renew:
        rounded = "" if written == lease else f", in whole seconds {written}s"
        wanted = f"less than the lease duration of {lease:g}s{rounded}"
        _refuse("renew-deadline", wanted, f"{renew:g}s")
    if not retry > 0:
        _refuse("retry-period", "more than nothing", f"{retry:g}s")
    if not renew > _JITTER * retry:
        wanted = f"more than {_JITTER} times the retry period of {retry:g}s"
        _refuse("renew-deadline", wanted, f"{renew:g}s")
    if not options.leader_elect_resource_name:
        _refuse("resource-name", "the name of a lease", "")


def _refuse(flag_name: str, wanted: str, found: str) -> None:
    raise InputError(field=f"--leader-elect-{flag_name}", wanted=wanted, found=found)

"""The flags of each process, row by row; the documentation is made from these tables.

Names and defaults are those of vc-scheduler, vc-controller-manager and vc-webhook-manager.  A
default that is not written here is that of the field of the options the flag sets.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from pumice.serve.flags import Flag
from pumice.serve.options import (
    CommonOptions,
    ControllerOptions,
    SchedulerOptions,
    WebhookOptions,
)

_ALL_NODES: Final = "all nodes are looked at in each cycle"
_ONE_LOG: Final = "logs go to standard error"
_NO_SHARDS: Final = "nodes are not split into shards"
_NOT_PYTHON: Final = "plugins are installed as Python packages (entry point pumice.plugins)"

_CONNECTION: Final = (
    Flag(name="master", help="address of the API server, instead of the kubeconfig's"),
    Flag(name="kubeconfig", help="file that names the cluster; inside a pod none is needed"),
    Flag(name="kube-api-qps", kind="float", help="requests a second to the API server", least=0.01),
    Flag(name="kube-api-burst", kind="int", help="requests at once to the API server", least=1),
)
_SERVING: Final = (
    Flag(name="ca-cert-file", help="authority of --tls-cert-file"),
    Flag(name="tls-cert-file", help="certificate to serve with"),
    Flag(name="tls-private-key-file", help="key of --tls-cert-file"),
    Flag(name="enable-healthz", kind="bool", help="serve /healthz and /readyz"),
    Flag(name="healthz-address", kind="address", help="where to serve them"),
    Flag(name="scheduler-name", kind="array", help="pods to care for, by schedulerName; again"),
    Flag(name="feature-gates", kind="gates", help="features on or off: Name=true,…"),
    Flag(name="version", kind="bool", help="tell the version and end", default=False),
)
_LOGGING: Final = (
    Flag(name="v", kind="int", help="verbosity of the log", least=0),
    Flag(name="vmodule", kind="levels", help="verbosity by part: lease=4,…"),
    Flag(name="logging-format", help="form of the log", choices=("text", "json")),
    Flag(name="skip-headers", kind="bool", help="no time and place on log lines"),
    Flag(name="logtostderr", kind="bool", default=True, ignored=_ONE_LOG),
    Flag(name="alsologtostderr", kind="bool", default=False, ignored=_ONE_LOG),
    Flag(name="alsologtostderrthreshold", default="", ignored=_ONE_LOG),
    Flag(name="stderrthreshold", default="INFO", ignored=_ONE_LOG),
    Flag(name="log-dir", default="", ignored=_ONE_LOG),
    Flag(name="log-file", default="", ignored=_ONE_LOG),
    Flag(name="log-file-max-size", kind="int", default=1800, ignored=_ONE_LOG),
    Flag(name="log-backtrace-at", default=":0", ignored="log lines carry no backtrace"),
    Flag(name="log-flush-frequency", kind="duration", default=5.0, ignored="each line is written"),
    Flag(name="add-dir-header", kind="bool", default=False, ignored="lines name the file"),
    Flag(name="skip-log-headers", kind="bool", default=False, ignored="log files are not written"),
    Flag(name="one-output", kind="bool", default=False, ignored=_ONE_LOG),
    Flag(name="legacy-stderr-threshold-behavior", kind="bool", default=False, ignored=_ONE_LOG),
)
_LEADING: Final = (
    Flag(name="enable-metrics", kind="bool", help="serve /metrics"),
    Flag(name="leader-elect", kind="bool", help="work only while holding the lease"),
    Flag(
        name="leader-elect-lease-duration",
        kind="duration",
        help="how long others leave a lease alone that is not renewed",
        least=1,
    ),
    Flag(
        name="leader-elect-renew-deadline",
        kind="duration",
        help="how long after a renewal this process still works",
    ),
    Flag(
        name="leader-elect-retry-period", kind="duration", help="time between tries to get or renew"
    ),
    Flag(
        name="leader-elect-resource-lock",
        default="leases",
        choices=("leases",),
        ignored="leases are the only kind",
    ),
    Flag(name="leader-elect-resource-name", help="name of the lease"),
    Flag(name="leader-elect-resource-namespace", help="namespace of the lease"),
    Flag(
        name="lock-object-namespace",
        help="older name of --leader-elect-resource-namespace",
        default="",
    ),
)
_COMMON: Final = (*_CONNECTION, *_SERVING, *_LOGGING)
SCHEDULER: Final = (
    *_COMMON,
    *_LEADING,
    Flag(name="listen-address", kind="address", help="where to serve /metrics"),
    Flag(name="scheduler-conf", help="configuration file; read again when it changes"),
    Flag(name="schedule-period", kind="duration", help="time between cycles", least=0.001),
    Flag(name="default-queue", help="queue of jobs that name none"),
    Flag(name="node-selector", kind="slice", help="nodes to use, key:value; one must match"),
    Flag(
        name="resource-sync-timeout",
        kind="duration",
        help="after this time the log names the kinds still waited for; 0: it does not",
        least=0,
    ),
    Flag(
        name="disable-default-scheduler-config",
        kind="bool",
        help="end if the configuration file is bad at the start, instead of using the built-in one",
    ),
    Flag(
        name="cache-dumper", kind="bool", help="on SIGUSR1 or SIGUSR2 write what is known to a file"
    ),
    Flag(name="cache-dump-dir", help="folder of that file"),
    Flag(name="seed", kind="int", help="seed of choices among equals", least=0),
    Flag(name="resync-period", kind="duration", default=0.0, ignored="watches are complete"),
    Flag(name="priority-class", kind="bool", default=True, ignored="priority classes always count"),
    Flag(name="csi-storage", kind="bool", default=True, ignored="storage is always looked at"),
    Flag(name="minimum-feasible-nodes", kind="int", default=100, ignored=_ALL_NODES),
    Flag(name="minimum-percentage-nodes-to-find", kind="int", default=5, ignored=_ALL_NODES),
    Flag(name="percentage-nodes-to-find", kind="int", default=0, ignored=_ALL_NODES),
    Flag(name="plugins-dir", default="", ignored=_NOT_PYTHON),
    Flag(name="enable-pprof", kind="bool", default=False, ignored="there is no Go profile"),
    Flag(name="node-worker-threads", kind="int", default=20, ignored="nodes need no threads"),
    Flag(name="gate-removal-worker-num", kind="int", default=5, ignored="gates need no threads"),
    Flag(
        name="ignored-provisioners",
        kind="slice",
        default=(),
        ignored="claims are counted by what their CSI nodes tell",
    ),
    Flag(
        name="scheduler-sharding-mode",
        default="none",
        choices=("none", "hard", "soft"),
        ignored=_NO_SHARDS,
    ),
    Flag(name="scheduler-sharding-name", default="volcano", ignored=_NO_SHARDS),
)
_WORKERS: Final = "objects of this kind looked at side by side"
CONTROLLERS: Final = (
    *_COMMON,
    *_LEADING,
    Flag(name="listen-address", kind="address", help="where to serve /metrics"),
    Flag(name="worker-threads", kind="int", help=f"jobs: {_WORKERS}", least=1),
    Flag(name="worker-threads-for-cronjob", kind="int", help=f"cron jobs: {_WORKERS}", least=1),
    Flag(name="worker-threads-for-podgroup", kind="int", help=f"pod groups: {_WORKERS}", least=1),
    Flag(name="worker-threads-for-gc", kind="int", help=f"finished jobs: {_WORKERS}", least=1),
    Flag(name="worker-threads-for-queue", kind="int", help=f"queues: {_WORKERS}", least=1),
    Flag(name="max-requeue-num", kind="int", help="tries before an object is given up", least=-1),
    Flag(
        name="inherit-owner-annotations",
        kind="bool",
        help="pod groups of plain pods get the annotations of the pods' owner",
    ),
    Flag(name="controllers", kind="slice", help="controllers to run: *, name, -name"),
    Flag(name="scheduler-configs", kind="slice", default=(), ignored=_NO_SHARDS),
    Flag(name="shard-sync-period", kind="duration", default=60.0, ignored=_NO_SHARDS),
    Flag(name="enable-node-event-trigger", kind="bool", default=True, ignored=_NO_SHARDS),
    Flag(name="sharding-configmap", default="", ignored=_NO_SHARDS),
    Flag(name="sharding-configmap-namespace", default="", ignored=_NO_SHARDS),
)
WEBHOOKS: Final = (
    *_COMMON,
    Flag(name="listen-address", help="address to serve admission on; all if empty"),
    Flag(name="port", kind="int", help="port to serve admission on", least=1, most=65535),
    Flag(name="webhook-namespace", help="namespace of the service in front"),
    Flag(name="webhook-service-name", help="name of the service in front"),
    Flag(name="webhook-url", help="address to register instead of a service"),
    Flag(name="enabled-admission", help="paths to serve, separated by commas"),
    Flag(name="admission-conf", help="file with resource groups for pods"),
    Flag(
        name="graceful-shutdown-time",
        kind="duration",
        help="time that open requests get when told to stop",
        least=0,
    ),
    Flag(
        name="enable-queue-allocated-pods-check",
        kind="bool",
        help="refuse to delete queues that hold pods",
    ),
    Flag(name="max-queue-depth", kind="int", help="levels of queues below the root", least=1),
    Flag(
        name="enable-root-queue-protection",
        kind="bool",
        help="refuse changes of the root queue's resources",
    ),
)


def _joined(*tables: tuple[Flag, ...]) -> tuple[Flag, ...]:
    found: dict[str, Flag] = {}
    for table in tables:
        for flag in table:
            found.setdefault(flag.name, flag)
    return tuple(found.values())


ALL: Final = _joined(SCHEDULER, CONTROLLERS, WEBHOOKS)
TABLES: Final[Mapping[str, tuple[Flag, ...]]] = {
    "scheduler": SCHEDULER,
    "controllers": CONTROLLERS,
    "webhooks": WEBHOOKS,
    "all": ALL,
}
OPTIONS: Final[Mapping[str, type[CommonOptions]]] = {
    "scheduler": SchedulerOptions,
    "controllers": ControllerOptions,
    "webhooks": WebhookOptions,
}


def default_of(process: str, flag: Flag) -> Any:
    """Give what a flag of a process is unless it is given."""
    if flag.default is not None:
        return flag.default
    defaults: dict[str, Any] = {}
    for options in (OPTIONS[process],) if process in OPTIONS else OPTIONS.values():
        made = options()
        for each in fields(made):
            defaults.setdefault(each.name, getattr(made, each.name))
    return defaults[flag.target]

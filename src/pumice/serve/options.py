"""Options of a serving process: the flags of Volcano's own, with their names and defaults.

Each option is declared here and nowhere else: the command line, ``--help`` and the documentation
are made from these classes.  A field has the name of its flag, with ``_s`` where it counts seconds.
Flags are written as Go programs take them: one dash or two, ``--flag=value``, durations such as
1m30s.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, get_type_hints

from pumice.api.duration import parse_duration
from pumice.api.kinds import CONTROLLERS_LEASE, DEFAULT_QUEUE, SCHEDULER_LEASE, SYSTEM_NAMESPACE
from pumice.api.wording import nearest
from pumice.errors import InputError, Words

Kind = Literal[
    "string", "bool", "int", "float", "duration", "address", "array", "slice", "gates", "levels"
]
_T = TypeVar("_T")
_FLAG: Final = "flag"
_KINDS: Final[Mapping[Any, Kind]] = {bool: "bool", int: "int", float: "float", str: "string"}
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_REDIRECTION: Final = "2>&1"
"""Volcano's manifests pass this word literally, though it is meant for a shell."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One flag of a process: its type, its effect, and the field of the options it sets."""

    name: str
    """Without dashes."""
    field: str
    kind: Kind
    default: Any
    help: str = ""
    ignored: str = ""
    """Why it has no effect; the log says so if the value is not the default."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


def flag(
    default: _T,
    help: str,  # noqa: A002  # what it is called everywhere
    *,
    kind: Kind | None = None,
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
) -> _T:
    """Declare a field of options that a flag sets, by default with the kind of its type."""
    declared: dict[str, Any] = {"help": help, "choices": choices, "least": least, "most": most}
    if kind is not None:
        declared["kind"] = kind
    return _declare(default, declared)


def ignored(default: _T, why: str, *, choices: tuple[str, ...] = ()) -> _T:
    """Declare a field of options for a flag that is accepted and has no effect."""
    return _declare(default, {"ignored": why, "choices": choices})


def _declare(default: _T, declared: Mapping[str, Any]) -> _T:
    return field(default_factory=lambda: default, metadata={_FLAG: declared})


def flags_of(options: type[Any]) -> tuple[Flag, ...]:
    """List the flags of a class of options, in the order of its fields.

    A class that declares a field of its base again, with a plain value, changes the default only.
    """
    declared: dict[str, Mapping[str, Any]] = {}
    for base in reversed(options.__mro__):
        for each in fields(base) if is_dataclass(base) else ():
            declared[each.name] = each.metadata.get(_FLAG) or declared[each.name]
    defaults, types = options(), get_type_hints(options)
    return tuple(
        _flag(name, types[name], getattr(defaults, name), help_text)
        for name, help_text in declared.items()
    )


def _flag(field_name: str, annotation: Any, default: Any, declared: Mapping[str, Any]) -> Flag:
    is_duration = annotation is float and field_name.endswith("_s")
    name = field_name.removesuffix("_s") if is_duration else field_name
    kind = "duration" if is_duration else _KINDS.get(annotation, "slice")
    return Flag(
        **{"kind": kind, **declared}, name=name.replace("_", "-"), field=field_name, default=default
    )


@dataclass
class Parsed:
    """The content of a command line."""

    values: dict[str, Any] = field(default_factory=dict)
    """Options by field name, if they are given."""
    warnings: list[str] = field(default_factory=list)
    wants_help: bool = False


def parse(flags: Sequence[Flag], words: Sequence[str]) -> Parsed:
    """Read a command line.

    Raises:
        InputError: a flag that does not exist, or a value it cannot have.
    """
    known = {flag.name: flag for flag in flags}
    parsed = Parsed()
    rest = [*words]
    while rest:
        word = rest.pop(0)
        if word == _REDIRECTION:
            continue
        name, text = _split(word)
        if name in ("help", "h"):
            parsed.wants_help = True
            continue
        flag = known.get(name)
        if flag is None:
            raise _unknown(name, known)
        if text is None:
            text = _value_of(flag, rest)
        _take(flag, text, parsed)
    return parsed


def _split(word: str) -> tuple[str, str | None]:
    """Return the name of a flag and its value, if it is in the same word."""
    dashes = len(word) - len(word.lstrip("-"))
    name, equals, text = word[dashes:].partition("=")
    if dashes not in (1, 2) or not name:
        hint = "values of switches follow an equals sign, as in --leader-elect=false"
        raise InputError(wanted="a flag", found=word, hint=hint)
    return name.replace("_", "-"), text if equals else None


def _value_of(flag: Flag, rest: list[str]) -> str:
    if flag.kind == "bool":
        return "true"
    if not rest:
        raise InputError(
            field=f"--{flag.name}", wanted=_wanted(flag), found=Words("nothing after it")
        )
    return rest.pop(0)


def _unknown(name: str, known: Collection[str]) -> InputError:
    near = nearest(name, known)
    dash = "-" if len(name) == 1 else "--"
    hint = f"did you mean --{near}?" if near else "--help lists them"
    return InputError(wanted="a known flag", found=f"{dash}{name}", hint=hint)


def _take(flag: Flag, text: str, parsed: Parsed) -> None:
    value = _READERS[flag.kind](flag, text)
    _check(flag, value, text)
    if flag.ignored:
        if value != flag.default:
            warning = f"--{flag.name} has no effect: {flag.ignored}"
            parsed.warnings = [*dict.fromkeys((*parsed.warnings, warning))]
        return
    if flag.kind in ("array", "slice"):
        value = (*parsed.values.get(flag.field, ()), *value)
    if flag.kind == "gates":
        unknown = sorted(value.keys() - flag.default.keys())
        parsed.warnings += [f"feature gate {name} is not known and ignored" for name in unknown]
        ours = {name: on for name, on in value.items() if name in flag.default}
        value = {**flag.default, **parsed.values.get(flag.field, {}), **ours}
    parsed.values[flag.field] = value


def _check(flag: Flag, value: Any, text: str) -> None:
    outside = (flag.least is not None and value < flag.least) or (
        flag.most is not None and value > flag.most
    )
    if outside or (flag.choices and value not in flag.choices):
        raise _bad(flag, text)


def _bad(flag: Flag, text: str, hint: str = "") -> InputError:
    return InputError(field=f"--{flag.name}", wanted=_wanted(flag), found=text, hint=hint)


def _wanted(flag: Flag) -> str:
    if flag.choices:
        return " or ".join(f'"{choice}"' for choice in flag.choices)
    bounds = ""
    if flag.least is not None and flag.most is not None:
        bounds = f" from {flag.least:g} to {flag.most:g}"
    elif flag.least is not None:
        bounds = f" of at least {flag.least:g}{' seconds' if flag.kind == 'duration' else ''}"
    return f"{_WANTED[flag.kind]}{bounds}"


_WANTED: Final[Mapping[Kind, str]] = {
    "string": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "duration": "a duration such as 1s or 1m30s",
    "address": "an address such as :8080 or 127.0.0.1:8080",
    "array": "a text",
    "slice": "texts separated by commas",
    "gates": "gates such as Name=true,Other=false",
    "levels": "levels such as scheduler=4,lease=2",
}


def _read_text(flag: Flag, text: str) -> str:  # noqa: ARG001
    return text


def _read_bool(flag: Flag, text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise _bad(flag, text)
    return text in _TRUE


def _read_int(flag: Flag, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _bad(flag, text)
    return int(text)


def _read_float(flag: Flag, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _bad(flag, text)
    return float(text)


def _read_duration(flag: Flag, text: str) -> float:
    try:
        return parse_duration(text)
    except InputError as error:
        raise _bad(flag, text, error.hint) from None


def _read_address(flag: Flag, text: str) -> str:
    split_address(text, flag.name)
    return text


def split_address(text: str, flag: str) -> tuple[str, int]:
    """Return host and port of an address; all hosts if empty.

    Raises:
        InputError: it is not an address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not _PORT.fullmatch(port) or int(port) > 65535:
        raise InputError(field=f"--{flag}", wanted=_WANTED["address"], found=text)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _read_one(flag: Flag, text: str) -> tuple[str, ...]:  # noqa: ARG001
    return (text,)


def _read_slice(flag: Flag, text: str) -> tuple[str, ...]:  # noqa: ARG001
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(flag: Flag, text: str) -> list[tuple[str, str]]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    split = [part.partition("=") for part in parts]
    if not all(equals for _, equals, _ in split):
        raise _bad(flag, text)
    return [(name.strip(), value.strip()) for name, _, value in split]


def _read_gates(flag: Flag, text: str) -> dict[str, bool]:
    for name, value in (pairs := _pairs(flag, text)):
        if value not in _TRUE and value not in _FALSE:
            raise InputError(field=f"--{flag.name} {name}", wanted=_WANTED["bool"], found=value)
    return {name: value in _TRUE for name, value in pairs}


def _read_levels(flag: Flag, text: str) -> str:
    if not all(_INTEGER.fullmatch(level) for _, level in _pairs(flag, text)):
        raise _bad(flag, text)
    return text


_READERS: Final[Mapping[Kind, Callable[[Flag, str], Any]]] = {
    "string": _read_text,
    "bool": _read_bool,
    "int": _read_int,
    "float": _read_float,
    "duration": _read_duration,
    "address": _read_address,
    "array": _read_one,
    "slice": _read_slice,
    "gates": _read_gates,
    "levels": _read_levels,
}


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
DEFAULT_SHARDS: Final = (
    "volcano:volcano:0.0:0.6:false:2:100",
    "agent-scheduler:agent:0.7:1.0:true:2:100",
)
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
    ca_cert_file: str = flag("", "CA certificate of --tls-cert-file")
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
    schedule_period_s: float = flag(1.0, "longest time between cycles", least=0.001)
    cycle: str = flag(
        "event",
        "when a cycle begins: event, when something changes that may let a pod start, or period",
        choices=("event", "period"),
    )
    cycle_gather_s: float = flag(
        0.005, "how long changes are left to gather before they begin a cycle", least=0
    )
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
    record: str = flag("", "folder in which every change and decision is recorded")
    record_size: str = flag("4Gi", "bytes that the record may take; the oldest goes first")
    record_age_s: float = flag(
        30 * 86400.0, "how long it is kept, the second half of it as checkpoints only", least=60
    )
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
    agent_scheduler_name: tuple[str, ...] = flag(
        (),
        "schedulerName of pods to schedule without a PodGroup, such as agent-scheduler; repeatable",
        kind="array",
    )
    scheduler_sharding_mode: str = flag(
        "none",
        "use the nodes of a NodeShard only (hard) or first (soft)",
        choices=("none", "hard", "soft"),
    )
    scheduler_sharding_name: str = flag("volcano", "name of that NodeShard")


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
    scheduler_configs: tuple[str, ...] = flag(
        DEFAULT_SHARDS,
        "shards without a ConfigMap: name:type:min_util:max_util:prefer_warmup:min_nodes:max_nodes",
    )
    shard_sync_period_s: float = flag(60.0, "time between assignments of nodes to shards")
    enable_node_event_trigger: bool = flag(
        default=True, help="assign nodes again when one comes, goes or changes much"
    )
    sharding_configmap: str = flag(
        "volcano-sharding-configmap", "ConfigMap with the shards, under the key sharding.yaml"
    )
    sharding_configmap_namespace: str = flag(SYSTEM_NAMESPACE, "its namespace")


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

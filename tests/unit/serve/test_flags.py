"""Flags are read as Go programs read them, and every flag of Volcano's processes is known."""

from typing import Any

import pytest

from pumice.errors import InputError
from pumice.serve.options import (
    DEFAULT_ADMISSION,
    FEATURE_GATES,
    FLAGS,
    parse,
    read_options,
    split_address,
)
from tests.present import present

LOGGING = [
    ("v", "3", 0),
    ("vmodule", "lease=4", ""),
    ("logtostderr", "true", True),
    ("alsologtostderr", "false", False),
    ("alsologtostderrthreshold", "", ""),
    ("stderrthreshold", "INFO", "INFO"),
    ("log-dir", "", ""),
    ("log-file", "", ""),
    ("log-file-max-size", "1800", 1800),
    ("log-backtrace-at", ":0", ":0"),
    ("log-flush-frequency", "5s", 5.0),
    ("add-dir-header", "false", False),
    ("skip-headers", "false", False),
    ("skip-log-headers", "false", False),
    ("one-output", "false", False),
    ("legacy-stderr-threshold-behavior", "false", False),
    ("feature-gates", "CSIStorage=true", FEATURE_GATES),
    ("version", "false", False),
]
ELECTION = [
    ("leader-elect", "false", True),
    ("leader-elect-lease-duration", "30s", 15.0),
    ("leader-elect-renew-deadline", "12s", 10.0),
    ("leader-elect-retry-period", "1s", 2.0),
    ("leader-elect-resource-lock", "leases", "leases"),
    ("leader-elect-resource-namespace", "here", "volcano-system"),
    ("lock-object-namespace", "here", ""),
]
CONNECTION = [
    ("master", "https://host:6443", ""),
    ("kubeconfig", "/a/file", ""),
    ("ca-cert-file", "/ca", ""),
    ("tls-cert-file", "/crt", ""),
    ("tls-private-key-file", "/key", ""),
    ("scheduler-name", "other", ("volcano",)),
    ("enable-healthz", "true", False),
    ("healthz-address", "127.0.0.1:1", ":11251"),
]
SCHEDULER = [
    *CONNECTION,
    *LOGGING,
    *ELECTION,
    ("leader-elect-resource-name", "mine", "volcano"),
    ("scheduler-conf", "/conf", ""),
    ("schedule-period", "100ms", 1.0),
    ("resync-period", "0", 0.0),
    ("default-queue", "q", "default"),
    ("listen-address", ":1", ":8080"),
    ("priority-class", "true", True),
    ("kube-api-qps", "50.5", 2000.0),
    ("kube-api-burst", "10", 2000),
    ("minimum-feasible-nodes", "100", 100),
    ("minimum-percentage-nodes-to-find", "5", 5),
    ("percentage-nodes-to-find", "0", 0),
    ("plugins-dir", "", ""),
    ("csi-storage", "true", True),
    ("enable-metrics", "true", False),
    ("enable-pprof", "false", False),
    ("node-selector", "a:b,c:d", ()),
    ("cache-dumper", "false", True),
    ("cache-dump-dir", "/var", "/tmp"),  # noqa: S108
    ("node-worker-threads", "20", 20),
    ("gate-removal-worker-num", "5", 5),
    ("ignored-provisioners", "", ()),
    ("resource-sync-timeout", "0", 60.0),
    ("disable-default-scheduler-config", "false", True),
    ("scheduler-sharding-mode", "none", "none"),
    ("scheduler-sharding-name", "volcano", "volcano"),
]
CONTROLLERS = [
    *CONNECTION,
    *LOGGING,
    *ELECTION,
    ("leader-elect-resource-name", "mine", "vc-controller-manager"),
    ("kube-api-qps", "10", 50.0),
    ("kube-api-burst", "10", 100),
    ("worker-threads", "4", 3),
    ("worker-threads-for-cronjob", "4", 3),
    ("worker-threads-for-podgroup", "4", 5),
    ("worker-threads-for-gc", "4", 1),
    ("worker-threads-for-queue", "4", 5),
    ("max-requeue-num", "4", 15),
    ("listen-address", ":1", ":8081"),
    ("enable-metrics", "true", False),
    ("inherit-owner-annotations", "false", True),
    ("controllers", "*,-gc-controller", ("*", "-sharding-controller")),
]
WEBHOOKS = [
    *CONNECTION,
    *LOGGING,
    ("listen-address", "127.0.0.1", ""),
    ("port", "9443", 8443),
    ("kube-api-qps", "10", 50.0),
    ("kube-api-burst", "10", 100),
    ("webhook-namespace", "here", ""),
    ("webhook-service-name", "it", ""),
    ("webhook-url", "https://it", ""),
    ("enabled-admission", "/jobs/mutate", DEFAULT_ADMISSION),
    ("admission-conf", "/conf", ""),
    ("graceful-shutdown-time", "1m", 30.0),
    ("enable-queue-allocated-pods-check", "true", False),
    ("max-queue-depth", "7", 5),
    ("max-job-replicas", "0", 100_000),
    ("enable-root-queue-protection", "false", True),
]
ROWS = [
    (process, *row)
    for process, rows in (
        ("scheduler", SCHEDULER),
        ("controllers", CONTROLLERS),
        ("webhooks", WEBHOOKS),
    )
    for row in rows
]


@pytest.mark.parametrize(("process", "name", "value", "default"), ROWS)
def test_each_flag_of_volcano_is_accepted_and_has_its_default(
    process: Any, name: Any, value: Any, default: Any
) -> None:
    for word in (f"--{name}={value}", f"-{name}={value}"):
        assert read_options(process, [word]).warnings in (
            [],
            ["--lock-object-namespace is deprecated: use --leader-elect-resource-namespace"],
        )
    flag = next(flag for flag in FLAGS[process] if flag.name == name)
    assert flag.default == default


@pytest.mark.parametrize("process", ["scheduler", "controllers", "webhooks", "all"])
def test_each_flag_sets_an_option_or_says_why_it_does_nothing(process: str) -> None:
    reported = read_options(process, [])
    known = {
        name
        for options in (reported.scheduler, reported.controllers, reported.webhooks)
        if options
        for name in vars(options)
    }
    for flag in FLAGS[process]:
        assert flag.field in known, flag
        assert flag.help or flag.ignored


def test_values_reach_the_options() -> None:
    words = [
        "--schedule-period",
        "100ms",
        "-v=4",
        "--scheduler-name=a",
        "--scheduler-name",
        "b",
        "--node-selector=x:1,y:2",
        "--node-selector",
        "z:3",
        "-leader-elect=false",
        "--enable_metrics",
        "--feature-gates=CSIStorage=true",
    ]
    options = present(read_options("scheduler", words).scheduler)
    assert options.schedule_period_s == 0.1
    assert options.v == 4
    assert options.scheduler_name == ("a", "b")
    assert options.node_selector == ("x:1", "y:2", "z:3")
    assert options.leader_elect is False
    assert options.enable_metrics is True
    assert options.gate("CSIStorage")
    assert options.gate("VolcanoJobSupport")
    assert not options.gate("NeverHeardOf")


def test_all_in_one_gives_each_part_its_options() -> None:
    reported = read_options("all", ["--kubeconfig=/k", "--worker-threads=9", "--listen-address=:1"])
    scheduler, controllers = present(reported.scheduler), present(reported.controllers)
    webhooks = present(reported.webhooks)
    assert {o.kubeconfig for o in (scheduler, controllers, webhooks)} == {"/k"}
    assert controllers.worker_threads == 9
    assert scheduler.listen_address == ":1"
    assert webhooks.listen_address == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--schedule-periode=1s"],
            "unknown flag '--schedule-periode'; did you mean --schedule-period?",
        ),
        (["--xyzzy"], "unknown flag '--xyzzy'; --help lists them"),
        (["-x"], "unknown flag '-x'; --help lists them"),
        (
            ["--schedule-period=soon"],
            (
                "--schedule-period: expected a duration such as 1s or 1m30s of at least "
                "0.001 seconds, got 'soon' "
                "(a number and a unit of ns, us, ms, s, m or h, repeated)"
            ),
        ),
        (["--schedule-period=0"], "got '0'"),
        (["--kube-api-qps=many"], "--kube-api-qps: expected a number of at least 0.01, got 'many'"),
        (["--kube-api-burst=1.5"], "--kube-api-burst: expected a whole number"),
        (["--enable-metrics=yes"], "--enable-metrics: expected true or false, got 'yes'"),
        (
            ["--listen-address=8080"],
            "--listen-address: expected an address such as :8080 or 127.0.0.1:8080, got '8080'",
        ),
        (["--listen-address=:99999"], "--listen-address: expected an address"),
        (
            ["--leader-elect-resource-lock=endpoints"],
            "--leader-elect-resource-lock: expected \"leases\", got 'endpoints'",
        ),
        (["--feature-gates=X"], "--feature-gates: expected gates such as Name=true,Other=false"),
        (["--feature-gates=X=on"], "--feature-gates X: expected true or false, got 'on'"),
        (["--vmodule=lease"], "--vmodule: expected levels"),
        (["--kubeconfig"], "--kubeconfig: expected a text, got nothing after it"),
        (["--leader-elect", "false"], "expected a flag, got 'false' (values of switches follow"),
        (["---v=3"], "expected a flag, got '---v=3'"),
        (
            ["--leader-elect-renew-deadline=20s"],
            (
                "--leader-elect-renew-deadline: expected less than the lease duration of 15s, "
                "got '20s'"
            ),
        ),
        (
            ["--leader-elect-retry-period=9s"],
            "--leader-elect-renew-deadline: expected more than 1.2 times the retry period of 9s",
        ),
        (
            [
                "--leader-elect-lease-duration=2900ms",
                "--leader-elect-renew-deadline=2500ms",
                "--leader-elect-retry-period=1s",
            ],
            "expected less than the lease duration of 2.9s, in whole seconds 2s, got '2.5s'",
        ),
        (["--leader-elect-retry-period=0"], "--leader-elect-retry-period: expected more than"),
        (["--leader-elect-resource-name="], "--leader-elect-resource-name: expected the name"),
    ],
)
def test_a_bad_flag_is_named_with_what_was_found_and_wanted(words: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_options("scheduler", words)
    assert message in str(caught.value)


def test_a_port_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="--port: expected a whole number from 1 to 65535"):
        read_options("webhooks", ["--port=70000"])


def test_a_flag_without_effect_is_reported_once_and_only_if_it_would_have_had_one() -> None:
    words = ["--percentage-nodes-to-find=50", "--percentage-nodes-to-find=60", "--logtostderr"]
    assert read_options("scheduler", words).warnings == [
        "--percentage-nodes-to-find has no effect: all nodes are examined in each cycle"
    ]


def test_an_unknown_feature_gate_is_reported_and_passed_over() -> None:
    reported = read_options("scheduler", ["--feature-gates=NodeSwap=true,QueueCommandSync=false"])
    assert reported.warnings == ["feature gate NodeSwap is not known and ignored"]
    assert present(reported.scheduler).feature_gates == {**FEATURE_GATES, "QueueCommandSync": False}


def test_feature_gates_given_twice_add_up() -> None:
    reported = read_options(
        "scheduler", ["--feature-gates=CSIStorage=true", "--feature-gates=PriorityClass=false"]
    )
    options = present(reported.scheduler)
    assert options.gate("CSIStorage")
    assert not options.gate("PriorityClass")


def test_the_older_name_of_the_lock_namespace_wins_as_it_does_there() -> None:
    words = ["--lock-object-namespace=old", "--leader-elect-resource-namespace=new"]
    reported = read_options("controllers", words)
    assert present(reported.controllers).leader_elect_resource_namespace == "old"


def test_bad_times_do_not_matter_without_an_election() -> None:
    read_options("scheduler", ["--leader-elect=false", "--leader-elect-renew-deadline=1h"])


def test_the_word_that_charts_leave_behind_is_passed_over() -> None:
    assert present(read_options("scheduler", ["-v=3", "2>&1"]).scheduler).v == 3


@pytest.mark.parametrize("word", ["--help", "-h", "-help"])
def test_help_is_asked_for(word: str) -> None:
    assert parse((), [word]).wants_help
    assert read_options("scheduler", [word]).wants_help


def test_version_is_asked_for() -> None:
    assert read_options("scheduler", ["--version"]).common.version
    assert not read_options("scheduler", ["--version=false"]).common.version


@pytest.mark.parametrize(
    ("text", "place"),
    [(":80", ("", 80)), ("[::1]:80", ("::1", 80)), ("localhost:80", ("localhost", 80))],
)
def test_addresses_are_split_into_host_and_port(text: str, place: Any) -> None:
    assert split_address(text, "x") == place

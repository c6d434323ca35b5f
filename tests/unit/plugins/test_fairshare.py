"""fairshare: usage fades by half-life, orders jobs and queues, and survives restarts."""

import json
import logging
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.actions import ACTIONS
from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.api.kinds import CONFIG_MAP
from pumice.api.times import rfc3339
from pumice.cli.main import main
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.dashboard import documents
from pumice.dashboard.questions import pictured
from pumice.dashboard.view import View
from pumice.diagnosis.cluster_state import ClusterState
from pumice.framework.conf_check import check_conf
from pumice.framework.plugin_declarations import AccountShare
from pumice.framework.session import Session
from pumice.framework.session_state import ProcessMemory
from pumice.plugins import builtin_plugins
from pumice.scheduler import Observer, Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.sim.engine import Engine
from pumice.sim.job_run import EPOCH
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of
from tests.unit.sim.made import kube_objects

T0 = 1_767_225_600.0
STATE = "volcano-system/pumice-fairshare"


def conf(**arguments: Any) -> str:
    given = {f"fairshare.{name.replace('_', '.')}": value for name, value in arguments.items()}
    plugin = {"name": "fairshare", "arguments": given}
    return json.dumps({"actions": "allocate", "tiers": [{"plugins": [plugin, {"name": "gang"}]}]})


def running(owner: str, cpu: Any, *, started: float | None = None, **more: Any) -> list[Any]:
    """Return a job of a namespace that runs on node n1."""
    runs = pod("run-0", namespace=owner, group="run", cpu=cpu, node="n1")
    if started is not None:
        runs["status"]["startTime"] = rfc3339(started)
    return [pod_group("run", namespace=owner, min_member=1, phase="Running", **more), runs]


def waiting(owner: str, name: str = "new", second: int = 0, **more: Any) -> list[Any]:
    made = pod_group(
        name, namespace=owner, phase="Inqueue", created=f"2026-01-01T00:00:{second:02}Z", **more
    )
    return [made, pod(f"{name}-0", namespace=owner, group=name, cpu=1)]


class Shares(Observer):
    """Copies what the plugin reports."""

    def opened(self, ssn: Session) -> None:
        """Copy it."""
        accounts = [each for plugin in ssn.plugins for each in plugin.fair_shares()]
        self.by_name = {(each.kind, each.name): each for each in accounts}


class Cluster:
    """A scheduler with its state in a ConfigMap, cycle by cycle."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.stored: list[Any] = []
        self.restart()

    def restart(self) -> None:
        """Forget everything but the ConfigMap."""
        self.scheduler = Scheduler(parse_conf(conf(**self.arguments)))
        self.process = ProcessMemory()

    def cycle(self, objects: Any, now: float) -> Decisions:
        """Decide, and write the state."""
        self.shares = Shares()
        decisions = self.scheduler.decide(
            snapshot_of([queue("default"), *objects, *self.stored]),
            now,
            observer=self.shares,
            process=self.process,
        )
        if data := decisions.stored.get(STATE):
            meta = {"namespace": "volcano-system", "name": "pumice-fairshare"}
            self.stored = [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            ]
        return decisions

    def of(self, kind: str, name: str) -> AccountShare:
        """Return one account."""
        return self.shares.by_name[kind, name]


@settings(max_examples=30, deadline=None)
@given(
    half_life=st.integers(60, 7200),
    held=st.lists(st.integers(1, 16), min_size=1, max_size=3),
    before=st.integers(0, 7200),
    steps=st.lists(st.tuples(st.integers(1, 3000), st.booleans()), min_size=1, max_size=6),
)
def test_usage_of_constant_loads_is_that_of_the_closed_form(
    half_life: int, held: list[int], before: int, steps: list[tuple[int, bool]]
) -> None:
    cluster = Cluster(halfLife=f"{half_life}s", writePeriod="1s")
    objects = [node("n1", cpu=64)]
    for number, cpu in enumerate(held):
        objects += running(f"team-{number}", cpu, started=T0 - before)
    now = T0
    cluster.cycle(objects, now)
    for step, restarts in steps:
        if restarts:
            cluster.restart()
        now += step
        cluster.cycle(objects, now)
    for number, cpu in enumerate(held):
        mean = cpu * (1 - 2 ** (-(now - T0 + before) / half_life))
        account = cluster.of("namespace", f"team-{number}")
        assert account.usage["cpu"] / 1000 == pytest.approx(mean, rel=1e-3, abs=1e-4)
    assert cluster.of("queue", "default").usage["cpu"] == pytest.approx(
        sum(cluster.of("namespace", f"team-{i}").usage["cpu"] for i in range(len(held)))
    )
    weight = sum(held) / len(held)
    for number, cpu in enumerate(held):
        factor = cluster.of("namespace", f"team-{number}").factor
        assert factor == pytest.approx(2 ** (-cpu / weight), rel=1e-3)


def test_usage_of_an_account_that_holds_nothing_halves_in_a_half_life() -> None:
    cluster = Cluster(halfLife="1h")
    cluster.cycle([node("n1", cpu=8), *running("ml", 8, started=T0 - 3600)], T0)
    cluster.cycle([node("n1", cpu=8)], T0)
    for hours in range(3):
        cluster.cycle([node("n1", cpu=8)], T0 + 3600 * hours)
        assert cluster.of("namespace", "ml").share == pytest.approx(0.5 / 2**hours)


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ({}, "light"),
        ({"by": "user", "user": "owner"}, "light"),
        ({"weight_namespace.heavy": 100.0}, "heavy"),
        ({"resource": "memory"}, "heavy"),  # nobody used any: age decides
    ],
)
def test_jobs_of_those_who_used_less_go_first(arguments: dict[str, Any], first: str) -> None:
    cluster = Cluster(**arguments)
    used = [
        *running("heavy", 3, started=T0 - 7200, labels={"owner": "heavy"}),
        *running("light", 1, started=T0 - 3600, annotations={"owner": "light"}),
    ]
    cluster.cycle([node("n1", cpu=4), *used], T0)
    rivals = [
        *waiting("heavy", labels={"owner": "heavy"}),
        *waiting("light", second=1, annotations={"owner": "light"}),
    ]
    decisions = cluster.cycle([node("n1", cpu=1), *rivals], T0 + 1)
    assert [*decisions.binds] == [f"{first}/new-0"]


def test_places_kept_for_a_gang_that_waits_for_leaving_pods_are_not_charged() -> None:
    going = pod("run-0", namespace="a", group="run", cpu=2, node="n1")
    going["metadata"] |= {"deletionTimestamp": rfc3339(T0), "deletionGracePeriodSeconds": 600}
    gang = pod_group("new", namespace="b", min_member=2, phase="Inqueue")
    pods = [pod(f"new-{i}", namespace="b", group="new", cpu=cpu) for i, cpu in enumerate([1, 2])]
    run = pod_group("run", namespace="a", min_member=1, phase="Running")
    cluster = Cluster()
    objects = [node("n1", cpu=3), run, going, gang, *pods]
    cluster.cycle(objects, T0)
    assert [*cluster.cycle(objects, T0 + 100.0).pipelined] == ["b/new-1"]
    assert cluster.of("namespace", "b").share == 0.0
    assert cluster.of("namespace", "a").share == 0.0  # what leaves is not held either


def test_queues_that_used_less_by_their_weight_go_first() -> None:
    used = [
        *running("a", 2, queue="red", started=T0 - 3600),
        *running("b", 3, queue="blue", started=T0 - 3600),
    ]
    rivals = [*waiting("a", queue="red"), *waiting("b", queue="blue", second=1)]
    for blue, first in ((1, "a"), (2, "b")):
        queues = [queue("red", weight=1), queue("blue", weight=blue)]
        cluster = Cluster()
        cluster.cycle([node("n1", cpu=8), *queues, *used], T0)
        decisions = cluster.cycle([node("n1", cpu=1), *queues, *rivals], T0 + 1)
        assert [*decisions.binds] == [f"{first}/new-0"]


def test_the_state_is_written_rarely_and_bounded() -> None:
    cluster = Cluster(writePeriod="60s", maxAccounts=5)
    writes = 0
    for second in range(180):
        users = [
            each
            for number in range(2)
            for each in waiting(
                "ns", f"j{second}-{number}", labels={"pumice.dev/user": f"u{second}"}
            )
        ]
        held = running("ns", 1, started=T0, labels={"pumice.dev/user": f"u{second}"})
        decisions = cluster.cycle([node("n1", cpu=1), *held, *users[:2]], T0 + second)
        writes += bool(decisions.stored)
        assert len(cluster.shares.by_name) <= 5 + 3
    assert writes == 3


@pytest.mark.parametrize("text", ["", "{", '{"at": "x"}', '{"at": 1, "accounts": {"rack": {}}}'])
def test_a_state_that_cannot_be_read_is_reported_and_replaced(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    meta = {"namespace": "volcano-system", "name": "pumice-fairshare"}
    cluster.stored = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"state": text}}
    ]
    with caplog.at_level(logging.WARNING):
        decisions = cluster.cycle([node("n1"), *waiting("ml")], T0)
    assert decisions.failures == []
    assert (STATE in caplog.text) == bool(text)
    assert decisions.stored[STATE]["state"].startswith('{"at":')


def test_a_newer_state_of_another_scheduler_is_taken_over() -> None:
    one, other = Cluster(halfLife="1h"), Cluster(halfLife="1h", writePeriod="1s")
    held = [node("n1", cpu=8), *running("ml", 8, started=T0)]
    one.cycle([node("n1", cpu=8)], T0)
    for second in (0, 3600):
        other.cycle(held, T0 + second)
    one.stored = other.stored
    one.cycle([node("n1", cpu=8)], T0 + 3601)
    assert one.of("namespace", "ml").share == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"by": "rack"}, "fairshare.by"),
        ({"weight_rack.a": 1.0}, "fairshare.weight.rack.a"),
        ({"weight_user.a": 0}, "fairshare.weight.user.a"),
        ({"configMap": "state"}, "fairshare.configMap"),
        ({"halfLife": "0s"}, "fairshare.halfLife"),
        ({"maxAccounts": 0}, "fairshare.maxAccounts"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(arguments: dict[str, Any], field: str) -> None:
    problems = check_conf(parse_conf(conf(**arguments)), builtin_plugins(), ACTIONS)
    assert any(field in each.field for each in problems)


# Simulated, served and shown


def test_a_simulation_charges_for_every_second_also_while_nobody_waits() -> None:
    pods = PodSpecs()
    jobs = [
        JobSpec(f"job-{i}", at, (TaskSpec(pods.spec({"cpu": "2"}), 1, run),), 1, user=user)
        for i, (user, at, run) in enumerate(
            [("ann", 0.0, 3600.0), ("bob", 7200.0, 1800.0), ("eve", 14400.0, 1.0)]
        )
    ]
    scheduler = Scheduler(parse_conf(conf(halfLife="1h", by="user")))
    cluster = kube_objects(node("n1", cpu=4), queue("default"))
    workload = Workload(name="made", format="test", jobs=in_order(jobs))
    Engine(workload, cluster, parse_conf(conf()), scheduler=scheduler).run()
    ledger = scheduler._process.plugins["fairshare"]  # nothing else shows it
    means = {
        account.name: ledger.usage[0, at] / 1000
        for account, at in ledger.column_of.items()
        if account.kind == "user"
    }
    ended = {"ann": (0, 3600), "bob": (7200, 9000)}
    end = ledger.at - EPOCH
    for user, (start, stop) in ended.items():
        mean = 2 * (2 ** (-(end - stop) / 3600) - 2 ** (-(end - start) / 3600))
        assert means[user] == pytest.approx(mean, rel=0.01)


def test_a_served_scheduler_keeps_its_state_in_the_cluster() -> None:
    def plane(cluster: Any = None) -> Any:
        settings = parse_conf(conf(halfLife="1h", writePeriod="60s"))
        clock = {"clock": VirtualClock(T0)} if cluster is None else {"cluster": cluster}
        return EmbeddedControlPlane(settings, **clock)

    first = plane()
    add_node(first.cluster, "n1", {"cpu": "4", "memory": "8Gi"})
    first.cluster.create(pod_group("job", namespace="ml", phase=None))
    first.cluster.create(pod("job-0", namespace="ml", group="job", cpu=4))
    for _ in range(4):
        first.step()
        first.clock.advance_to(first.clock.now() + 1200.0)
    second = plane(first.cluster)
    shares = Shares()
    second.observers.append(shares)
    second.step()
    assert shares.by_name["namespace", "ml"].share == pytest.approx(1 - 2 ** (-4 / 3), rel=0.01)
    stored = first.cluster.get(CONFIG_MAP, "volcano-system", "pumice-fairshare")
    assert json.loads(stored["data"]["state"])["accounts"]["queue"]["default"]["cpu"] > 0


def test_the_dashboard_shows_usage_and_factor_of_queues() -> None:
    objects = [queue("red"), queue("blue"), node("n1", cpu=4)]
    objects += running("ml", 4, queue="red", started=T0 - 7 * 86400.0)
    found = documents.queues(View(pictured(ClusterState(objects=(*objects,), now=T0, conf=conf()))))
    shown = {each["name"]: (each["used"], each["factor"]) for each in found["queues"]}
    assert found["remembers"]
    assert shown["red"] == (0.5, 0.25)
    assert shown["blue"] == (0.0, 1.0)


def test_the_command_names_what_is_missing(tmp_path: Any) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(json.dumps(node("n1")))
    result = CliRunner().invoke(main, ["fairshare", "-f", str(file)])
    assert result.exit_code == 2
    assert "plugin fairshare" in result.output

"""From a command line to running parts: what is started, with what, in which order it ends."""

import json
import logging
import os
import signal
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pumice import logs
from pumice.api.kinds import LEASE
from pumice.clock import RealClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import InputError
from pumice.records.history import History
from pumice.serve import early, start
from pumice.serve.options import read_options
from pumice.serve.ports import FirstConnection
from pumice.testing import node, pod, pod_group, queue

QUEUE = "Queue.scheduling.volcano.sh"
HYPER_NODE = "HyperNode.topology.volcano.sh"


class Kube(DirectWriter):
    """Replaces a watched cluster; all of one test share what is stored."""

    stored: EmbeddedCluster
    made: "list[Kube]"

    def __init__(
        self,
        connection: Any,
        *,
        kinds: Any = (),
        qps: Any = 50.0,
        burst: Any = 100,
        timeout_s: Any = 30.0,
        timing: Any = None,
        follow_after_s: Any = 0.0,
    ) -> None:
        super().__init__(self.stored)
        self.connection, self.kinds, self.qps, self.burst = connection, kinds, qps, burst
        self.timeout_s = timeout_s
        self.fence = lambda: True
        self.made.append(self)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def __getattr__(self, name: Any) -> Any:
        return getattr(self.stored, name)

    def wait_current(self, timeout_s: Any) -> Any:
        return []

    def wait_synced(self, timeout_s: Any) -> Any:
        return []

    def start_over(self) -> None:
        self.started_over = True

    def troubles(self) -> Any:
        return {QUEUE: "no, because"}

    def absent(self) -> Any:
        return [HYPER_NODE]

    def new_wake(self) -> Any:
        return threading.Event()


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Put a cluster in memory where a real one would be asked, and mend what serving changes."""
    stored = EmbeddedCluster(RealClock())
    stored.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}})
    monkeypatch.setattr(Kube, "stored", stored, raising=False)
    monkeypatch.setattr(Kube, "made", [], raising=False)
    for module in (early, start):
        monkeypatch.setattr(module, "KubeCluster", Kube)
        monkeypatch.setattr(module, "load_connection", lambda file, master: (file, master))
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    handlers = {number: signal.getsignal(number) for number in numbers}
    root, ours = logging.getLogger(), logging.getLogger("pumice")
    before = root.handlers[:], root.level, ours.level, threading.excepthook
    yield Kube
    for number, handler in handlers.items():
        signal.signal(number, handler)
    root.handlers[:], threading.excepthook = before[0], before[3]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logs.set_verbosity(0)


def serve(process: Any, *words: Any) -> Any:
    options = read_options(process, words)
    early.set_up_logs(options.common)
    with ExitStack() as stack:
        return start.run(options, early.connect(options, stack))


def stop_when(cluster: Any, wanted: Any) -> None:
    """Send the signal that ends a process once an event is as wanted."""

    def notice(kind: Any, event: Any) -> None:
        if wanted(kind, event.object):
            os.kill(os.getpid(), signal.SIGTERM)
            cluster.listeners.remove(notice)

    cluster.listeners.append(notice)


def test_a_scheduler_binds_and_gives_its_lease_back(kube: Any) -> None:
    for thing in (node("n", cpu=4, memory="8Gi"), pod_group("a"), pod("a-0", group="a", cpu=1)):
        kube.stored.create(thing)
    stop_when(
        kube.stored, lambda kind, found: kind == "Pod" and (found.get("spec") or {}).get("nodeName")
    )
    words = ("--schedule-period=10ms", "--kube-api-qps=7", "--kube-api-burst=8", "--master=m")
    assert serve("scheduler", *words) == 0
    assert kube.stored.get("Pod", "default", "a-0")["spec"]["nodeName"] == "n"
    assert kube.stored.get(QUEUE, "", "default")
    assert kube.stored.get(LEASE, "volcano-system", "volcano")["spec"]["holderIdentity"] == ""
    work, election = kube.made
    assert (work.qps, work.burst, work.connection) == (7.0, 8, (None, "m"))
    assert "Pod" in work.kinds
    assert not election.kinds
    assert work.fence() is False  # the fence is the lease, which is released
    assert work.started_over  # what it knew from before the lease counts for nothing
    assert election.fence() is True
    assert work.closed
    assert election.closed


def test_a_scheduler_records_what_it_sees_and_decides(kube: Any, tmp_path: Path) -> None:
    for thing in (node("n", cpu=4, memory="8Gi"), pod_group("a"), pod("a-0", group="a", cpu=1)):
        kube.stored.create(thing)
    kube.stored.create(
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "own"}}
    )
    stop_when(
        kube.stored, lambda kind, found: kind == "Pod" and (found.get("spec") or {}).get("nodeName")
    )
    words = ("--leader-elect=false", "--schedule-period=10ms", f"--record={tmp_path / 'record'}")
    assert serve("scheduler", *words) == 0
    history = History(tmp_path / "record")
    binds = [step.entry.cycle.binds for step in history.steps() if step.entry.cycle]
    assert {"default/a-0": "n"} in binds
    last = history.at()
    assert ("Pod", "default", "a-0") in last.objects
    assert ("Job.batch.volcano.sh", "default", "own") in last.objects
    assert (last.settings.names, last.settings.assume) == (("volcano",), True)
    assert last.conf is not None
    assert last.conf.source == "the built-in configuration"
    assert history.by == "scheduler"


def test_without_an_election_there_is_no_lease(kube: Any) -> None:
    stop_when(kube.stored, lambda kind, _: kind == QUEUE)
    assert serve("scheduler", "--leader-elect=false", "--schedule-period=10ms") == 0
    assert kube.stored.list(LEASE)[0] == []
    assert len(kube.made) == 1


def test_controllers_run_once_they_lead(kube: Any) -> None:
    stop_when(kube.stored, lambda kind, _: kind == "PodGroup.scheduling.volcano.sh")
    kube.stored.create(pod("alone", cpu=1))
    assert serve("controllers", "--leader-elect-resource-name=mine") == 0
    assert kube.stored.list("PodGroup.scheduling.volcano.sh")[0]
    assert kube.stored.get(LEASE, "volcano-system", "mine")
    assert "Secret" not in kube.made[0].kinds


def test_health_and_metrics_are_served_while_it_runs(
    kube: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, texts = {}, {}

    def look(kind: Any, found: Any) -> bool:
        return kind == QUEUE

    class Asked(FirstConnection):
        def __enter__(self) -> Any:
            entered = super().__enter__()
            ports = [sockets[0].getsockname()[1] for _, sockets in self.listening]
            for path in ("/metrics", "/readyz?verbose"):
                with urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}{path}") as answer:
                    texts[path] = answer.read().decode().splitlines()
            for name, port in zip(("health", "figures"), ports, strict=True):
                for path in ("/healthz", "/readyz", "/metrics"):
                    answers[name, path] = status(port, path)
            return entered

    def status(port: Any, path: Any) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    monkeypatch.setattr(start, "FirstConnection", Asked)
    stop_when(kube.stored, look)
    words = ("--enable-healthz", "--enable-metrics", "--schedule-period=10ms")
    places = ("--healthz-address=127.0.0.1:0", "--listen-address=localhost:0")
    assert serve("scheduler", *words, *places) == 0
    assert answers == {
        ("health", "/healthz"): 200,
        ("health", "/readyz"): 200,
        ("health", "/metrics"): 404,
        ("figures", "/healthz"): 200,
        ("figures", "/readyz"): 200,
        ("figures", "/metrics"): 200,
    }
    assert f'pumice_watch_ok{{kind="{QUEUE}"}} 0' in texts["/metrics"]
    assert 'pumice_watch_ok{kind="Pod"} 1' in texts["/metrics"]
    assert f'pumice_watch_ok{{kind="{HYPER_NODE}"}} 1' in texts["/metrics"]
    more = texts["/readyz?verbose"]
    absent = f"[ ]{HYPER_NODE}: the server does not have it"
    assert {"[+]Pod ok", f"[-]{QUEUE}: no, because", absent} <= {*more}
    assert more[-1] == "ok"


def test_a_dump_holds_what_the_scheduler_follows_and_waits_for_nothing(
    kube: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kube, "wait_synced", lambda *_: ["Node"])
    kube.stored.create(pod("a"))
    cluster: Any = Kube(None)
    path = start.dump_cache(cluster, str(tmp_path))
    objects = json.loads(path.read_text())["objects"]
    assert [one["metadata"]["name"] for one in objects["Pod"]] == ["a"]
    assert "Node" not in objects
    assert {"Job.batch.volcano.sh", "ReplicaSet.apps"}.isdisjoint(objects)


def test_a_bad_configuration_ends_it_at_the_start(kube: Any, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.write_text("actions: dance\n")
    with pytest.raises(InputError, match="dance"):
        serve("scheduler", f"--scheduler-conf={conf}")


def test_a_bad_configuration_gives_way_to_the_built_in_one_if_a_flag_says_so(
    kube: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "conf"
    conf.write_text("actions: dance, waltz\n")
    stop_when(kube.stored, lambda kind, _: kind == QUEUE)
    flags = ("--disable-default-scheduler-config=false", "--schedule-period=10ms")
    assert serve("scheduler", f"--scheduler-conf={conf}", *flags) == 0
    errors = [line for line in capfd.readouterr().err.splitlines() if "conf_reload" in line]
    assert len([line for line in errors if "using the built-in one" in line]) == 1
    assert [sum(name in line for line in errors) for name in ("dance", "waltz")] == [1, 1]
    assert not any("dance" in line and "waltz" in line for line in errors)


def test_settings_without_effect_are_logged_once(
    kube: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "conf"
    conf.write_text("actions: allocate\ntiers: [{plugins: [{name: gang, arguments: {x: 1}}]}]\n")
    stop_when(kube.stored, lambda kind, _: kind == QUEUE)
    serve("scheduler", f"--scheduler-conf={conf}", "--schedule-period=10ms")
    assert capfd.readouterr().err.count("configuration: line 2: x: ") == 1


def test_warnings_of_flags_are_logged_once(kube: Any, capfd: pytest.CaptureFixture[str]) -> None:
    stop_when(kube.stored, lambda kind, _: kind == QUEUE)
    serve("scheduler", "--plugins-dir=/x", "--schedule-period=10ms", "--logging-format=json")
    lines = [line for line in capfd.readouterr().err.splitlines() if "--plugins-dir" in line]
    assert len(lines) == 1
    assert '"severity": "warning"' in lines[0]


@pytest.mark.parametrize(("plugin", "warned"), [("capacity", False), ("proportion", True)])
def test_a_scheduler_opens_queue_gates_if_reported_and_warns_if_nobody_keeps_the_room(
    kube: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], plugin: str, warned: bool
) -> None:
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    conf = tmp_path / "conf"
    conf.write_text(f"actions: enqueue, allocate\ntiers: [{{plugins: [{{name: {plugin}}}]}}]\n")
    spec = {"schedulingGates": [{"name": gate}]}
    gated = pod("a-0", group="a", cpu=1, annotations={gate: "true"}, spec=spec)
    for thing in (queue("default"), node("n", cpu=4, memory="8Gi"), pod_group("a"), gated):
        kube.stored.create(thing)
    opened = {"status": {"state": "Open"}}
    kube.stored.patch(QUEUE, "", "default", opened, subresource="status")
    stop_when(
        kube.stored,
        lambda kind, found: kind == "Pod" and not found["spec"]["schedulingGates"],
    )
    feature = "--feature-gates=SchedulingGatesQueueAdmission=true"
    assert serve("scheduler", f"--scheduler-conf={conf}", feature, "--schedule-period=10ms") == 0
    assert ("only the plugin capacity reserves room" in capfd.readouterr().err) is warned


def test_one_process_for_all_follows_what_all_need(
    kube: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = []

    def webhooks(options: Any, stop: Any) -> None:
        served.append(options.port)
        stop.wait(60)

    monkeypatch.setattr("pumice.serve.webhooks.serve_webhooks", webhooks)
    stop_when(kube.stored, lambda kind, _: kind == QUEUE)
    assert serve("all", "--schedule-period=10ms", "--port=9999") == 0
    assert served == [9999]
    assert {"Pod", "Node", "Job.batch.volcano.sh"} <= set(kube.made[0].kinds)
    assert len(kube.made) == 2

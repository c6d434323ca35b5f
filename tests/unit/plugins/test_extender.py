"""extender: every verb, whom it is asked about, and what happens when the service fails."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pumice.api.conf import SchedulerConf, parse_conf
from pumice.cluster.services import SERVICES
from pumice.core.views import Job, Queue
from pumice.errors import ConfError, ExtenderError
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.extender import Extender
from pumice.scenarios.runner import default_scheduler
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.sim.engine import Engine
from pumice.sim.workload import Workload
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.conformance import check_plugin
from pumice.testing.samples import snapshot_of

GPU = "nvidia.com/gpu"
OBJECTS = [
    node("n0", cpu=4, resources={GPU: 2}),
    node("n1", cpu=4),
    queue("default", weight=3),
    pod_group("g", min_member=2, min_task_member={"w": 1}),
    pod("p", group="g", role="w", cpu=1),
    pod("gpu", group="g", resources={"cpu": 1, GPU: 1}),
    pod("old", group="g", cpu=1, node="n1", priority=7),
]
VERBS = {
    "open_verb": "open",
    "close_verb": "close",
    "predicate_verb": "predicate",
    "prioritize_verb": "prioritize",
    "preemptable_verb": "preemptable",
    "reclaimable_verb": "reclaimable",
    "overused_verb": "overused",
    "enqueueable_verb": "enqueueable",
    "enqueued_verb": "enqueued",
    "ready_verb": "ready",
    "allocate_verb": "allocate",
    "deallocate_verb": "deallocate",
}


class Service:
    """A client that answers from a table and notes what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self.addresses: list[Any] = []

    def __call__(self, url: Any, timeout_s: Any) -> Any:
        self.addresses.append((url, timeout_s))
        return self

    def post(self, verb: Any, payload: Any, *, answer: bool = True) -> Any:
        json.dumps(payload)
        self.asked.append((verb, payload))
        found = self.answers.get(verb, {})
        if isinstance(found, Exception):
            raise found
        found = found(payload) if callable(found) else found
        return found if answer else {}

    def verbs(self) -> Any:
        return [verb for verb, _ in self.asked]


DEAD = ExtenderError("http://x", "no answer in time")


def opened(service: Any, *verbs: Any, objects: Any = OBJECTS, **fields: Any) -> Any:
    """Open a session with some verbs configured."""
    chosen: dict[str, Any] = {name: verb for name, verb in VERBS.items() if verb in verbs}
    plugin = Extender(url_prefix="http://x", **chosen, **fields)
    services = {} if service is None else {"extender": service}
    ssn = Session(snapshot_of(objects), [[Enabled(plugin, {})]], services=services)
    return plugin, ssn


def task_of(ssn: Any, name: str = "p") -> Any:
    return ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])


def job_of(ssn: Any) -> Any:
    return Job(ssn.snapshot, ssn.snapshot.jobs.row_of["default/g"])


def queue_of(ssn: Any) -> Any:
    return Queue(ssn.snapshot, ssn.snapshot.queues.row_of["default"])


def test_the_plugin_keeps_its_promises() -> None:
    check_plugin(Extender, url_prefix="http://x", predicate_verb="p", prioritize_verb="q")


def test_what_is_not_configured_is_not_asked_and_changes_nothing() -> None:
    service = Service()
    plugin, ssn = opened(service)
    task, nodes = task_of(ssn), ssn.nodes()
    assert plugin.filter_nodes(task, nodes) is None
    assert plugin.rank_nodes(task, nodes) is None
    assert plugin.preemptable(task, [2]) is None
    assert plugin.reclaimable(task, [2]) is None
    assert plugin.overused(queue_of(ssn)) is False
    assert plugin.job_enqueueable(job_of(ssn)) == 0
    assert plugin.job_ready(job_of(ssn)) is True
    plugin.on_enqueued(job_of(ssn))
    ssn.statement().place(task.row, 0)
    ssn.close()
    assert service.asked == []


# What is sent


def test_at_open_the_service_is_reported_what_the_session_starts_from() -> None:
    service = Service()
    opened(service, "open")
    [(_, reported)] = service.asked
    assert set(reported) == {
        "Jobs", "Nodes", "Queues", "NamespaceInfo", "RevocableNodes", "NodeList",
    }  # fmt: skip
    assert list(reported["Nodes"]) == reported["NodeList"] == ["n0", "n1"]
    assert reported["Queues"]["default"]["Weight"] == 3
    assert reported["Jobs"]["default/g"]["MinAvailable"] == 2
    assert reported["Jobs"]["default/g"]["TaskMinAvailable"] == {"w": 1}
    assert set(reported["Jobs"]["default/g"]["TaskStatusIndex"]) == {"1", "32"}


def test_a_task_is_sent_in_the_shape_that_volcano_sends() -> None:
    service = Service()
    plugin, ssn = opened(service, "preemptable")
    plugin.preemptable(task_of(ssn, "gpu"), [task_of(ssn, "old").row])
    [(_, reported)] = service.asked
    asking, [victim] = reported["evictor"], reported["evictees"]
    assert asking["UID"] == "default-gpu"
    assert (asking["Namespace"], asking["Name"], asking["Job"]) == ("default", "gpu", "default/g")
    assert asking["Resreq"]["ScalarResources"] == {GPU: 1000, "pods": 1}
    assert (asking["Resreq"]["MilliCPU"], asking["Status"], asking["NodeName"]) == (1000, 1, "")
    assert (victim["Status"], victim["NodeName"], victim["Priority"]) == (32, "n1", 7)
    assert victim["Pod"]["metadata"]["name"] == "old"


def test_a_node_is_sent_with_its_books_and_its_tasks() -> None:
    service = Service()
    plugin, ssn = opened(service, "predicate")
    plugin.filter_nodes(task_of(ssn), ssn.nodes())
    sent = service.asked[1][1]["node"]
    assert (sent["Name"], sent["Node"]["kind"]) == ("n1", "Node")
    assert (sent["Idle"]["MilliCPU"], sent["Used"]["MilliCPU"]) == (3000, 1000)
    assert list(sent["Tasks"]) == ["default/old"]


def test_only_pods_that_name_a_managed_resource_concern_the_service() -> None:
    service = Service(predicate={"status": "no"})
    plugin, ssn = opened(service, "predicate", "allocate", managed=[GPU, "x/y"])
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()) is None
    assert plugin.filter_nodes(task_of(ssn, "gpu"), ssn.nodes()).tolist() == [3, 3]
    ssn.statement().place(task_of(ssn).row, 0)
    assert "allocate" not in service.verbs()


# Nodes


@pytest.mark.parametrize(
    ("answer", "code", "curable"),
    [
        ({}, 0, True),
        ({"status": ""}, 0, True),
        ({"code": 3}, 0, True),
        ({"status": "no"}, 3, False),
        ({"status": "no", "code": 0}, 3, False),
        ({"status": "no", "code": 2}, 2, True),
        ({"status": "no", "code": 3}, 3, False),
        ({"Status": "no", "CODE": 2}, 2, True),
        ({"status": None, "code": None}, 0, True),
        ({"status": "no", "code": "2"}, 1, False),
        ({"status": 2}, 1, False),
        ({"status": "", "other": 5}, 0, True),
    ],
)
def test_a_node_is_refused_by_a_message_and_the_code_says_how(
    answer: Any, code: int, curable: bool
) -> None:
    plugin, ssn = opened(Service(predicate=answer), "predicate")
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [code, code]
    assert code == 0 or plugin.reasons[code - 1].curable is curable


@pytest.mark.parametrize(("ignorable", "code"), [(True, 0), (False, 1)])
def test_a_failed_filter_refuses_unless_failures_are_ignored(ignorable: bool, code: int) -> None:
    plugin, ssn = opened(Service(predicate=DEAD), "predicate", ignorable=ignorable)
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [code, code]
    assert plugin.reasons[0].curable is False


def test_scores_go_by_node_name_and_nulls_count_nothing() -> None:
    answer = {"nodeScore": {"n1": 30, "elsewhere": 5, "n0": None}}
    plugin, ssn = opened(Service(prioritize=answer), "prioritize")
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()).tolist() == [0, 30]


@pytest.mark.parametrize(
    "answer",
    [
        DEAD,
        {},
        {"nodeScore": [1]},
        {"nodeScore": {"n0": 1}, "errorMessage": "no"},
        *({"nodeScore": {"n0": no, "n1": 30}} for no in (float("inf"), 10**400, True, "many", [1])),
    ],
)
def test_without_usable_scores_the_service_has_no_opinion(answer: Any) -> None:
    plugin, ssn = opened(Service(prioritize=answer), "prioritize")
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()) is None


# Victims, queues, jobs


@pytest.mark.parametrize("verb", ["preemptable", "reclaimable"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"status": 1, "victims": [{"UID": "default-old"}, {"UID": "x"}, None]}, [True, False]),
        ({"status": 1}, [False, False]),
        ({"status": -1, "victims": None}, [False, False]),
        ({"status": 0, "victims": [{"UID": "default-old"}]}, None),
        ({"Status": 1, "VICTIMS": [{"uid": "default-old", "Pod": None}]}, [True, False]),
        ({"status": "reject", "victims": [{"UID": "default-old"}]}, [False, False]),
        ({"status": 1, "victims": {"UID": "default-old"}}, [False, False]),
        ({"status": 1, "victims": [{"UID": "default-old"}, 5]}, [False, False]),
        ({"status": 1, "victims": [{"UID": "default-old", "Priority": "7"}]}, [False, False]),
        ({"status": 1, "victims": [{"UID": "default-old", "Resreq": 1}]}, [False, False]),
        ({}, None),
        (DEAD, [False, False]),
    ],
)
def test_victims_are_those_the_answer_names_and_none_after_a_failure(
    verb: str, answer: Any, expected: Any
) -> None:
    plugin, ssn = opened(Service(**{verb: answer}), verb)
    rows = [task_of(ssn, name).row for name in ("old", "gpu")]
    found = getattr(plugin, verb)(task_of(ssn), rows)
    assert (found if found is None else found.tolist()) == expected


@pytest.mark.parametrize(
    ("answer", "ignorable", "expected"),
    [
        ({"overused": True}, False, True),
        ({"overused": "yes"}, False, True),
        ({"overused": "yes"}, True, False),
        ({"Overused": True}, False, True),
        ({"overused": None}, False, False),
        ({}, False, False),
        (DEAD, False, True),
        (DEAD, True, False),
    ],
)
def test_a_queue_waits_if_the_service_says_so_or_is_needed_and_dead(
    answer: Any, ignorable: bool, expected: bool
) -> None:
    plugin, ssn = opened(Service(overused=answer), "overused", ignorable=ignorable)
    assert plugin.overused(queue_of(ssn)) is expected


@pytest.mark.parametrize(
    ("answer", "ignorable", "vote"),
    [
        ({"status": 1}, False, 1),
        ({"status": -1}, False, -1),
        ({"status": "reject"}, False, -1),
        ({"status": "reject"}, True, 1),
        ({"status": 1.0}, False, -1),
        ({"status": True}, False, -1),
        ({"status": 1 << 63}, False, -1),
        ({"STATUS": -1}, False, -1),
        ({"status": 1, "Status": -1}, False, -1),
        ({"status": None}, False, 0),
        ({}, False, 0),
        (DEAD, False, -1),
        (DEAD, True, 1),
    ],
)
def test_a_job_enters_by_the_vote_of_the_service(answer: Any, ignorable: bool, vote: int) -> None:
    plugin, ssn = opened(Service(enqueueable=answer), "enqueueable", ignorable=ignorable)
    assert plugin.job_enqueueable(job_of(ssn)) == vote


@pytest.mark.parametrize(
    ("answer", "ignorable", "ready"),
    [
        ({"status": True}, False, True),
        ({"status": False}, False, False),
        ({"status": "true"}, False, False),
        ({"status": "true"}, True, True),
        ({}, False, False),
        (DEAD, False, False),
        (DEAD, True, True),
    ],
)
def test_a_job_is_ready_if_the_service_says_so_or_may_be_ignored(
    answer: Any, ignorable: bool, ready: bool
) -> None:
    plugin, ssn = opened(Service(ready=answer), "ready", ignorable=ignorable)
    assert plugin.job_ready(job_of(ssn)) is ready


def test_a_job_that_was_admitted_is_reported() -> None:
    service = Service(enqueued=DEAD)
    plugin, ssn = opened(service, "enqueued")
    plugin.on_enqueued(job_of(ssn))
    assert service.verbs() == ["enqueued"]


# Placements


def test_placements_and_evictions_are_reported_and_their_undoing_too() -> None:
    service = Service()
    _, ssn = opened(service, "allocate", "deallocate")
    stmt = ssn.statement()
    stmt.place(task_of(ssn).row, 0)
    stmt.evict(task_of(ssn, "old").row, "preempt")
    assert service.verbs() == ["allocate", "deallocate"]
    assert service.asked[0][1]["task"]["NodeName"] == "n0"
    stmt.discard()
    assert service.verbs()[2:] == ["allocate", "deallocate"]


def test_the_end_of_a_session_undoes_nothing_for_the_service() -> None:
    service = Service()
    _, ssn = opened(service, "allocate", "deallocate", "close")
    ssn.statement().place(task_of(ssn).row, 0)
    ssn.close()
    ssn.snapshot.release_session()
    assert service.verbs() == ["allocate", "close"]


def test_an_error_message_to_a_placement_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    _, ssn = opened(Service(allocate={"errorMessage": "no room"}), "allocate")
    ssn.statement().place(task_of(ssn).row, 0)
    assert "no room" in caplog.text


def test_the_victims_it_was_sent_can_be_sent_back() -> None:
    service = Service(preemptable=lambda asked: {"status": 1, "victims": asked["evictees"]})
    plugin, ssn = opened(service, "preemptable")
    assert plugin.preemptable(task_of(ssn), [task_of(ssn, "old").row]).tolist() == [True]


def test_an_address_is_needed() -> None:
    conf = CONF.format(url='""')
    with pytest.raises(ConfError, match=r"extender\.urlPrefix.*the address of the service"):
        Scheduler(parse_conf(conf))


def test_without_verbs_a_missing_address_is_only_reported() -> None:
    bare = 'actions: "allocate"\ntiers: [{plugins: [{name: extender}]}]\n'
    [problem] = Scheduler(parse_conf(bare)).warnings
    assert (problem.field, problem.severity) == ("extender.urlPrefix", "ignored")


# Failing


@pytest.mark.parametrize(("ignorable", "asked"), [(True, True), (False, False)])
def test_a_service_that_fails_at_open_is_left_out_unless_failures_are_ignored(
    ignorable: bool, asked: bool
) -> None:
    service = Service(open=DEAD, predicate={"status": "no"})
    plugin, ssn = opened(service, "open", "predicate", ignorable=ignorable)
    found = plugin.filter_nodes(task_of(ssn), ssn.nodes())
    assert (found is not None) is asked


def test_a_dead_service_is_given_up_after_three_calls_of_a_session() -> None:
    service = Service(predicate=DEAD)
    plugin, ssn = opened(service, "predicate")
    for name in ("p", "gpu"):
        assert plugin.filter_nodes(task_of(ssn, name), ssn.nodes()).tolist() == [1, 1]
    assert len(service.asked) == 3


def test_a_call_that_works_restores_patience() -> None:
    calls = iter([DEAD, DEAD, {}] * 4)

    def moody(_: Any) -> Any:
        found = next(calls)
        if isinstance(found, Exception):
            raise found
        return found

    service = Service(predicate=moody)
    plugin, ssn = opened(service, "predicate")
    for _ in range(6):
        plugin.filter_nodes(task_of(ssn), ssn.nodes())
    assert len(service.asked) == 12


def test_without_a_client_everything_fails() -> None:
    plugin, ssn = opened(None, "predicate")
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [1, 1]


def test_answers_about_one_task_are_not_used_for_another() -> None:
    """The service sees names, so pods of one spec may get different answers."""

    def by_name(payload: Any) -> Any:
        wanted = "n0" if payload["task"]["Name"] == "p-0" else "n1"
        return {} if payload["node"]["Name"] == wanted else {"status": "no"}

    objects = [*OBJECTS[:3], pod_group("g", min_member=2)]
    objects += [pod(f"p-{i}", group="g", cpu=1) for i in range(2)]
    scheduler = Scheduler(
        parse_conf(CONF.format(url="http://x")), services={"extender": Service(predicate=by_name)}
    )
    assert scheduler.cycle(objects, 0.0).binds == {"default/p-0": "n0", "default/p-1": "n1"}


@pytest.mark.parametrize(("shared", "asked"), [("false", 4 * 3), ("true", 3 + 3)])
def test_equal_pods_share_an_answer_if_the_configuration_says_so(shared: str, asked: int) -> None:
    """Four pods on three nodes: afterwards only the node that moved is asked about again."""
    conf = CONF.replace("prioritizeVerb: prioritize", f"oneAnswerPerShape: {shared}")
    service = Service(
        predicate=lambda sent: {} if sent["node"]["Name"] != "n0" else {"status": "no"}
    )
    objects = [*[node(f"n{i}", cpu=8) for i in range(3)], queue("default")]
    objects += [pod_group("g", min_member=4), *[pod(f"p{i}", group="g", cpu=1) for i in range(4)]]
    scheduler = Scheduler(parse_conf(conf.format(url="http://x")), services={"extender": service})
    binds = scheduler.cycle(objects, 0.0).binds
    assert (len(binds), "n0" in binds.values()) == (4, False)
    assert len(service.asked) == asked


def test_pods_that_differ_in_labels_or_role_share_no_answer() -> None:
    conf = CONF.replace("prioritizeVerb: prioritize", "oneAnswerPerShape: true")
    service = Service()
    pods = [
        pod("a", group="g", cpu=1),
        pod("b", group="g", cpu=1, labels={"x": "y"}),
        pod("c", group="g", cpu=1, role="w"),
    ]
    objects = [node("n0", cpu=8), queue("default"), pod_group("g", min_member=3), *pods]
    Scheduler(parse_conf(conf.format(url="http://x")), services={"extender": service}).cycle(
        objects, 0.0
    )
    assert [sent["task"]["Name"] for _, sent in service.asked] == ["a", "b", "c"]


def test_a_node_is_written_anew_once_it_has_moved() -> None:
    service = Service()
    plugin, ssn = opened(service, "predicate")
    plugin.filter_nodes(task_of(ssn), ssn.nodes())
    stmt = ssn.statement()
    stmt.place(task_of(ssn, "gpu").row, 0)
    plugin.filter_nodes(task_of(ssn), ssn.nodes())
    stmt.discard()
    plugin.filter_nodes(task_of(ssn), ssn.nodes())
    sent = [payload["node"] for _, payload in service.asked]
    assert [list(each["Tasks"]) for each in sent[::2]] == [[], ["default/gpu"], []]
    assert [each["Used"]["MilliCPU"] for each in sent[::2]] == [0, 1000, 0]
    assert sent[1] is sent[3] is sent[5]


CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: extender
    arguments:
      extender.urlPrefix: {url}
      extender.httpTimeout: 200ms
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
"""


class Answering(BaseHTTPRequestHandler):
    """Refuses node n0 and likes n2 best."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = self.path == "/predicate" and asked["node"]["Name"] == "n0"
        answer = {"status": "no" if refused else "", "nodeScore": {"n2": 10}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_service_over_http_decides_where_pods_go(address: Any) -> None:
    nodes = [node(name, cpu=4) for name in ("n0", "n1", "n2")]
    objects = [*nodes, queue("default"), pod_group("g", min_member=1), pod("p", group="g", cpu=1)]
    scheduler = Scheduler(parse_conf(CONF.format(url=address)), services=SERVICES)
    decisions = scheduler.cycle(objects, 0.0)
    scheduler._process.plugins["extender"].popitem()[1].close()
    assert decisions.binds == {"default/p": "n2"}


SCHEDULERS: dict[str, Callable[[SchedulerConf], Any]] = {
    "run and test": lambda conf: default_scheduler(conf, 0),
    "serve": lambda conf: EmbeddedControlPlane(conf=conf).scheduler.scheduler,
}


@pytest.mark.parametrize("made_by", SCHEDULERS)
def test_whoever_makes_a_scheduler_gives_it_the_way_to_a_service(made_by: str) -> None:
    scheduler = SCHEDULERS[made_by](parse_conf(CONF.format(url="http://x")))
    assert scheduler._services == SERVICES


def test_a_simulation_asks_nobody_outside_and_goes_on_without_the_vote() -> None:
    conf = parse_conf(CONF.format(url="http://127.0.0.1:1"))
    scheduler = Engine(Workload(name="w", format="none", jobs=()), [], conf)._scheduler
    world = [queue("default"), node("n1"), pod_group("g"), pod("p", group="g", cpu=1)]
    assert scheduler._services == {}
    assert scheduler.cycle(world, 0.0).binds == {"default/p": "n1"}

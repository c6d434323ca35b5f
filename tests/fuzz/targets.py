"""What is fuzzed: how its inputs are made, and what may come out.

A target takes bytes.  It returns, or raises PumiceError; anything else is a find, and so is an
answer that breaks what the target promises.
"""

import atexit
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import msgspec

from pumice.api.cloning import clone
from pumice.api.json_text import parse_json
from pumice.api.manifests import load_documents, load_manifests
from pumice.api.nodes import Node
from pumice.api.objects import from_manifest
from pumice.api.quantity import parse_quantity
from pumice.apiserver.rest import Request, RestApi
from pumice.apiserver.served_cluster import ServedCluster
from pumice.apiserver.server import ApiServer, _response
from pumice.cli.whatif import _listed as listed_changes
from pumice.cluster.embedded.data_directory import DataDirectory
from pumice.cluster.embedded.data_records import encoded as encoded_record
from pumice.cluster.embedded.patches import LONGEST, apply_patch
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.usage.endpoint import Endpoint
from pumice.cluster.usage.measured import MetricsServerUsage, PrometheusUsage
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import StaticSource
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.job_history import spans_of
from pumice.diagnosis.snapshots import save_world, summarise
from pumice.diagnosis.sources import load_world
from pumice.errors import PumiceError
from pumice.plugins import extender as answers
from pumice.records.entries import FORMAT, VERSION, Entry, Head, PieceHead, line_of, piece_of
from pumice.records.history import History
from pumice.records.segments import thin
from pumice.replay.exact import replay_exactly
from pumice.replay.recorded_workload import recorded_workload
from pumice.scenarios.runner import default_scheduler, play
from pumice.scenarios.scenario import scenario_from
from pumice.scheduler import Scheduler
from pumice.sim.inputs import SimulationInput, read_configuration, read_workload
from pumice.sim.traces.parts import summarise as summarise_trace
from pumice.sim.traces.trace_files import write_trace
from pumice.testing import node, pod, pod_group, queue
from pumice.webhooks.admission_chain import KINDS
from pumice.webhooks.admission_review import answer_review
from pumice.webhooks.files import Files, is_checked
from pumice.webhooks.lint import lint_object
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import Options
from tests.fuzz import commands, seeds
from tests.fuzz.mutation import Mutator, Rng, encoded, garbled
from tests.security.hostile_http import Sent, send

_NODE: Final = from_manifest(seeds.MANIFESTS[0])
_PLURALS: Final = {kind.kind: kind.plural for kind in KINDS.values()}
_SORTS: Final = ("json", "merge", "strategic", "apply")
_BATCH: Final = 1000
"""Requests after which a served cluster is made anew."""


@dataclass(frozen=True)
class Target:
    """One reader of input from outside."""

    name: str
    make: Callable[[Rng], bytes]
    run: Callable[[bytes], None]


def _documents(values: Sequence[Any]) -> Callable[[Rng], bytes]:
    """Make documents out of values, one in five of them garbled as text."""
    mutator = Mutator(values)

    def make(rng: Rng) -> bytes:
        data = encoded(rng, mutator.value(rng))
        return garbled(rng, data) if not rng.integers(5) else data

    return make


def _texts(texts: Sequence[bytes]) -> Callable[[Rng], bytes]:
    return lambda rng: garbled(rng, texts[int(rng.integers(len(texts)))])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="pumice-fuzz-"))


def _file(data: bytes, name: str) -> Path:
    file = _folder() / name
    file.write_bytes(data)
    return file


# Files


def _manifests(data: bytes) -> None:
    file = _file(data, "manifests.yaml")
    for document in load_documents(file):
        if is_checked(document.content):
            lint_object(document.content, Files(()))
    load_manifests(file)


def _configuration(data: bytes) -> None:
    Scheduler(read_configuration(_file(data, "scheduler.conf")))


def _quantity(data: bytes) -> None:
    parse_quantity(_text(data))


def _patch(data: bytes) -> None:
    """Patch a document: the patch stays as it is, the result is bounded."""
    asked = parse_json(_text(data), "patch", unique=False)
    if not isinstance(asked, list) or len(asked) != 3 or asked[0] not in _SORTS:
        return
    sort, target, patch = asked
    before = clone(patch)
    made = apply_patch(clone(target), patch, sort)
    assert patch == before
    assert len(msgspec.json.encode(made)) <= LONGEST


def _changes(data: bytes) -> None:
    """Read a list of changes and try it."""
    world = _world()
    listed_changes(world, _file(data, "changes.yaml"))(world)


@cache
def _world() -> ClusterState:
    objects = [
        queue("default"),
        node("n1", cpu=4),
        pod_group("w", min_member=2),
        *(pod(f"w-{i}", group="w", cpu=1) for i in range(2)),
    ]
    return load_world(["\n---\n".join(json.dumps(one) for one in objects) + "\n"])


def _scenario(data: bytes) -> None:
    file = _file(data, "scenario.yaml")
    for document in load_documents(file):
        scenario = scenario_from(document.content, file)
        if scenario.cycles <= 3:
            play(scenario, default_scheduler)


def _snapshot(data: bytes) -> None:
    world = load_world([_file(data, "snapshot.yaml")])
    summarise(world)
    load_world([save_world(world, as_json=True)])


def _trace(trace_format: str, name: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        read_workload(_file(data, name), trace_format=trace_format)

    return run


def _described(data: bytes) -> None:
    """Recognise a trace, sum it up and write it in every form."""
    workload = read_workload(_file(data, "trace"))
    summarise_trace(SimulationInput(workload, ()))
    if sum(job.size for job in workload.jobs) < 10_000:
        for name in ("t.csv", "t.swf", "t.json"):
            write_trace(workload, _folder() / name)
            read_workload(_folder() / name)


def _data_directory(data: bytes) -> None:
    """Start a cluster on a directory: records with right checksums, or anything in its files."""
    with tempfile.TemporaryDirectory() as folder:
        _lay_out(Path(folder), data)
        disk = DataDirectory(Path(folder))
        try:
            served = ServedCluster(data=disk)
        except BaseException:
            disk.close()
            raise
        try:
            served.publish_conf()
            disk.begin()
            served.plane.step()
            disk.sync()
        finally:
            served.stop()
        DataDirectory(Path(folder)).close()  # what was written can be read


def _lay_out(folder: Path, data: bytes) -> None:
    try:
        files = json.loads(data)
        stored, logged = files["snapshot"], files["log"]
        stored = [*stored, {"objects": len(stored) - 1}]
        (folder / "snapshot").write_bytes(b"".join(map(encoded_record, stored)))
        (folder / "log").write_bytes(b"".join(map(encoded_record, logged)))
    except (ValueError, TypeError, LookupError):
        for name in ("snapshot", "log"):
            (folder / name).write_bytes(data)


def _record(data: bytes) -> None:
    """Read a record with right checksums and any lines, or a file of any bytes."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "00000001.jsonl.gz"
        try:
            lines = [json.dumps(line).encode() for line in json.loads(data)]
            head = Head(format=FORMAT, version=VERSION, segment=1, run="r", at=1.0)
            first = piece_of(head, [line_of(Entry(at=1.0, checkpoint=0))])
            path.write_bytes(first + piece_of(PieceHead(1), lines))
        except (ValueError, TypeError):
            path.write_bytes(data)
        history = History(Path(name))
        history.at()
        spans_of(history)
        for read in (recorded_workload, replay_exactly):
            with suppress(PumiceError):
                read(history)
        thin(path)
        History(Path(name)).at(history.end)


def _kubeconfig(data: bytes) -> None:
    load_connection(str(_file(data, "kubeconfig")), env={})


def _values(data: bytes) -> None:
    """Helm reads the values; what the schema accepts must be what the templates expect."""
    values = json.loads(data)
    if _validator().is_valid(values):
        custom = values.get("custom") or {}
        for name, value in custom.items():
            if name.endswith("_replicas"):
                assert isinstance(value, int | float) and value >= 0, name  # noqa: PT018
        enabled = custom.get("enabled_admissions") or ""
        assert all(path in SERVICES for path in enabled.split(",") if path)


@cache
def _validator() -> Any:
    schema = seeds.ROOT / "deploy/helm/pumice/values.schema.json"
    return jsonschema.Draft7Validator(json.loads(schema.read_text(encoding="utf-8")))


def _commands(data: bytes) -> None:
    commands.run_all(_file(data, "commands.yaml"), _folder())


# Requests and answers


def _review(data: bytes) -> None:
    for service in SERVICES.values():
        answer = json.loads(answer_review(data, service, Files(()), Options()))
        assert answer["kind"] == "AdmissionReview"
        assert isinstance(answer["response"]["allowed"], bool)


class _Answering(Endpoint):
    """A service that answers what the fuzzer made."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://127.0.0.1:9")
        self._answer = answer

    def get(self, *_: Any, **__: Any) -> dict[str, Any]:
        if not isinstance(self._answer, dict):
            raise PumiceError("not an object")
        return self._answer


def _usage(data: bytes) -> None:
    assert isinstance(_NODE, Node)
    for source in (PrometheusUsage, MetricsServerUsage):
        for use in source(_Answering(json.loads(data))).read([_NODE], 1.767e9).values():
            assert all(0 <= use[part] <= 1e11 for part in use), use


def _extender(data: bytes) -> None:
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return
    if isinstance(found, dict):
        for kind in (answers.Fit, answers.Scores, answers.Victims, answers.Vote, answers.Ready,
                     answers.Overused, answers.Handled, answers.IgnoredAnswer):  # fmt: skip
            try:
                answers.read_answer(found, kind)
            except PumiceError:
                continue


class _Rest:
    """A served cluster that outlives some inputs; a find lists all requests since it was made."""

    def __init__(self) -> None:
        self.served: ServedCluster | None = None
        self.history: list[Any] = []

    def run(self, data: bytes) -> None:
        """Send requests: a list of method, path, content type and body."""
        requests = json.loads(data)
        if not isinstance(requests, list):
            return
        if self.served is None or len(self.history) >= _BATCH:
            self.renew()
        self.history += requests
        assert self.served is not None
        for request in requests:
            if isinstance(request, list) and len(request) == 4 and all(map(_is_head, request[:3])):
                self._send(*request)
        self.served.plane.step()

    def _send(self, method: str, path: str, content: str, body: Any) -> None:
        assert self.served is not None
        sent = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else b""
        if not isinstance(body, str):
            sent = json.dumps(body).encode()
        bare, _, query = path.partition("?")
        asked = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
        answer = self.served.api.answer(
            Request(method, bare, query=asked, content_type=content, body=sent)
        )
        assert answer.code != 500, answer.content
        if answer.watch is not None:
            answer.watch.poll()
        else:
            _response(answer)

    def renew(self) -> None:
        """Begin with a new cluster."""
        if self.served is not None:
            self.served.stop()
        self.served = ServedCluster()
        self.served.add_nodes(1, {"cpu": "4", "memory": "8Gi"})
        self.history = []


def _http(data: bytes) -> None:
    """Send a request to the dashboard or to an API server: it is answered, and is no fault."""
    try:
        asked = json.loads(data)
        server, method, path, head, body = asked
        lines = "\r\n".join(f"{name}: {value}" for name, value in head.items())
        content = body if isinstance(body, str) else json.dumps(body)
        port = _ports()[server]
        sent = Sent(
            path.replace("\r", "").replace("\n", "").encode(errors="replace").decode("latin-1"),
            str(method).encode(errors="replace").decode(),
            head=lines.encode(errors="surrogatepass"),
            body=content.encode(errors="surrogatepass"),
        )
    except (ValueError, TypeError, AttributeError, KeyError):
        return
    code, answer = send(port, sent)
    assert code < 500 or code in (501, 503), (code, answer)


@cache
def _ports() -> dict[str, int]:
    """Serve until the process ends."""
    source = StaticSource(load_world([seeds.ROOT / "examples" / "first-cluster.yaml"]), "fuzz")
    dashboard = served_dashboard(source, ServingOptions())
    url = dashboard.__enter__()
    atexit.register(dashboard.__exit__, None, None, None)
    api = ApiServer(RestApi(ServedCluster().cluster))
    api.start()
    atexit.register(api.stop)
    return {"dashboard": int(url.rpartition(":")[2]), "api": api.port}


def _is_head(text: Any) -> bool:
    """Return what HTTP can carry before a body."""
    return isinstance(text, str) and text.isascii()


REST: Final = _Rest()


def _requests() -> list[Any]:
    json_, merge = "application/json", "application/merge-patch+json"
    found: list[Any] = []
    for one in seeds.MANIFESTS:
        version, place = one["apiVersion"], one["metadata"]
        start = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural = _PLURALS.get(one["kind"], f"{one['kind'].lower()}s")
        space = f"/namespaces/{place['namespace']}" if "namespace" in place else ""
        path = f"{start}{space}/{plural}"
        change = {"spec": one.get("spec"), "status": one.get("status")}
        found.append([
            ["POST", path, json_, one],
            ["PATCH", f"{path}/{place['name']}/status", merge, change],
            ["PATCH", f"{path}/{place['name']}", "application/json-patch+json",
             [{"op": "replace", "path": "/spec", "value": one.get("spec")}]],
            ["GET", f"{path}?limit=1&labelSelector=a%3Db&fieldSelector=a%3Dx", json_, ""],
            ["GET", f"{path}?watch=1&resourceVersion=3&timeoutSeconds=5", json_, ""],
            ["PUT", f"{path}/{place['name']}", json_, one],
            ["DELETE", f"{path}/{place['name']}", json_, {"gracePeriodSeconds": 0}],
        ])  # fmt: skip
    binding = {"target": {"kind": "Node", "name": "node-1"}}
    found.append([
        ["POST", "/api/v1/namespaces/default/pods", json_, seeds.MANIFESTS[1]],
        ["POST", "/api/v1/namespaces/default/pods/p/binding", json_, binding],
        ["POST", "/api/v1/namespaces/default/pods/p/eviction", json_, {"kind": "Eviction"}],
    ])  # fmt: skip
    return found


def _as_json(values: Sequence[Any]) -> Callable[[Rng], bytes]:
    mutator = Mutator(values)
    return lambda rng: json.dumps(mutator.value(rng)).encode()


def _reviews() -> list[Any]:
    return [
        seeds.review(one["kind"], _PLURALS[one["kind"]], one)
        for one in seeds.MANIFESTS
        if one["kind"] in _PLURALS
    ]


TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        Target("manifests", _documents([*seeds.MANIFESTS, seeds.MANIFESTS[:3]]), _manifests),
        Target("configuration", _documents(seeds.CONFIGURATIONS), _configuration),
        Target("records", _as_json(seeds.RECORDS), _record),
        Target("patches", _as_json(seeds.PATCHES), _patch),
        Target("changes", _documents(seeds.CHANGES), _changes),
        Target("quantities", _texts([text.encode() for text in seeds.QUANTITIES]), _quantity),
        Target("scenarios", _documents(seeds.SCENARIOS), _scenario),
        Target("snapshots", _documents([*seeds.SCENARIOS, *seeds.MANIFESTS]), _snapshot),
        Target("synthetic", _documents(seeds.SYNTHETIC), _trace("synthetic", "s.yaml")),
        Target("openb", _texts([seeds.TEXTS["openb"]]), _trace("openb", "o.csv")),
        Target("philly", _texts([seeds.TEXTS["philly"]]), _trace("philly", "p.csv")),
        Target(
            "swf",
            _texts([seeds.TEXTS["swf"], seeds.TEXTS["metacentrum.swf"]]),
            _trace("swf", "s.swf"),
        ),
        Target(
            "alibaba2018",
            _texts([text for name, text in seeds.TEXTS.items() if name.startswith("alibaba2018")]),
            _trace("alibaba2018", "a.csv"),
        ),
        Target(
            "alibaba2025",
            _texts([seeds.TEXTS["alibaba2025.csv"]]),
            _trace("alibaba2025", "b.csv"),
        ),
        Target("jobs", _texts([seeds.TEXTS["jobs.csv"]]), _trace("jobs", "j.csv")),
        Target("parquet", _texts([seeds.parquet_table()]), _trace("jobs", "j.parquet")),
        Target("formats", _texts(list(seeds.TEXTS.values())), _described),
        Target("arrivals", _documents(seeds.MANIFESTS), _trace("manifests", "m.yaml")),
        Target("data", _documents(seeds.DATA), _data_directory),
        Target("kubeconfigs", _documents(seeds.KUBECONFIGS), _kubeconfig),
        Target("reviews", _documents(_reviews()), _review),
        Target("http", _as_json(seeds.HTTP), _http),
        Target("rest", _as_json(_requests()), REST.run),
        Target("usage", _as_json(seeds.PROMETHEUS), _usage),
        Target("extender", _as_json(seeds.EXTENDER), _extender),
        Target("values", _as_json(seeds.VALUES), _values),
        Target("commands", commands.make(commands.documents()), _commands),
    )
}

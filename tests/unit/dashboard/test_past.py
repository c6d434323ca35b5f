"""The pages of a record: the cluster at any time of it, and the lives of jobs."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pumice.api.times import rfc3339
from pumice.dashboard.material import Material
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import StaticSource
from pumice.diagnosis.job_history import of_job, spans_of
from pumice.diagnosis.sources import load_world
from pumice.records.history import History
from tests.unit.replay.test_exact import START, record_churn

AT = START + 1500.0
Get = Callable[[str], tuple[int, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("past") / "record"
    record_churn(found, 1, 0.6)
    return found


@pytest.fixture(scope="module")
def get(folder: Path) -> Iterator[Get]:
    world = load_world([folder])
    source = StaticSource(world, "past", past=Material(now=world.now, record=folder))

    def ask(path: str) -> tuple[int, Any]:
        while True:
            with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
                connection.request("GET", path)
                response = connection.getresponse()
                body = response.read()
            if response.status != 202:
                return response.status, json.loads(body)

    with served_dashboard(source, ServingOptions()) as url:
        place = url.removeprefix("http://")
        yield ask


def test_every_page_shows_the_cluster_as_it_was(folder: Path, get: Get) -> None:
    moment = History(folder).at(AT)
    objects = moment.by_kind()
    at = f"?at={rfc3339(AT)}"
    assert get(f"/api/past{at}")[1]["at"] == AT
    assert sorted(get(f"/api/jobs{at}")[1]["job"]) == sorted(
        f"default/{group['metadata']['name']}"
        for group in objects["PodGroup.scheduling.volcano.sh"]
    )
    nodes = {one["metadata"]["name"] for one in objects["Node"]}
    assert set(get(f"/api/nodes{at}")[1]["names"]) == nodes != set(get("/api/nodes")[1]["names"])
    overview = get(f"/api/overview{at}")[1]
    cpus = sum(
        int(container["resources"]["requests"]["cpu"])
        for pod in objects["Pod"]
        for container in pod["spec"]["containers"]
        if pod["spec"].get("nodeName") and pod["status"]["phase"] in ("Pending", "Running")
    )
    assert overview["resources"][0]["used"] == cpus
    times = overview["history"]["times"]
    assert len(times) > 15
    assert START <= min(times) < max(times) <= AT
    recorded = [
        step.entry.cycle
        for step in History(folder).steps(None, AT)
        if step.entry.cycle is not None and step.entry.cycle.binds
    ]
    cycles = [each for each in get(f"/api/cycles{at}")[1]["cycles"] if each["binds"]]
    assert [each["binds"] for each in reversed(cycles)] == [len(each.binds) for each in recorded]
    shown = get(f"/api/cycles/{cycles[0]['number']}{at}")[1]
    assert {each["pod"]: each["node"] for each in shown["bound"]} == recorded[-1].binds


def test_a_job_page_has_its_whole_life(folder: Path, get: Get) -> None:
    spans = of_job(spans_of(History(folder)), "j3")
    found = get("/api/jobs/default/j3/life")[1]["spans"]
    assert [(each["state"], each["cause"], each["since"], each["until"]) for each in found] == [
        (each.state, each.cause, each.since, each.until) for each in spans
    ]
    assert {"Waiting", "Running"} <= {each["state"] for each in found}
    assert get("/api/jobs/no/such/life") == (200, {"spans": [], "problems": []})


@pytest.mark.parametrize(
    "at",
    [
        *("9" * 5000, "-1", "x", "1.5", "\u0663", "1e3", "25:00", "T", "\x00", "<script>", "-inf"),
        *("2026-99-99T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "-9999999h"),
        "../../etc/passwd",
    ],
)
def test_a_time_that_is_none_gets_a_sentence(get: Get, at: str) -> None:
    for path in ("jobs", "past", "order", "snapshot", "cycles", "jobs/default/j1/why"):
        status, found = get(f"/api/{path}?at={quote(at)}")
        assert (status, found["problem"][:15]) == (422, "expected a time"), path

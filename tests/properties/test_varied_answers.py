"""Answers about varied clusters: those of a cycle, of a played cluster, and of changed ones."""

import contextlib
import io
import json
import re
from functools import cache
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.times import epoch
from pumice.cli.explain import _print
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.explain import Explanation, explain_job
from pumice.diagnosis.forecast import forecast_all
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.whatif import Question, what_if
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.scheduler.live_scheduler import Cycle
from tests.present import present
from tests.properties.crowded import Book, group_of, key, requests
from tests.properties.varied import FEATURES, NOW, loaded, varied
from tests.staged.truth import changed, gets_going, wrong_moves

JOB = "default/ask"
SEEDS = range(len(FEATURES))
SOME = range(0, len(FEATURES), 4)
FEW = range(1, len(FEATURES), 7)
HORIZON = 120.0
pytestmark = pytest.mark.sample(2)


@cache
def explained(seed: int) -> Explanation:
    return explain_job(loaded(varied(seed).content), JOB, unblock=False, foresee=False)


def pods_of(seed: int) -> set[str]:
    return {key(one) for one in varied(seed).of("Pod") if group_of(one) == JOB}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_starts_where_the_cycle_binds_it_and_those_leave_that_it_evicts(seed: int) -> None:
    decisions, found = Replay(loaded(varied(seed).content)).decide(), explained(seed)
    mine = pods_of(seed)
    binds = {pod: node for pod, node in decisions.binds.items() if pod in mine}
    assert (found.state == "starts") is bool(binds), found.text
    assert {pod: node for pod, node in found.places.items() if pod in binds} == binds
    whom = decisions.beneficiaries
    evicted = {pod for pod in decisions.evictions if whom.get(pod) in {*mine, JOB}}
    assert {each.pod for each in found.victims} == evicted
    assert found.causes or found.state != "waits"


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_nodes_begin_with_all_and_never_widen(seed: int) -> None:
    found, book = explained(seed), Book(varied(seed).objects)
    left = [row.left for row in found.funnel]
    assert left == sorted(left, reverse=True)
    assert not left or left[0] == len(book.nodes)
    for cause in found.causes:
        numbers, beside = cause.numbers, "of the job placed)" in cause.text
        if "nearest" in numbers and not beside:
            asked = requests(book.pods[numbers["pod"]])
            lacks = book.lacks(asked, numbers["nearest"], empty=False)
            assert {name: lacks[name] for name in numbers["lacks"]} == numbers["lacks"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_limit_of_a_queue_is_compared_with_what_others_use(seed: int) -> None:
    book = Book(varied(seed).objects)
    for cause in explained(seed).causes:
        numbers, about = cause.numbers, cause.about
        if about is None or about.kind != "Queue" or "resource" not in numbers:
            continue
        assert numbers["over"] == pytest.approx(
            numbers["used"] + numbers["request"] - numbers["limit"]
        )
        assert numbers["over"] > 0, cause
        if book.groups[JOB]["status"]["phase"] == "Inqueue":
            assert numbers["used"] == book.held(about.name, numbers["resource"]), cause


@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_says_what_the_data_says(seed: int) -> None:
    found, world = explained(seed), loaded(varied(seed).content)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        _print(found, world.plain)
    text = re.sub(r"\s", "", out.getvalue())
    said = [each.text for each in found.causes] + [each.text for each in found.not_evicted]
    said += [each.text for each in found.funnel[1:]]
    for each in said:
        assert re.sub(r"\s", "", world.plain(each)) in text


@pytest.mark.parametrize("seed", SOME)
def test_whatif_starts_a_job_now_exactly_if_the_cycle_does(seed: int) -> None:
    world, mine = loaded(varied(seed).content), pods_of(seed)
    decisions = Replay(world).decide()
    binds = {pod: node for pod, node in decisions.binds.items() if pod in mine}
    found = present(what_if(world, Question(job=JOB)).job)
    assert (found.in_s == 0) is bool(binds), found.sentence
    assert (found.places if binds else {}) == binds


def is_playable(seed: int) -> bool:
    """Return whether a control plane has what the file says: loads, and claims without volumes."""
    draw = varied(seed)
    return not draw.usage and not draw.of("PersistentVolumeClaim")


@pytest.mark.parametrize("seed", FEW)
def test_a_forecast_is_what_a_control_plane_does(seed: int) -> None:
    if not is_playable(seed):
        return
    content = varied(seed).content
    world = loaded(content)
    starts, victims = _played(content)
    for job, found in forecast_all(world).items():
        if job not in starts:
            assert found.in_s is None or found.in_s > HORIZON, (job, found)
        else:
            assert (found.in_s, found.places) == starts[job], (job, found)
            assert set(found.victims) == victims.get(job, set()), (job, found)


@pytest.mark.parametrize("seed", FEW)
def test_remedies_help(seed: int) -> None:
    content = varied(seed).content
    found = explain_job(loaded(content), JOB, foresee=False)
    for remedy in json.loads(json.dumps(found.to_dict()))["remedies"]:
        assert not wrong_moves(remedy["text"])
        assert gets_going(loaded(changed(content, remedy["changes"])), JOB), remedy["text"]


Starts = dict[str, tuple[float, dict[str, str]]]


def _played(content: Any) -> tuple[Starts, dict[str, set[str]]]:
    """Play a cluster on a whole control plane; return who started when, and whom it evicted."""
    start = epoch(NOW)
    store = EmbeddedCluster(VirtualClock(start))
    store.restore([*loaded(content).objects])
    plane = EmbeddedControlPlane(parse_conf(content["conf"]), cluster=store, idle_period_s=1.0)
    starts: Starts = {}
    victims: dict[str, set[str]] = {}

    def job_of(name: str) -> str:
        found = store.peek("Pod", *name.split("/")) if name else None
        return name if found is None else group_of(found)

    def note(cycle: Cycle) -> None:
        decisions, at = cycle.decisions, cycle.at - start
        for pod in decisions.evictions:
            whose = job_of(decisions.beneficiaries.get(pod, ""))
            if whose not in starts and whose != job_of(pod):
                victims.setdefault(whose, set()).add(pod)
        for pod, node in decisions.binds.items():
            when, places = starts.setdefault(job_of(pod), (at, {}))
            if when == at:
                places[pod] = node

    plane.on_cycle.append(note)
    plane.run(until=start + HORIZON)
    return starts, victims

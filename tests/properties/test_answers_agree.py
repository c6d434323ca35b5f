"""What `run` decides, `explain`, conditions of pod groups and `queue order` never contradict."""

import json
from functools import cached_property
from typing import Any

from hypothesis import given, settings

from pumice.api.times import epoch
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.queue_order import queue_order
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.waiting_jobs import waiting_jobs
from tests.properties.clusters import clusters, confs
from tests.staged.truth import CAUSES, NOT_EVICTED

NOW = epoch("2026-01-01T01:00:00Z")


def text_of(conf: Any) -> str:
    """Write a drawn configuration as the text that a command reads."""
    tiers = [{"plugins": [{"name": one.name} for one in tier.plugins]} for tier in conf.tiers]
    return json.dumps({"actions": ", ".join(conf.actions), "tiers": tiers})


class Scene:
    """A cluster, what one cycle decides, and each answer about it."""

    def __init__(self, objects: Any, conf: Any) -> None:
        self.world = ClusterState(objects=tuple(objects), now=NOW, conf=text_of(conf))
        self.decisions = Replay(self.world).decide()

    @cached_property
    def reported(self) -> dict[str, Any]:
        """The explanation of each job."""
        return {
            key: explain_job(self.world, key, unblock=False, foresee=False).to_dict()
            for key in self.world.groups
        }

    @property
    def listed(self) -> set[str]:
        """The jobs that the list of waiting jobs has."""
        return {each.job for each in waiting_jobs(self.world, foresee=False)}

    def started(self, key: str) -> int:
        """Return how many pods of a job the cycle binds."""
        return len(self._pods(key) & self.decisions.binds.keys())

    def has_left(self, key: str) -> bool:
        """Return whether a job has pods without a node after the cycle."""
        homeless = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in self.world.pods_by_group.get(key, ())
            if not pod["spec"].get("nodeName")
        }
        return bool(homeless - self.decisions.binds.keys())

    def queue(self, key: str) -> str:
        """Return the queue of a job."""
        return str(self.world.groups[key]["spec"]["queue"])

    def _pods(self, key: str) -> set[str]:
        return {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in self.world.pods_by_group.get(key, ())
        }


scenes = given(clusters(), confs(wide=True))
few = settings(max_examples=25)


@few
@scenes
def test_a_job_that_run_starts_is_said_to_start_and_no_other(objects: Any, conf: Any) -> None:
    scene = Scene(objects, conf)
    said = {key for key, reported in scene.reported.items() if reported["state"] == "starts"}
    assert said == {key for key in scene.world.groups if scene.started(key)}


@few
@scenes
def test_a_job_that_gets_no_node_for_its_pods_is_said_to_wait(objects: Any, conf: Any) -> None:
    scene = Scene(objects, conf)
    for key, reported in scene.reported.items():
        if scene.has_left(key) and not scene.started(key):
            assert reported["state"] == "waits", key


@few
@scenes
def test_a_job_whose_condition_says_unschedulable_is_not_said_to_start(
    objects: Any, conf: Any
) -> None:
    scene = Scene(objects, conf)
    for key, state in scene.decisions.pod_groups.items():
        conditions = [one.to_manifest() for one in state.conditions]
        if any(one["type"] == "Unschedulable" and one["status"] == "True" for one in conditions):
            assert scene.reported[key]["state"] not in ("starts", "finished"), key


@few
@scenes
def test_every_waiting_job_is_listed(objects: Any, conf: Any) -> None:
    scene = Scene(objects, conf)
    assert {
        key for key, reported in scene.reported.items() if reported["state"] == "waits"
    } <= scene.listed


@few
@scenes
def test_every_code_is_of_the_closed_lists_and_every_wait_has_a_cause(
    objects: Any, conf: Any
) -> None:
    for key, reported in Scene(objects, conf).reported.items():
        assert {cause["code"] for cause in reported["causes"]} <= CAUSES, key
        assert {one["code"] for one in reported["notEvicted"]} <= NOT_EVICTED, key
        assert reported["causes"] or reported["state"] != "waits", key


@few
@scenes
def test_the_first_of_a_queue_is_behind_nobody_of_its_queue(objects: Any, conf: Any) -> None:
    scene = Scene(objects, conf)
    for queue, lines in queue_order(scene.world).jobs.items():
        first = lines[0].name
        reported = scene.reported[first]
        ahead = [cause["object"] for cause in reported["causes"] if cause["code"] == "JobAhead"]
        behind = {f"{one['namespace']}/{one['name']}" for one in ahead}
        behind |= {one["job"] for one in (reported["position"] or {}).get("behind", ())}
        assert queue not in {scene.queue(key) for key in behind}, first


@few
@scenes
def test_only_a_job_that_got_something_is_said_to_be_ahead(objects: Any, conf: Any) -> None:
    scene = Scene(objects, conf)
    for key, reported in scene.reported.items():
        for cause in reported["causes"]:
            if cause["code"] == "JobAhead":
                other = f"{cause['object']['namespace']}/{cause['object']['name']}"
                promised = scene.decisions.pipelined.keys() & scene._pods(other)
                assert scene.started(other) or promised, (key, other)

"""Records written to do harm, given to commands that read a past: an answer or one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.cloning import clone
from pumice.cli.main import main
from pumice.records.entries import (
    FORMAT,
    VERSION,
    Conf,
    CycleEntry,
    Entry,
    Head,
    PieceHead,
    line_of,
    piece_of,
)

AT = 1.7e9
CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "j",
    "uid": "u-j",
    "controller": True,
}
TASK = {"replicas": 1, "name": "t", "template": {"spec": {"containers": [{"name": "c"}]}}}


def objects() -> dict[str, Any]:
    place = {"namespace": "default", "ownerReferences": [OWNER]}
    group = {"scheduling.k8s.io/group-name": "g"}
    return {
        "node": {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        "queue": {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "default"},
            "spec": {"weight": 1},
        },
        "job": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "default", "uid": "u-j"},
            "spec": {"minAvailable": 1, "tasks": [TASK]},
        },
        "group": {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", **place},
            "spec": {"minMember": 1, "queue": "default"},
            "status": {"phase": "Pending"},
        },
        "pod": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "uid": "u-p", "annotations": group, **place},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]},
            "status": {"phase": "Pending"},
        },
    }


def write_record(folder: Path, settings: dict[str, Any], known: dict[str, Any]) -> None:
    folder.mkdir()
    for one in known.values():
        one["metadata"]["resourceVersion"] = "1"
    head = Head(format=FORMAT, version=VERSION, segment=1, run="x", at=AT)
    place = ("Pod", "default", "p")
    running = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    checkpoint = [
        Entry(at=AT, conf=Conf(CONF)),
        *(Entry(at=AT, put=one) for one in known.values()),
        Entry(at=AT, checkpoint=len(known)),
    ]
    later = [
        Entry(at=AT + 1, cycle=CycleEntry(now=AT + 1, binds={"default/p": "n"})),
        Entry(at=AT + 2, of=place, patch=running),
        Entry(at=AT + 60, of=place, patch={"status": {"phase": "Succeeded"}}),
        Entry(at=AT + 61, cycle=CycleEntry(now=AT + 61)),
    ]
    stated = json.dumps({"at": AT, "settings": settings}).encode()
    first, second = (
        piece_of(head, [stated, *map(line_of, checkpoint)]),
        piece_of(PieceHead(1), map(line_of, later)),
    )
    (folder / "00000001.jsonl.gz").write_bytes(first + second)


def check(tmp_path: Path, settings: dict[str, Any], known: dict[str, Any]) -> None:
    folder, conf = tmp_path / "record", tmp_path / "new.conf"
    write_record(folder, settings, known)
    conf.write_text(CONF)
    for given in (
        ["replay", str(folder)],
        ["replay", str(folder), "--conf", str(conf)],
    ):
        found = CliRunner().invoke(main, given)
        assert found.exception is None or isinstance(found.exception, SystemExit), given
        assert found.exit_code in (0, 1, 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": "x"},
        {"seed": [1]},
        {"seed": -1},
        {"names": 5},
        {"names": [["a"]]},
        {"agents": 5},
        {"nodeSelector": 5},
        {"nodeSelector": [5]},
        {"nodeSelector": ["x"]},
        {"startedAt": "x"},
        {"startedAt": 1e308},
        {"defaultQueue": [5]},
    ],
    ids=str,
)
def test_odd_settings(settings: dict[str, Any], tmp_path: Path) -> None:
    check(tmp_path, settings, objects())


@pytest.mark.parametrize(
    "spec",
    [
        5,
        [],
        {"tasks": 5},
        {"tasks": [5]},
        {"tasks": [{**TASK, "replicas": 10**9}]},
        {"tasks": [TASK], "policies": 5},
        {"tasks": [TASK], "policies": [5]},
        {"tasks": [TASK], "policies": [{"event": ["a"]}]},
        {"tasks": [TASK], "policies": [{"events": 5}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("has_pod", [True, False])
def test_odd_jobs(spec: Any, has_pod: bool, tmp_path: Path) -> None:
    known = objects()
    known["job"]["spec"] = clone(spec)
    if not has_pod:
        del known["pod"]
    check(tmp_path, {}, known)


def test_a_record_that_is_right_is_replayed(tmp_path: Path) -> None:
    """Or the tests here would show nothing."""
    write_record(tmp_path / "record", {"seed": 3}, objects())
    found = CliRunner().invoke(main, ["replay", str(tmp_path / "record")])
    assert found.exit_code == 1  # it was not decided by this scheduler
    assert "cycles" in found.output
    (tmp_path / "new.conf").write_text(CONF)
    given = ["replay", str(tmp_path / "record"), "--conf", str(tmp_path / "new.conf")]
    assert "jobs started" in CliRunner().invoke(main, given).output


@pytest.mark.parametrize("seconds", ["nan", "inf", "-5", "1e308", "x"])
def test_odd_run_times(seconds: str, tmp_path: Path) -> None:
    known = objects()
    known["pod"]["metadata"]["annotations"]["pumice.dev/run-seconds"] = seconds
    check(tmp_path, {}, known)

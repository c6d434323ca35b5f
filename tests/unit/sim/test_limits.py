"""How large a simulation may be: every limit is checked before work starts, in one sentence."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.sim import options as limits
from pumice.sim.inputs import load, read_cluster
from pumice.sim.readers import table_files as text

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "sim.md").read_text(encoding="utf-8")
HUGE = 2_000_000_000
SYNTHETIC = {
    "jobs": 10,
    "pod": "{cpu: 1}",
    "sizes": "{1: 1}",
    "arrivals": "{process: uniform, meanSeconds: 1}",
    "durations": "{distribution: constant, median: 10}",
    "nodes": "{count: 2, allocatable: {cpu: 4}}",
}
SWF = "{number} {submit} -1 {run} {procs} -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n"
JOB = f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: huge}}
spec:
  schedulerName: volcano
  minAvailable: 1
  tasks:
  - name: w
    replicas: {HUGE}
    template: {{spec: {{containers: [{{name: c, image: i}}], restartPolicy: Never}}}}
"""


def synthetic(**changes: Any) -> str:
    keys = "".join(f"{key}: {value}\n" for key, value in {**SYNTHETIC, **changes}.items())
    return f"apiVersion: pumice.dev/v1\nkind: SyntheticWorkload\n{keys}"


def swf(*jobs: dict[str, int], header: str = "") -> str:
    plain = {"submit": 0, "run": 10, "procs": 1}
    return header + "".join(SWF.format(number=i, **{**plain, **job}) for i, job in enumerate(jobs))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (synthetic(jobs=HUGE), "jobs: expected at most 1,000,000 jobs, got 2000000000"),
        (synthetic(sizes=f"{{{HUGE}: 1}}"), "sizes: expected at most 100,000 pods of a job"),
        (synthetic(jobs=900_000, sizes="{9: 1}"), "expected at most 5,000,000 pods in all"),
        (
            synthetic(arrivals=f"{{meanSeconds: {HUGE}}}"),
            "arrivals: expected at most 1,000,000,000 seconds",
        ),
        (
            synthetic(durations=f"{{median: {HUGE}, maximum: {HUGE}}}"),
            "durations: expected at most 1,000,000,000 seconds",
        ),
        (
            synthetic(nodes=f"{{count: {HUGE}, allocatable: {{cpu: 1}}}}"),
            "nodes.count: expected at most 100,000 nodes",
        ),
        (swf({"procs": HUGE}), ":1: processors: expected at most 100,000 processors of a job"),
        (swf({"run": HUGE}), "expected at most 1,000,000,000 seconds of a run"),
        (swf({}, {"submit": HUGE}), "seconds from the first arrival to the last"),
        (swf({}, header=f"; MaxNodes: {HUGE}\n"), "expected at most 100,000 nodes"),
        (swf({}, header=f"; MaxProcs: {'9' * 6000}\n"), "expected at most 100,000 nodes"),
        (f"timestamp,duration,num_gpus\n0,1,{HUGE}\n", ":2: num_gpus: expected at most 100,000"),
        ("timestamp,duration,num_gpus\n0,1,1e300\n", ":2: num_gpus: expected at most 100,000"),
        (JOB, "spec.tasks.replicas: expected at most 100,000 pods of a job, got 2000000000"),
        (synthetic(jobs="[" * 50_000), "expected at most 100 nested levels"),
    ],
)
def test_what_is_too_large_is_refused_in_one_sentence(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "trace"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value) or path.name in str(caught.value)


def test_many_jobs_are_counted_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_JOBS", 3)
    path = tmp_path / "trace"
    path.write_text(swf({}, {}, {}), encoding="utf-8")
    assert len(load(path).workload.jobs) == 3
    path.write_text(swf({}, {}, {}, {}), encoding="utf-8")
    with pytest.raises(InputError, match="expected at most 3 jobs, got 4"):
        load(path)


def test_a_list_of_nodes_is_counted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_NODES", 1)
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu\na,1,1,0\nb,1,1,0\n", encoding="utf-8")
    with pytest.raises(InputError, match="expected at most 1 nodes, got 2"):
        read_cluster(path)


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "bomb"
    content = b"0" * (3 << 20)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match="expected at most 2 MiB"):
        text.read_text(path, 2 << 20)
    assert text.read_text(path, 3 << 20) == content.decode()


def test_the_limits_are_those_of_the_documentation() -> None:
    for number in (
        *(limits.MAX_JOBS, limits.MAX_PODS, limits.MAX_JOB_PODS, limits.MAX_NODES),
        *(limits.MAX_SECONDS, limits.MAX_TRACE_BYTES >> 20),
    ):
        assert f"{number:,}" in DOCS

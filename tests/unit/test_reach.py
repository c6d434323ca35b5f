"""How many files a reader opens to follow one pod, one preemption and one question.

A call trace counts the files of `src/pumice` in which a function runs.  The lists are printed
(``pytest -s tests/unit/test_reach.py``), so that a file that does not belong there is seen.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

import pumice
from pumice.api.conf import parse_conf
from pumice.cli.main import main
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import snapshot_of

SOURCE = Path(pumice.__file__).parent
ALLOCATE = """
actions: enqueue, allocate
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PREEMPT = ALLOCATE.replace("allocate", "allocate, preempt")
WAITING = [queue("default"), node("n1", cpu=2), pod_group("g"), pod("p", group="g", cpu=1)]
EVICTING = [
    queue("default"),
    node("n1", cpu=1),
    priority_class("high", value=100),
    priority_class("low", value=1),
    pod_group("old", min_member=0, phase="Running", priority_class="low"),
    pod("old-0", group="old", cpu=1, node="n1", phase="Running", priority=1),
    pod_group("new", phase="Inqueue", priority_class="high"),
    pod("new-0", group="new", cpu=1, priority=100),
]
BOUNDS = {"pod": 35, "preemption": 42, "queue order": 80}
"""The most files of each trace: lower them with the code, never raise them."""


def entered(run: Callable[[], Any]) -> list[str]:
    """Run something and return the files of the product in which a function was called."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":  # importing is not entering
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    paths = [Path(file) for file in seen]
    found = {str(path.relative_to(SOURCE)) for path in paths if SOURCE in path.parents}
    return sorted(found - {"core/consistency.py"})  # the tests check each cycle with it


def decide(conf: str, objects: list[Any], wanted: str) -> list[str]:
    """Trace the second cycle of a scheduler: what is built once is built."""
    scheduler = Scheduler(parse_conf(conf))
    scheduler.cycle(objects, 0.0)
    snapshot = snapshot_of(objects)
    made: list[Any] = []
    found = entered(lambda: made.append(scheduler.decide(snapshot, 1.0)))
    assert list(made[0].binds or made[0].evictions) == [wanted]
    return found


def ask_for_the_order(folder: Path) -> list[str]:
    file = folder / "cluster.json"
    file.write_text(json.dumps({"objects": WAITING, "conf": ALLOCATE}))

    def ask() -> None:
        done = CliRunner().invoke(main, ["queue", "order", "-f", str(file)])
        assert done.exit_code == 0, done.output

    ask()
    return entered(ask)


@pytest.mark.parametrize("what", BOUNDS)
def test_few_files_are_entered(what: str, tmp_path: Path) -> None:
    files = {
        "pod": lambda: decide(ALLOCATE, WAITING, "default/p"),
        "preemption": lambda: decide(PREEMPT, EVICTING, "default/old-0"),
        "queue order": lambda: ask_for_the_order(tmp_path),
    }[what]()
    print(f"{what}: {len(files)} files", *files, sep="\n  ")  # noqa: T201
    assert len(files) <= BOUNDS[what]

"""Time what signs a change off: ``python -m bench.signoff [--files N]``.

Many small policy tests in one folder, made of those in the cookbook, and the tutorial of the
capacity tree on a dump of 60 nodes, 12 queues and 150 jobs.  Each answer is verified before it
counts.  Printed are CPU and wall seconds with the start of the process, beside the goal.
"""

import argparse
import json
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from bench.checkouts import HERE
from bench.questions import run
from pumice.scenarios.scenario import load_scenario

FILES: Final = 500
TESTS_S: Final = 10
"""Wall seconds for all tests."""
WHATIF_S: Final = 5
"""CPU seconds for one sign-off."""
TREE: Final = HERE / "examples" / "capacity-tree"
_EXAMPLE: Final = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def write_tests(folder: Path, number: int) -> None:
    """Write small tests: those of the cookbook in turn, each with a seed of its own."""
    texts = _EXAMPLE.findall((HERE / "docs" / "cookbook.md").read_text())
    small = [text for text in texts if "\ndraw:" not in text]
    for each in range(number):
        text = f"seed: {each}\n{small[each % len(small)]}"
        (folder / f"{each:04d}.yaml").write_text(text)


def write_dump(file: Path) -> None:
    """Write the cluster of the tutorial as `kubectl get -o yaml` does."""
    objects = load_scenario(TREE / "cluster.yaml").objects
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}))


def timed(name: str, goal: str, words: Sequence[str]) -> Any:
    """Run a command, print what it took, and return its answer."""
    start = time.perf_counter()
    text, cpu, peak = run((*words, "-o", "json"))
    wall = time.perf_counter() - start
    print(f"{name:24} {cpu:6.2f} s CPU {wall:6.2f} s {goal:16} {peak:5.0f} MB", flush=True)
    return json.loads(text)


def main() -> None:
    """Time the tests, and each answer about the dump."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=FILES)
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as name:
        folder, dump = Path(name) / "tests", Path(name) / "dump.yaml"
        folder.mkdir()
        write_tests(folder, files)
        write_dump(dump)
        tests = timed(f"{files} small tests", f"(goal {TESTS_S} wall)", ("test", str(folder)))
        assert tests["passed"] == files, f"{files - tests['passed']} tests do not pass"
        old, new = (str(TREE / conf) for conf in ("flat.conf", "tree.conf"))
        about = ("--current-conf", old, "--new-conf", new)
        goal = f"(goal {WHATIF_S} CPU)"
        answer = timed("whatif on a dump", goal, ("whatif", "-f", str(dump), *about))
        signed = answer["signoff"]["after"]
        assert (signed["evictions"], signed["gangs_broken"]) == (60, []), "another outcome"
        found = timed("diff on a dump", "", ("diff", old, new, "-f", str(dump)))
        assert found["outcome"]["signoff"]["after"] == signed, "diff and whatif differ"
        check = ("config", "check", new, "--cluster", str(dump), "--strict")
        assert timed("config check on a dump", "", check)["problems"] == []


if __name__ == "__main__":
    main()

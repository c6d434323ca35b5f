"""Record what the bench cases decide, to compare commits: ``python -m bench.decisions``.

``--write FILE`` records this checkout or the one given by ``--checkout FOLDER``; ``--check FILE``
names the cases that decide otherwise than a record, and fails if there are any.  Every kind of case
decides two cycles in a roomy and in a crowded cluster.  A line of the record holds a digest of all
binds, evictions, promises and pod group states, the number of them, and a digest of explanations.
"""

import argparse
import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.checkouts import HERE, environment
from bench.clusters import CONFIGURATIONS, Case
from bench.full_cluster import FullCluster
from bench.policy_clusters import EVICTING, PLUGINS, StillExtender
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.output_files import write_file
from pumice.scenarios.objects import advance
from pumice.scheduler import Scheduler

RECORD: Final = HERE / "bench" / "decisions.json"
"""What all cases decided at commit 774234a6."""
_EVICTING: Final = """actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
    arguments:
      binpack.weight: 2
"""
_NOW: Final = 1768478400.0
_CYCLES: Final = 2
_SIZES: Final = (
    *((120, 300, 20, 400), (300, 200, 1, 600)),  # roomy: nodes, pods, gang, running pods
    *((10, 400, 4, 100), (8, 600, 30, 60)),  # crowded
)


def _cases() -> Iterable[tuple[str, str, Callable[[], list[dict[str, Any]]], dict[str, Any]]]:
    """Yield names, configurations, what makes the objects, and the measured use of nodes."""
    for kind in CONFIGURATIONS:
        for nodes, pods, gang, running in _SIZES:
            few = min(pods, 60) if kind in EVICTING or kind.startswith("extender") else pods
            case = Case(kind, nodes, 0 if "idle" in kind else few, gang, running)
            yield case.name, case.conf, case.objects, case.node_usage
    for name, conf in (("default", DEFAULT_CONF), ("evicting", _EVICTING)):
        yield f"full-{name}", conf, FullCluster(30, 60).objects, {}
        yield f"nearly-full-{name}", conf, FullCluster(30, 60, running_cpu=2.5).objects, {}


def _decide(
    conf: str, objects: Sequence[dict[str, Any]], usage: Mapping[str, Any]
) -> dict[str, Any]:
    """Decide some cycles with the modules that are imported; return the line of a record."""
    services = {"extender": lambda *_: StillExtender()}
    scheduler = Scheduler(parse_conf(conf), plugins=PLUGINS, services=services)
    digest, words = hashlib.sha256(), hashlib.sha256()
    counts: dict[str, list[int]] = {"binds": [], "pipelined": [], "evictions": []}
    state = list(objects)
    for cycle in range(_CYCLES):
        found = scheduler.cycle(state, _NOW + cycle, usage)
        for name, numbers in counts.items():
            numbers.append(len(getattr(found, name)))
        every = [found.to_expect(), found.beneficiaries, found.failures]
        digest.update(json.dumps(every, sort_keys=True).encode())
        words.update(json.dumps(found.explanations, sort_keys=True).encode())
        state = advance(state, found)
    return {"digest": digest.hexdigest()[:16], "words": words.hexdigest()[:8], **counts}


def record(only: str) -> dict[str, Any]:
    """Decide the cases whose names contain a text."""
    logging.getLogger("pumice").addHandler(logging.NullHandler())
    return {
        name: _decide(conf, make(), usage) for name, conf, make, usage in _cases() if only in name
    }


def record_of(checkout: Path, only: str = "") -> dict[str, Any]:
    """Return what the modules of a checkout decide."""
    code = "import json, sys; from bench.decisions import record; "
    code += "json.dump(record(sys.argv[1]), sys.stdout)"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, only],
        check=True,
        stdout=subprocess.PIPE,
        env=environment(checkout),
        cwd=HERE,
    )
    return dict(json.loads(done.stdout))


def differences(known: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return a line for each case that was decided otherwise than is known."""
    return [
        f"{name}: {known.get(name)} before, {line} now"
        for name, line in found.items()
        if line != known.get(name)
    ]


def main() -> None:
    """Write a record or compare with one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, default=HERE, help="the checkout that decides")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", type=Path, metavar="FILE")
    what.add_argument("--check", type=Path, metavar="FILE", default=RECORD)
    args = parser.parse_args()
    found = record_of(args.checkout.resolve(), args.only)
    if args.write:
        lines = [f"{json.dumps(name)}: {json.dumps(line)}" for name, line in found.items()]
        write_file(args.write, "{\n" + ",\n".join(lines) + "\n}\n")
        return
    wrong = differences(json.loads(args.check.read_text()), found)
    print(*wrong, f"{len(found)} cases, {len(wrong)} decided otherwise", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

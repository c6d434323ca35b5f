"""Time whole commands, this checkout against another: ``python -m bench.commands [OTHER]``.

OTHER is the folder of a second checkout, say of an earlier commit.  Both print the same, and
simulations write the same files, before anything is timed; then they run in turns, and the least
CPU seconds of each count, the start of the process included.  ``--traces`` names a folder of
traces, whose first jobs (``--jobs``; 0: all of them) are simulated besides.
"""

import argparse
import json
import resource
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.checkouts import COMMAND, HERE, environment
from bench.clusters import Case

TURNS = 5
JOBS = 500
"""How many jobs of each trace are simulated, unless stated."""


def commands(folder: Path) -> Mapping[str, Sequence[str]]:
    """Write the input of the commands, and return their words by name."""
    return {
        "explain --help": ("explain", "--help"),
        "run, 5,000 gangs of 1": _run(folder, 1),
        "run, 50 gangs of 100": _run(folder, 100),
        "whatif, 20,000 pods": _what_if(folder),
    }


def simulations(traces: Path, jobs: int) -> Mapping[str, Sequence[str]]:
    """Return the arguments that simulate the first jobs of each trace, or all if that is 0."""
    found = {}
    limit = ("--limit", str(jobs)) if jobs else ()
    for trace in sorted(traces.iterdir()):
        if trace.suffix in (".csv", ".gz", ".swf") and "node" not in trace.name:
            nodes = trace.with_name("openb_node_list_all_node.csv")
            cluster = ("--nodes", str(nodes)) if trace.name.startswith("openb") else ()
            found[f"sim {trace.name}"] = ("sim", "--trace", str(trace), *cluster, *limit)
    return found


def _run(folder: Path, gang: int) -> Sequence[str]:
    case = Case("default", 1000, 5000, gang)
    file = folder / f"gangs-of-{gang}.json"
    file.write_text(json.dumps({"objects": case.objects(), "conf": case.conf}))
    return ("run", str(file), "-o", "json")


def _what_if(folder: Path) -> Sequence[str]:
    case = Case("default", 1000, 0, 1, 20000)
    cluster, conf, job = (folder / name for name in ("cluster.json", "scheduler.conf", "job.json"))
    cluster.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": case.objects()}))
    conf.write_text(case.conf)
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    task = {"name": "w", "replicas": 20, "template": {"spec": {"containers": [container]}}}
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "bench"},
        "spec": {"minAvailable": 20, "queue": "q0", "schedulerName": "volcano", "tasks": [task]},
    }
    job.write_text(json.dumps(manifest))
    files = ("-f", str(cluster), "--current-conf", str(conf), "--job", str(job))
    return ("whatif", *files, "-o", "json")


def run(checkout: Path, words: Sequence[str]) -> tuple[dict[str, bytes], float]:
    """Run a command of a checkout; return its output, and its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        where = ("--dir", folder) if words[0] == "sim" else ()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(  # noqa: S603
            [*COMMAND, *words, *where],
            check=True,
            capture_output=True,
            env=environment(checkout),
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        files = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
    files.pop("timing.json", None)
    return files or {"": done.stdout}, cpu


def main() -> None:
    """Time all commands and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", default=HERE, help="another checkout")
    parser.add_argument("--only", default="", help="commands whose name contains this")
    parser.add_argument("--traces", type=Path, help="a folder of traces to simulate")
    parser.add_argument("--jobs", type=int, default=JOBS, help="of each trace; 0: all")
    parser.add_argument("--turns", type=int, default=TURNS)
    args = parser.parse_args()
    print(f"{'command':34} {'other s':>8} {'this s':>8} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        traces = {} if args.traces is None else simulations(args.traces, args.jobs)
        for name, words in {**commands(Path(folder)), **traces}.items():
            if args.only not in name:
                continue
            assert run(args.other, words)[0] == run(HERE, words)[0], f"{name}: answers differ"
            pairs = [(run(args.other, words)[1], run(HERE, words)[1]) for _ in range(args.turns)]
            other, ours = (min(times) for times in zip(*pairs, strict=True))
            print(f"{name:34} {other:8.3f} {ours:8.3f} {other / ours:7.2f}", flush=True)


if __name__ == "__main__":
    main()

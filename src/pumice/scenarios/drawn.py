"""Drawn workloads: many small clusters held against invariants, and the smallest that breaks one.

`draw` states what workloads may look like.  A case that fails is made smaller while it still
fails, and saved as a scenario of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from pumice.api.output_files import write_file
from pumice.api.scenario_values import is_count, mapped, problem, refuse_unknown
from pumice.api.short_forms import WORKLOAD_KEYS, is_resource
from pumice.errors import OutputError
from pumice.scenarios.matrix import values_of

_DRAW: Final = "draw"
_OWN: Final = ("cases", "workloads")
_CASES: Final = 50
_JOBS: Final = "1..6"
_MOST_CASES: Final = 100_000
_MOST_TRIALS: Final = 400
"""Smaller cases that are tried for a counterexample."""
_PLAIN: Final = {"gang": False, "running": False, "priority": None, "preemptable": None, "count": 1}
"""The simplest value of a field; None leaves it out."""

Document = dict[str, Any]
Fails = Callable[[Document], bool]


def is_drawn(document: Mapping[str, Any]) -> bool:
    """Return whether a document states workloads to draw."""
    return _DRAW in document


class Draw:
    """What may be drawn for one document."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        """Read it.

        Raises:
            ScenarioError: it breaks the format, or there is no invariant to hold it against.
        """
        given = mapped(path, _DRAW, document[_DRAW], "fields of workloads with values to draw")
        plain = {key: value for key, value in given.items() if not is_resource(str(key))}
        refuse_unknown(path, _DRAW, plain, (*_OWN, *WORKLOAD_KEYS))
        if not (document.get("always") or document.get("eventually")):
            raise problem(path, "always", None, "invariants for what is drawn")
        cases = given.get("cases", _CASES)
        if not is_count(cases) or not 1 <= cases <= _MOST_CASES:
            raise problem(path, f"{_DRAW}.cases", cases, f"a number up to {_MOST_CASES}")
        self.cases = cases
        self._seed = document.get("seed", 0)
        self._base = {key: value for key, value in document.items() if key != _DRAW}
        self._jobs = values_of(path, f"{_DRAW}.workloads", given.get("workloads", _JOBS))
        self._fields = {
            key: _choices(path, f"{_DRAW}.{key}", value)
            for key, value in given.items()
            if key not in _OWN
        }

    def document(self, number: int) -> Document:
        """Return one case: the same for the same number and seed."""
        from numpy.random import default_rng  # noqa: PLC0415  (few scenarios draw)

        seed = self._seed if is_count(self._seed) else 0
        random = default_rng([abs(int(seed)), number])

        def one_of(values: list[Any]) -> Any:
            return values[int(random.integers(len(values)))]

        jobs = [
            {key: one_of(values) for key, values in self._fields.items()}
            for _ in range(one_of(self._jobs))
        ]
        return {**self._base, "workloads": [*self._base.get("workloads", []), *map(_sound, jobs)]}

    def kept(self) -> int:
        """Return the number of workloads that the scenario itself states: they stay."""
        return len(self._base.get("workloads", []))


def _choices(path: Path, where: str, value: Any) -> list[Any]:
    is_span = isinstance(value, str) and ".." in value
    return values_of(path, where, value) if is_span or isinstance(value, list) else [value]


def _sound(job: Document) -> Document:
    """Return a workload without values that mean nothing there: absent, or more than its pods."""
    pods = job.get("pods", 1)
    fields = {key: value for key, value in job.items() if value is not None}
    for key in ("gang", "running"):
        value = fields.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            fields[key] = min(value, pods)
    return fields


def with_room(document: Document, has_room: Callable[[Document], bool], kept: int) -> Document:
    """Return a case in which workloads without room wait instead of running."""
    jobs = document["workloads"]
    done = jobs[:kept]
    for job in jobs[kept:]:
        fits = not job.get("running") or has_room({**document, "workloads": [*done, job]})
        done = [*done, job if fits else {**job, "running": False}]
    return {**document, "workloads": done}


# Smaller


def shrunk(document: Document, fails: Fails, kept: int) -> Document:
    """Return a smaller case that fails too: fewer workloads, fewer pods, plainer ones."""
    trials = 0
    found = True
    while found and trials < _MOST_TRIALS:
        found = False
        for smaller in _smaller(document, kept):
            trials += 1
            if fails(smaller):
                document, found = smaller, True
                break
            if trials >= _MOST_TRIALS:
                break
    return document


def _smaller(document: Document, kept: int) -> Iterator[Document]:
    jobs = document["workloads"]
    for size in (len(jobs) // 2, 1):
        for i in range(kept, len(jobs), max(size, 1)):
            yield {**document, "workloads": [*jobs[:i], *jobs[i + max(size, 1) :]]}
    for i in range(kept, len(jobs)):
        for job in _plainer(jobs[i]):
            yield {**document, "workloads": [*jobs[:i], job, *jobs[i + 1 :]]}


def _plainer(job: Document) -> Iterator[Document]:
    pods = job.get("pods", 1)
    for number in dict.fromkeys((1, pods // 2, pods - 1)):
        if 1 <= number < pods:
            yield _sound({**job, "pods": number})
    for key, value in _PLAIN.items():
        if key in job and job[key] != value:
            yield _sound({**job, key: value})
    for key in ("cpu", "gpu"):
        if is_count(job.get(key)) and job[key] > 1:
            yield {**job, key: 1}


def save(document: Document, path: Path, name: str) -> str:
    """Write a case as a scenario beside the one that drew it; return words on where it is."""
    file = path.with_name(f"{path.stem}-found.yaml")
    text = yaml.safe_dump(
        {**document, "name": f"{name}, smallest case found"}, sort_keys=False, width=100
    )
    try:
        write_file(file, text)
    except (OutputError, OSError) as error:
        return f"it could not be saved: {error}"
    return f"saved as {file}"

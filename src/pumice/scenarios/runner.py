"""Scenario files, run one or many at a time and compared with their expectations."""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Literal
from xml.etree import ElementTree as ET

from pumice.api.conf import SchedulerConf
from pumice.api.named_files import read_conf_file
from pumice.api.output_files import make_folder, write_file
from pumice.api.scenario_values import with_line
from pumice.api.shown_text import shown
from pumice.api.wording import counted, crash_text
from pumice.cluster.services import SERVICES
from pumice.errors import PumiceError, ScenarioError
from pumice.processes import worker_processes
from pumice.scenarios.cases import Case, cases_from
from pumice.scenarios.checking import differences_of
from pumice.scenarios.compare import CompareOptions, Difference
from pumice.scenarios.cycles import CycleScheduler, PlayedCycle, SchedulerFactory, play
from pumice.scenarios.drawn import Document, save, shrunk
from pumice.scenarios.scenario import (
    SUFFIXES,
    Scenario,
    are_manifests,
    is_scenario,
    located_scenario,
    read_document,
)
from pumice.scenarios.suspicious_objects import mistakes

__all__ = [
    "CaseResult",
    "CycleScheduler",
    "PlayedCycle",
    "ScenarioFile",
    "SchedulerFactory",
    "check",
    "default_scheduler",
    "find_scenarios",
    "play",
    "run_file",
    "run_files",
    "run_scenario",
]

Outcome = Literal["passed", "failed", "error"]

_HOW_TO_EXPECT = "plain manifests state none; pass the output of 'pumice run -o yaml' as --expect"


@dataclass(frozen=True)
class ScenarioFile:
    """A file to run; one that was only found in a folder may turn out to be something else."""

    path: Path
    named: bool = False
    conf: Path | None = None
    """A configuration to use in place of its own."""
    mutated: tuple[str, str] | None = None
    """The text of a configuration, and another to use in its place."""


@dataclass(frozen=True)
class CaseResult:
    """The outcome for one file; `differences` also holds the text of an error."""

    path: Path
    outcome: Outcome
    differences: tuple[str, ...] = ()
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    """Probable mistakes in the file."""
    name: str = ""
    """What the scenario calls itself."""
    failures: tuple[Difference, ...] = ()
    """The differences with what they are about and why; none for an error."""
    words: str = ""
    """Which combination of a matrix it is."""


def default_scheduler(
    conf: SchedulerConf, seed: int, *, plugins: Sequence[str] = ()
) -> CycleScheduler:
    """Make Pumice's own scheduler; ``plugins`` are files or modules as for ``--plugin``."""
    from pumice.framework.registry import load_plugins  # noqa: PLC0415
    from pumice.scheduler import Scheduler  # noqa: PLC0415  (the deciding core loads NumPy)

    return Scheduler(conf, seed=seed, plugins=load_plugins(plugins), services=SERVICES)


def find_scenarios(
    paths: Iterable[Path], substring: str = "", conf: Path | None = None
) -> list[ScenarioFile]:
    """List the files to run, folders walked in name order, each file once."""
    found: dict[Path, ScenarioFile] = {}
    for path in paths:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
            candidates = [ScenarioFile(p, conf=conf) for p in sorted(inside)]
        else:
            candidates = [ScenarioFile(path, named=True, conf=conf)]
        for candidate in candidates:
            if substring in str(candidate.path):
                found.setdefault(candidate.path, candidate)
    return list(found.values())


def check(
    scenario: Scenario, make_scheduler: SchedulerFactory, options: CompareOptions
) -> list[str]:
    """Run a scenario and return its differences.

    Raises:
        ScenarioError: The scenario expects nothing, so that it could not fail.
    """
    return [each.text for each in differences_of(scenario, make_scheduler, options)]


def run_file(
    file: ScenarioFile, make_scheduler: SchedulerFactory, options: CompareOptions
) -> list[CaseResult]:
    """Run the cases of one file; any failure becomes the result of this file."""
    start = perf_counter()
    results: list[CaseResult] = []
    try:
        for case in cases_in(file):
            result = run_case(case, make_scheduler, options)
            spent = perf_counter() - start
            results.append(replace(result, seconds=spent, words=case.words))
            start = perf_counter()
    except PumiceError as error:
        return [CaseResult(file.path, "error", (str(error),), perf_counter() - start)]
    except Exception as error:  # noqa: BLE001  (a crash is the result of this file, not of the run)
        return [CaseResult(file.path, "error", (crash_text(error),), perf_counter() - start)]
    return results


def cases_in(file: ScenarioFile) -> Iterator[Case]:
    """Read a file; there is no case if it was only found in a folder and is something else.

    Raises:
        InputError: It cannot be read, or breaks the format.
    """
    document = read_document(file.path)
    if not file.named and not is_scenario(document):
        return
    if are_manifests(document):
        raise ScenarioError(
            wanted="expectations", field="expect", file=str(file.path), hint=_HOW_TO_EXPECT
        )
    for case in cases_from(document, file.path):
        scenario = case.scenario
        if file.conf is not None:
            text, source = read_conf_file(file.conf)
            scenario = replace(scenario, conf=text, conf_source=source)
        if file.mutated is not None and scenario.conf == file.mutated[0]:
            scenario = replace(scenario, conf=file.mutated[1])
        yield replace(case, scenario=scenario)


def run_case(case: Case, make_scheduler: SchedulerFactory, options: CompareOptions) -> CaseResult:
    """Run one case; of drawn ones the first that fails is made smaller and saved."""
    if case.draw is None:
        return run_scenario(case.scenario, make_scheduler, options)
    quick = replace(options, explained=False)
    result = CaseResult(case.scenario.path, "passed")
    for number, (document, scenario) in enumerate(case.drawn(), start=1):
        result = run_scenario(scenario, make_scheduler, quick)
        if result.outcome == "failed":
            return _counterexample(case, document, number, make_scheduler, options)
        if result.outcome == "error":
            return result
    return replace(result, warnings=(), name="")


def _counterexample(
    case: Case,
    document: Document,
    number: int,
    make_scheduler: SchedulerFactory,
    options: CompareOptions,
) -> CaseResult:
    """Return the result of the smallest case that fails, saved as a scenario beside its file."""
    path, draw, quick = case.scenario.path, case.draw, replace(options, explained=False)

    def scenario_of(smaller: Document) -> Scenario:
        return replace(located_scenario(smaller, path), conf=case.scenario.conf)

    def fails(smaller: Document) -> bool:
        try:
            scenario = scenario_of(smaller)
        except ScenarioError:  # no room, for instance
            return False
        return run_scenario(scenario, make_scheduler, quick).outcome == "failed"

    smallest = shrunk(document, fails, draw.kept() if draw is not None else 0)
    result = run_scenario(scenario_of(smallest), make_scheduler, options)
    where = f"; {save(smallest, path, case.scenario.name)}" if options.explained else ""
    jobs = counted(len(smallest["workloads"]), "workload")
    text = f"drawn case {number}, made as small as it fails: {jobs}{where}"
    first = Difference(text, tuple(f"{one}" for one in smallest["workloads"]))
    return replace(
        result,
        differences=(text, *result.differences),
        failures=(first, *result.failures),
    )


def run_scenario(
    scenario: Scenario, make_scheduler: SchedulerFactory, options: CompareOptions
) -> CaseResult:
    """Run one scenario; any failure becomes its result."""
    start = perf_counter()
    name = "" if scenario.name == scenario.path.stem else scenario.name
    result = CaseResult(scenario.path, "error", name=name)
    try:
        found = tuple(differences_of(scenario, make_scheduler, options))
        result = replace(
            result,
            outcome="failed" if found else "passed",
            differences=tuple(each.text for each in found),
            warnings=tuple(f"{scenario.line(n)}: {text}" for n, text in mistakes(scenario.objects)),
            failures=found,
        )
    except ScenarioError as error:
        result = replace(result, differences=(str(with_line(error, scenario.path)),))
    except PumiceError as error:
        result = replace(result, differences=(str(error),))
    except Exception as error:  # noqa: BLE001  (a crash is the result of this scenario)
        result = replace(result, differences=(crash_text(error),))
    return replace(result, seconds=perf_counter() - start)


# starting a worker costs about as much as a few dozen small scenarios
_WORTH_A_WORKER = 24
_LARGEST_CHUNK = 16


def run_files(
    files: Sequence[ScenarioFile],
    *,
    make_scheduler: SchedulerFactory = default_scheduler,
    options: CompareOptions | None = None,
    jobs: int | None = None,
    stop_early: bool = False,
) -> Generator[CaseResult, None, None]:
    """Run files and yield their results in the given order, non-scenarios left out.

    ``make_scheduler`` is called once for each file, in the process that runs it; of ``jobs``
    processes None means the number of CPUs; ``stop_early`` ends after the first failure.
    """
    options = options or CompareOptions()
    workers = min(jobs or os.cpu_count() or 1, 1 + len(files) // _WORTH_A_WORKER)
    results = (
        _run_here(files, make_scheduler, options)
        if workers < 2
        else _run_in_processes(files, make_scheduler, options, workers)
    )
    for result in results:
        yield result
        if stop_early and result.outcome != "passed":
            return


def _run_here(
    files: Iterable[ScenarioFile], make_scheduler: SchedulerFactory, options: CompareOptions
) -> Iterator[CaseResult]:
    for file in files:
        yield from run_file(file, make_scheduler, options)


def _run_in_processes(
    files: Sequence[ScenarioFile],
    make_scheduler: SchedulerFactory,
    options: CompareOptions,
    workers: int,
) -> Iterator[CaseResult]:
    size = max(1, min(_LARGEST_CHUNK, len(files) // (4 * workers)))
    chunks = [files[i : i + size] for i in range(0, len(files), size)]
    with worker_processes(workers) as pool:
        running = [pool.submit(_run_chunk, chunk, make_scheduler, options) for chunk in chunks]
        for chunk, future in zip(chunks, running, strict=True):
            yield from _results(chunk, future, make_scheduler, options)


def _results(
    chunk: Sequence[ScenarioFile],
    future: "Future[list[CaseResult]]",
    make_scheduler: SchedulerFactory,
    options: CompareOptions,
) -> list[CaseResult]:
    """Collect a chunk; if a worker died, find the file at fault by running each one alone."""
    try:
        return future.result()
    except BrokenProcessPool:
        return [one for file in chunk for one in _run_alone(file, make_scheduler, options)]


def _run_chunk(
    files: Sequence[ScenarioFile], make_scheduler: SchedulerFactory, options: CompareOptions
) -> list[CaseResult]:
    return [one for file in files for one in run_file(file, make_scheduler, options)]


def _run_alone(
    file: ScenarioFile, make_scheduler: SchedulerFactory, options: CompareOptions
) -> list[CaseResult]:
    with worker_processes(1) as pool:
        try:
            return pool.submit(run_file, file, make_scheduler, options).result()
        except BrokenProcessPool:
            return [CaseResult(file.path, "error", ("the process died while running this file",))]


def lines_of(result: CaseResult) -> list[str]:
    """Return what is wrong, a line for each difference, each followed by its reasons."""
    if not result.failures:
        return [*result.differences]
    return [
        line
        for each in result.failures
        for line in (each.text, *(f"  because {reason}" for reason in each.because))
    ]


def junit_xml(results: Sequence[CaseResult]) -> str:
    """Return a document with one test case for each file; the class name is its folder."""
    suite = ET.Element(
        "testsuite",
        name="pumice",
        tests=str(len(results)),
        failures=str(sum(result.outcome == "failed" for result in results)),
        errors=str(sum(result.outcome == "error" for result in results)),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=shown(str(result.path.parent)),
            name=shown(f"{result.path.name}{f' [{result.words}]' if result.words else ''}"),
            time=f"{result.seconds:.3f}",
        )
        if result.outcome in {"failed", "error"}:
            tag = "failure" if result.outcome == "failed" else "error"
            first = result.differences[0] if result.differences else ""
            message = f"{result.name}: {first}" if result.name else first
            lines = "\n".join(map(shown, lines_of(result)))
            ET.SubElement(case, tag, message=shown(message)).text = lines
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def write_junit(results: Sequence[CaseResult], path: Path) -> None:
    """Write the document to a file, creating its folder if needed."""
    make_folder(path.parent)
    write_file(path, junit_xml(results))

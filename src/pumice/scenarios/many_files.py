"""Run many scenario files, in several processes; for `pumice test`."""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

from pumice.processes import worker_processes
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.runner import (
    CaseResult,
    ScenarioFile,
    SchedulerFactory,
    default_scheduler,
    run_file,
)

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
        if result.outcome != "skipped":
            yield result
            if stop_early and result.outcome != "passed":
                return


def _run_here(
    files: Iterable[ScenarioFile], make_scheduler: SchedulerFactory, options: CompareOptions
) -> Iterator[CaseResult]:
    for file in files:
        yield run_file(file, make_scheduler, options)


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
        return [_run_alone(file, make_scheduler, options) for file in chunk]


def _run_chunk(
    files: Sequence[ScenarioFile], make_scheduler: SchedulerFactory, options: CompareOptions
) -> list[CaseResult]:
    return [run_file(file, make_scheduler, options) for file in files]


def _run_alone(
    file: ScenarioFile, make_scheduler: SchedulerFactory, options: CompareOptions
) -> CaseResult:
    with worker_processes(1) as pool:
        try:
            return pool.submit(run_file, file, make_scheduler, options).result()
        except BrokenProcessPool:
            return CaseResult(file.path, "error", ("the process died while running this file",))

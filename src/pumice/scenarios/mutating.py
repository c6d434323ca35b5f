"""Which changes of the configurations of tests no test notices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pumice.api.conf import parse_conf
from pumice.errors import PumiceError, ScenarioError, Words
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.cycles import SchedulerFactory
from pumice.scenarios.mutants import Mutant, mutants_of
from pumice.scenarios.runner import ScenarioFile, cases_in, run_files


@dataclass(frozen=True, kw_only=True)
class MutationResult:
    """One change of a configuration, and the first test that fails with it."""

    conf: str
    """The place of the configuration."""
    mutant: Mutant
    tests: int
    """How many files use the configuration."""
    noticed_by: Path | None = None

    def to_data(self) -> dict[str, object]:
        """Return it as JSON data."""
        return {
            "conf": self.conf,
            "line": self.mutant.line,
            "change": self.mutant.change,
            "tests": self.tests,
            "noticedBy": None if self.noticed_by is None else str(self.noticed_by),
        }


@dataclass
class _Used:
    """A configuration and the files that use it."""

    place: str
    files: dict[Path, ScenarioFile] = field(default_factory=dict)


def mutation_results(
    files: Sequence[ScenarioFile],
    *,
    make_scheduler: SchedulerFactory,
    options: CompareOptions,
    jobs: int | None = None,
) -> Iterator[MutationResult]:
    """Yield the changes of every configuration that the files use.

    A change with which the configuration is refused is left out: nobody could apply it.

    Raises:
        ScenarioError: a test fails without any change, so it could notice none.
    """
    options = replace(options, explained=False)
    for result in run_files(files, make_scheduler=make_scheduler, options=options, jobs=jobs):
        if result.outcome != "passed":
            raise ScenarioError(
                wanted="tests that pass before the configuration is changed",
                found=Words(result.differences[0] if result.differences else result.outcome),
                file=str(result.path),
            )
    for text, used in _configurations(files).items():
        for mutant in mutants_of(text, used.place):
            if _is_refused(mutant, make_scheduler):
                continue
            changed = [replace(each, mutated=(text, mutant.text)) for each in used.files.values()]
            results = run_files(
                changed, make_scheduler=make_scheduler, options=options, jobs=jobs, stop_early=True
            )
            noticed = [each.path for each in results if each.outcome != "passed"]
            yield MutationResult(
                conf=used.place,
                mutant=mutant,
                tests=len(used.files),
                noticed_by=noticed[0] if noticed else None,
            )


def _configurations(files: Sequence[ScenarioFile]) -> dict[str, _Used]:
    """Return the configurations of the files, by their text."""
    found: dict[str, _Used] = {}
    for file in files:
        for case in cases_in(file):
            source = case.scenario.conf_source
            found.setdefault(case.scenario.conf, _Used(source)).files[file.path] = file
    return found


def _is_refused(mutant: Mutant, make_scheduler: SchedulerFactory) -> bool:
    try:
        make_scheduler(parse_conf(mutant.text), 0)
    except PumiceError:
        return True
    return False

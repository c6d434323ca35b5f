"""Running tests on a mutant: in a fork of a process that has collected them, or in a new one.

A change inside functions is made in memory: the fork gives the functions their new code, and no
test has to be imported again.  A change of a module's own statements needs a new process.
"""

import contextlib
import gc
import importlib
import inspect
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

import pytest

from tools import reach
from tools.mutations import AREAS, PACKAGE, ROOT, Mutant, files_of
from tools.reach import Reach

_MEMORY: Final = 8 << 30
"""Bytes that the tests of a mutant may take."""
_START_S: Final = 120.0
"""Seconds in which a new process has certainly imported some tests."""
_PASSED, _FAILED, _IMPOSSIBLE = range(3)
OPTIONS: Final = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")


def replace_code(before: CodeType, after: CodeType) -> bool:
    """Do as ``replace_codes`` for one file."""
    return replace_codes([(before, after)])


def replace_codes(files: Sequence[tuple[CodeType, CodeType]]) -> bool:
    """Return whether the functions of imported files could get their new code."""
    codes: dict[tuple[str, str, int], CodeType] = {}
    for before, after in files:
        pairs: list[tuple[CodeType, CodeType]] = []
        if not _collect(before, after, pairs):
            return False
        codes |= {_name(old): new for old, new in pairs}
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        if new := codes.get(_name(function.__code__)):
            try:
                function.__code__ = new
            except ValueError:  # it no longer uses a variable of the function around it
                return False
    return True


def _name(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _collect(old: CodeType, new: CodeType, pairs: list[tuple[CodeType, CodeType]]) -> bool:
    """Pair the functions that differ; return False if statements outside functions do."""
    if old == new:
        return True
    is_function = bool(old.co_flags & inspect.CO_OPTIMIZED)
    if is_function:
        pairs.append((old, new))
    elif _own(old) != _own(new):
        return False
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]):  # the change dropped a function inside this one
        return is_function
    return all(_collect(one, two, pairs) for one, two in zip(*inner, strict=True))


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a body does itself; places in the text, which a change moves, do not count."""
    kept = [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, code.co_names, kept


def compiled(file: Path, source: str | None = None) -> CodeType:
    """Compile a file, or another text in its place."""
    return compile(source or file.read_text("utf-8"), str(file), "exec")


class ForkedTrials:
    """A plugin of pytest that tries mutants instead of running the tests once."""

    def __init__(
        self, mutants: Sequence[Mutant], limit_s: float, report: Callable[[Mutant, bool], None]
    ) -> None:
        self._mutants, self._limit_s, self._report = mutants, limit_s, report
        self._reach = Reach()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """End property tests at the first example that fails: none has to be the simplest."""
        from hypothesis import Phase, settings  # noqa: PLC0415  # pytest must import it first

        phases = [phase for phase in settings().phases if phase is not Phase.shrink]
        settings.register_profile("mutants", settings(phases=phases))
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out which tests reach which mutant, then try each mutant."""
        import_all({*files_of(AREAS), *(mutant.file for mutant in self._mutants)})
        kept = reach.kept_files(session.items)
        unknown = {file: own for file, own in kept.items() if not reach.knows(file, own)}
        if unknown:
            _in_fork(lambda: _probe(unknown))
        self._reach = reach.load(kept)
        items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            chosen = self._chosen(items, self._reach.of(mutant))
            status = _in_fork(lambda: self._try(session, mutant, chosen)) if chosen else _IMPOSSIBLE  # noqa: B023
            if status == _IMPOSSIBLE:
                chosen = self._chosen(items, self._reach.of_file(mutant))
                seconds = sum(self._reach.times[one.nodeid] for one in chosen)
                failed = in_new_process(mutant, chosen, seconds)
            else:
                failed = status != _PASSED
            self._report(mutant, failed)
        return True

    def _chosen(self, items: dict[str, pytest.Item], names: list[str]) -> list[pytest.Item]:
        return [items[name] for name in self._reach.within(names, self._limit_s)]

    def _try(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> int:
        if not replace_code(compiled(mutant.file), compiled(mutant.file, mutant.source())):
            return _IMPOSSIBLE
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        for item, following in zip(items, [*items[1:], None], strict=True):
            _end_after(5.0 + 5.0 * self._reach.times[item.nodeid])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return _FAILED
        return _PASSED


def import_all(files: Iterable[Path]) -> None:
    """Import files now: what a test imports later would be unchanged, and without probes."""
    for file in files:
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        with contextlib.suppress(ImportError):  # it needs what is not installed
            importlib.import_module(name)


def _probe(tests: dict[Path, list[pytest.Item]]) -> int:
    """Run the tests of some files with probes in the whole package."""
    imported = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    files = [file for file in PACKAGE.rglob("*.py") if str(file) in imported]
    replace_codes([(compiled(file), reach.probed(file)) for file in files])
    for kept, items in tests.items():
        reach.run_with_probes(items, kept)
    return _PASSED


def _end_after(seconds: float) -> None:
    """End this process after some CPU time, or much later by the clock."""
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 12.0 * seconds)


def _in_fork(run: Callable[[], int]) -> int:
    """Run something in a fork without output; return its status, failed if it ended otherwise."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        with contextlib.suppress(BaseException):
            os._exit(run())
        os._exit(_FAILED)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests have started
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else _FAILED


def in_new_process(mutant: Mutant, tests: Sequence[pytest.Item], seconds: float) -> bool:
    """Return whether tests fail on a copy with a mutant, or take much more than some seconds."""
    if not tests:
        return False
    with tempfile.TemporaryDirectory(prefix="pumice-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        changed = copy / mutant.file.relative_to(ROOT / "src")
        changed.write_text(mutant.source(), encoding="utf-8")
        # Without coverage: the lines of a copy that is gone cannot be reported.
        env = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
        env |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        names = [f"{one.path}::{one.nodeid.split('::', 1)[1]}" for one in tests]
        command = [sys.executable, "-m", "pytest", *OPTIONS, "-x", *names]
        limit_s = _START_S + 12.0 * seconds  # by the clock: other processes may run
        try:
            done = subprocess.run(  # noqa: S603
                command, cwd=ROOT, env=env, capture_output=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return True
    return done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

"""Settings for all tests: the same hypothesis examples everywhere, tables checked all along."""

import asyncio
import gc
import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, settings

from pumice import logs
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.framework.session import Session
from tests import checking

settings.register_profile(
    "pumice",
    deadline=None,
    derandomize=True,
    max_examples=100,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],  # explaining traces every line
)
settings.register_profile(  # make properties
    "fresh", settings.get_profile("pumice"), derandomize=False, print_blob=True
)
settings.load_profile("pumice")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` is short; continuous integration and a file run by hand leave nothing out."""
    parser.addoption("--short", action="store_true", help="leave slow tests and most draws out")


@pytest.hookimpl(tryfirst=True)  # before they are shuffled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked ``slow``, and all but each nth case of ``sample(n)``."""
    if not config.getoption("--short"):
        return
    seen: Counter[str] = Counter()
    left: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        mark = item.get_closest_marker("sample")
        if item.get_closest_marker("slow") or (mark and seen[test] % mark.args[0]):
            left.append(item)
        seen[test] += 1
        _draw_less(item)
    out = set(left)
    items[:] = [item for item in items if item not in out]
    config.hook.pytest_deselected(items=left)


def _draw_less(item: pytest.Item) -> None:
    """Draw a third of the examples of a property: each run draws the same, so more find little."""
    function = getattr(item, "obj", None)
    given = getattr(function, "_hypothesis_internal_use_settings", None)
    if given is not None and not hasattr(function, "_draws_less"):
        fewer = max(given.max_examples // 3, 2)
        function._hypothesis_internal_use_settings = settings(given, max_examples=fewer)  # type: ignore[union-attr]
        function._draws_less = True  # type: ignore[union-attr]


def pytest_collection_finish() -> None:
    """Search seldom for unused objects, and never among the tests themselves: it took a sixth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run a test that is a coroutine on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_runtest_setup() -> None:
    """Each test is a process of its own to what is logged once a process."""
    logs._WARNED.clear()


def _open(open_session: Any) -> Any:
    def checked(self: Any, snapshot: Any, *args: Any, **kwargs: Any) -> None:
        if checking.enabled:
            check(snapshot)
        open_session(self, snapshot, *args, **kwargs)

    return checked


def _release(release_session: Any) -> Any:
    def checked(self: Any) -> None:
        if checking.enabled:
            check(self)
        release_session(self)
        if checking.enabled:
            check(self)

    return checked


@pytest.fixture(autouse=True, scope="session")
def tables_agree_around_every_session() -> Iterator[Any]:
    """Check a snapshot before a session, after its actions, and once it is released."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "__init__", _open(Session.__init__))
        patch.setattr(Snapshot, "release_session", _release(Snapshot.release_session))
        yield

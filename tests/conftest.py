"""Settings for all tests: the same hypothesis examples everywhere, tables checked all along."""

import asyncio
import gc
import inspect
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

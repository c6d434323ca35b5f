"""What tests of single plugins share."""

from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session


@pytest.fixture
def open_session() -> Any:
    """Return a function that opens a session with some plugins, in one tier, on some manifests."""

    def opened(objects: Any, *plugins: Any, **switches: Any) -> Any:
        snapshot = Ingest(Snapshot()).load(map(from_manifest, objects))
        tier = [Enabled(plugin, switches) for plugin in plugins]
        ssn = Session(snapshot, [tier], now=0.0)
        assert not ssn.failures.errors
        return ssn

    return opened

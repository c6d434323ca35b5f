"""Every built-in plugin keeps the promises that are asked of foreign ones."""

import pytest

from pumice.plugins import builtin_plugins
from pumice.testing.conformance import check_plugin

WRITTEN = [cls for cls in builtin_plugins().values() if "Not written yet" not in cls.__doc__]


@pytest.mark.parametrize("cls", WRITTEN, ids=lambda cls: cls.name)
def test_a_built_in_plugin_keeps_its_promises(cls):
    check_plugin(cls)

"""The command `pumice` of this checkout or another, started as an installed one is."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-c", "from pumice.cli.entry import main; main()")


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which the command runs the modules of a checkout.

    Modules are compiled once, as they are in an installation, whatever the caller's settings.
    """
    return {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "pumice-bench-bytecode"),
    }

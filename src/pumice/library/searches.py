"""A search for a better configuration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pumice.framework.registry import PluginSource
from pumice.library.arguments import PATHS, check_kind
from pumice.tuning.search import Tuned
from pumice.tuning.search import tune as search


def tune(
    space: str | Path | Mapping[str, Any],
    *,
    trials: int | None = None,
    jobs: int = 1,
    dask: str = "",
    seed: int = 0,
    plugins: Sequence[PluginSource] = (),
) -> Tuned:
    """Search the configurations that a file describes for the best one.

    Args:
        space: The file, as for ``pumice tune``, or its content.
        trials: How many configurations to try; by default as the file states.
        jobs: Processes that measure.
        dask: Address of a Dask cluster that measures instead.
        seed: Of the proposals.
        plugins: Further plugins: classes, files or modules.
    """
    check_kind("space", space, (*PATHS, Mapping), "the file of a search, or its content")
    given = space if isinstance(space, Mapping) else Path(space)
    return search(given, trials=trials, jobs=jobs, dask=dask, seed=seed, plugins=plugins)

"""A search for a better configuration."""

from pathlib import Path

from pumice.library.arguments import PATHS, check_kind
from pumice.tuning.search import Tuned
from pumice.tuning.search import tune as search


def tune(
    space: str | Path, *, trials: int | None = None, jobs: int = 1, dask: str = "", seed: int = 0
) -> Tuned:
    """Search the configurations that a file describes for the best one.

    Args:
        space: The file, as for ``pumice tune``.
        trials: How many configurations to try; by default as the file states.
        jobs: Processes that measure.
        dask: Address of a Dask cluster that measures instead.
        seed: Of the proposals.
    """
    check_kind("space", space, PATHS, "the file of a search")
    return search(Path(space), trials=trials, jobs=jobs, dask=dask, seed=seed)

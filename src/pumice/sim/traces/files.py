"""The forms a workload can be written in, chosen by the name of the file."""

import gzip
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file
from pumice.errors import InputError
from pumice.sim.options import WRITTEN
from pumice.sim.traces.job_table_file import as_csv, write_parquet
from pumice.sim.traces.manifest_file import as_manifests
from pumice.sim.traces.swf_file import as_swf
from pumice.sim.traces.uniform_jobs import losses, losses_in_swf, losses_in_table, lost_date
from pumice.sim.workload import Workload

_SUFFIXES: Final = {
    ".csv": "jobs", ".parquet": "jobs", ".swf": "swf",
    ".yaml": "manifests", ".yml": "manifests", ".json": "manifests",
}  # fmt: skip


def form_of(path: Path, named: str = "") -> str:
    """Choose how to write a file: as named, or by its suffix.

    Raises:
        InputError: Its suffix stands for none.
    """
    form = named or _SUFFIXES.get(_suffix(path), "")
    if form not in WRITTEN:
        wanted = f"a name that ends in {', '.join(_SUFFIXES)}, with .gz or without"
        raise InputError(wanted=wanted, found=path.name, hint="or choose with --as")
    return form


def _suffix(path: Path) -> str:
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def write_trace(workload: Workload, path: Path, named: str = "") -> list[str]:
    """Write a workload; return what the form cannot hold, in words.

    Raises:
        InputError: The form does not follow from the name.
        OutputError: The file cannot be written.
    """
    form = form_of(path, named)
    if form == "jobs" and path.suffix == ".parquet":
        write_parquet(workload, path)
        return [*losses(workload), *losses_in_table(workload)]
    if form == "manifests":
        text = as_manifests(workload, as_json=_suffix(path) == ".json")
    else:
        text = as_csv(workload) if form == "jobs" else as_swf(workload)
    data = text.encode()
    write_file(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    if form == "manifests":
        return lost_date(workload)
    more = losses_in_table if form == "jobs" else losses_in_swf
    return [*losses(workload), *more(workload)]

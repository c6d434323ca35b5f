"""What a release is made of: wheels without and with the kernel, source archive and chart.

Every archive has the same bytes whenever it is made of the same commit by the same compiler.
"""

import base64
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file
from pumice.kernel.library import build as build_kernel

ROOT: Final = Path(__file__).resolve().parents[1]
CHART: Final = ROOT / "deploy" / "helm" / "pumice"
COMPILERS: Final[Mapping[str, str]] = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu-gcc",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu-gcc",
}
"""Platforms of the wheels with a kernel: it needs nothing of glibc that is newer than 2.17."""
_ANY: Final = "py3-none-any"
_KERNEL: Final = "pumice/kernel/kernel.so"


def build(folder: Path, epoch: int, *options: str) -> list[Path]:
    """Build wheel and source archive, unless options choose one of them."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.resolve()), *options]
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)  # noqa: S603
    return sorted((*folder.glob("*.whl"), *folder.glob("*.tar.gz")))


def kernel_wheels(wheel: Path) -> Iterator[Path]:
    """Write beside a wheel those with a kernel, for each platform that has a compiler here."""
    for platform, compiler in COMPILERS.items():
        if found := shutil.which(compiler):
            yield _with_kernel(wheel, platform, found)


def missing_platforms() -> list[str]:
    """Name the platforms without a compiler here: their wheels are made elsewhere."""
    return [platform for platform, name in COMPILERS.items() if not shutil.which(name)]


def _with_kernel(wheel: Path, platform: str, compiler: str) -> Path:
    tag = f"py3-none-{platform}"
    made = wheel.with_name(wheel.name.replace(_ANY, tag))
    with zipfile.ZipFile(wheel) as old:
        entries = {info.filename: old.read(info) for info in old.infolist()}
        time = old.infolist()[0].date_time
    record = next(name for name in entries if name.endswith(".dist-info/RECORD"))
    about = record.replace("RECORD", "WHEEL")
    entries[about] = (
        entries[about]
        .replace(_ANY.encode(), tag.encode())
        .replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
    )
    entries[_KERNEL] = _kernel(compiler)
    lines = [_line(name, text) for name, text in entries.items() if name != record]
    entries[record] = "".join((*lines, f"{record},,\n")).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as new:
        for name, text in sorted(entries.items(), key=lambda one: ".dist-info/" in one[0]):
            info = zipfile.ZipInfo(name, time)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            new.writestr(info, text)
    write_file(made, content.getvalue())
    return made


def _line(name: str, content: bytes) -> str:
    """Return the entry of a file in the record of its wheel."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def _kernel(compiler: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.so"
        build_kernel(file, compiler)
        return file.read_bytes()


def chart(folder: Path, version: str, epoch: int) -> Path:
    """Write the chart as `helm package` does."""
    made = folder / f"pumice-{version}.tgz"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for file in _chart_files():
            info = tarfile.TarInfo(f"pumice/{file.relative_to(CHART).as_posix()}")
            info.size, info.mtime, info.mode = file.stat().st_size, epoch, 0o644
            with file.open("rb") as opened:
                archive.addfile(info, opened)
    write_file(made, gzip.compress(content.getvalue(), mtime=epoch))
    return made


def _chart_files() -> list[Path]:
    """List the files of the chart, its description first: readers of charts look for it there."""
    files = sorted(file for file in CHART.rglob("*") if file.is_file())
    ignored = (CHART / ".helmignore").read_text(encoding="utf-8").split()
    files = [file for file in files if not any(file.match(pattern) for pattern in ignored)]
    return sorted(files, key=lambda file: file != CHART / "Chart.yaml")

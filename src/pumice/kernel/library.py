"""The compiled kernel as a library: found beside this module, or built once with a C compiler.

Without a compiler there is none: everything works the same, only slower, and says so once.
``PUMICE_KERNEL=off`` does without it.  ``python -m pumice.kernel.library`` builds it beside this
module, for images that have no compiler.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from pumice import logs

_LOG: Final = logs.get("kernel")
_SOURCE: Final = Path(__file__).with_name("kernel.c")
_BESIDE: Final = Path(__file__).with_name("kernel.so")
_FLAGS: Final = ("-O2", "-ffp-contract=off", "-fPIC", "-shared")
_LIMIT_S: Final = 60.0
_INT, _POINTER = ctypes.c_int64, ctypes.c_void_p
_CALLS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "kernel_open": (_POINTER, (_INT,) * 5 + (_POINTER,) * 4),
    "kernel_group": (None, (_POINTER, _POINTER, _INT)),
    "kernel_class": (_INT, (_POINTER,) * 11 + (_INT,) * 3),
    "kernel_counted": (None, (_POINTER, _INT, _POINTER, _INT)),
    "kernel_pick": (_INT, (_POINTER, _POINTER, _INT) + (_POINTER,) * 5),
    "kernel_values": (_POINTER, (_POINTER, _INT)),
    "kernel_moved": (None, (_POINTER, _POINTER, _INT)),
    "kernel_close": (None, (_POINTER,)),
}
"""Functions: what they return, and their arguments."""


@cache
def library() -> ctypes.CDLL | None:
    """Return the kernel, built if need be; None if it is switched off or cannot be built."""
    if os.environ.get("PUMICE_KERNEL", "").lower() in ("off", "0", "no", "false"):
        return None
    try:
        return _loaded(_BESIDE if _BESIDE.exists() else _kept())
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        _LOG.warning("placing runs without its compiled kernel, slower", error=error)
        return None


def _loaded(file: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(file))
    for name, (result, arguments) in _CALLS.items():
        call = getattr(found, name)
        call.restype, call.argtypes = result, arguments
    return found


def _kept() -> Path:
    """Return the library in the user's cache; its name says of which source and machine it is."""
    if os.name != "posix":
        raise OSError("the kernel is built on POSIX systems only")
    text = [_SOURCE.read_text(), *_FLAGS, sys.platform, platform.machine()]
    name = hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "pumice"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} can be written by others")
    file = folder / f"kernel-{name}.so"
    if not file.exists():
        build(file)
    return file


def build(file: Path, compiler: str | None = None) -> None:
    """Compile the kernel into a file, which is there as a whole or not at all.

    Raises:
        OSError: there is no compiler, or nothing can be written.
        subprocess.SubprocessError: it does not compile.
    """
    compiler = compiler or shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        made = Path(folder) / file.name
        command = [compiler, *_FLAGS, "-o", str(made), str(_SOURCE), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=_LIMIT_S)  # noqa: S603
        with made.open("rb") as compiled:
            os.fsync(compiled.fileno())  # else a crash may leave an empty file of this name
        made.replace(file)


if __name__ == "__main__":
    build(_BESIDE)

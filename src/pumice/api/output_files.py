"""Files that Pumice writes: after an error, a full disk or a kill, the old content or the new one.

Used by everything that writes a file.  The content goes to a temporary file in the same folder,
which takes the place of the old one once it is on the disk.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from pumice.errors import OutputError

_DESCRIPTOR: Final = re.compile(r"/dev/std(out|err)|(?:/dev|/proc/self)/fd/([0-9]{1,6})")
"""Names of outputs that this process was started with."""
_OWNER_ONLY: Final = 0o600
_ANYONE: Final = 0o666
"""Permissions of a new file, before the user's umask."""
_CANNOT_SYNC: Final = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""Errors of a folder on a file system that syncs none, and of one that may not be read."""
_TEMPORARY: Final = re.compile(r"\.pumice-[0-9a-f]{16}\.part")


def write_file(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a whole file, text as UTF-8; see ``replacing``.

    Raises:
        OutputError: It cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, private=private) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Write a file piece by piece; the pieces count once the block ends without an error.

    An existing file keeps its permissions; a link stays and leads to the new content.  A
    ``private`` file is readable by its owner alone, and not written through a link.  Pipes,
    terminals and other devices are written to directly.

    Raises:
        OutputError: It cannot be written.
    """
    with _naming(path):
        target = _target(path, private=private)
        outlet, before = _existing(path, private=private)
        if outlet is not None:
            with open(outlet, "wb") as file:  # noqa: PTH123  # a descriptor has no path
                yield file
            return
        draft, handle = _draft(target, is_closed=private or before is not None)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123
                yield file
                file.flush()
                if before is not None and not private:
                    _keep_permissions(handle, before)
                os.fsync(handle)
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)


def check_writable(path: Path, *, private: bool = False) -> None:
    """Check before long work that a file can be written; nothing is changed.

    Raises:
        OutputError: It cannot.
    """
    with _naming(path):
        target = _target(path, private=private)
        outlet, _ = _existing(path, private=private)
        if outlet is not None:
            os.close(outlet)
            return
        draft, handle = _draft(target, is_closed=True)
        os.close(handle)
        draft.unlink()


def make_folder(folder: Path, *, private: bool = False) -> None:
    """Make a folder and those above it, where they are missing.

    Raises:
        OutputError: It cannot be made.
    """
    with _naming(folder, "a folder that can be written to"):
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Return when the names of new and renamed files in a folder are on the disk."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def is_temporary(name: str) -> bool:
    """Return whether a file is one that a process was killed over before it was renamed."""
    return _TEMPORARY.fullmatch(name) is not None


@contextmanager
def _naming(path: Path, wanted: str = "a file that can be written") -> Iterator[None]:
    """Make errors of the system name the file that was to be written."""
    try:
        yield
    except (BrokenPipeError, OutputError):
        raise  # a reader that has enough is no fault of the output
    except OSError as error:
        raise OutputError(error.errno, error.strerror, str(path), wanted) from None
    except ValueError as error:  # a name with a null character
        if "null" not in str(error):
            raise
        raise OutputError(errno.EINVAL, "a null character in its name", str(path), wanted) from None


def _target(path: Path, *, private: bool) -> Path:
    """Return the file that is replaced: the end of the links, if they may be followed."""
    return Path(os.path.realpath(path)) if not private and path.is_symlink() else path


def _existing(path: Path, *, private: bool) -> tuple[int | None, os.stat_result | None]:
    """Return what exists under a name: an outlet to write to directly, or the facts of a file.

    To open the file, links included, is to ask the system whether that is allowed.
    """
    if found := _DESCRIPTOR.fullmatch(os.fspath(path)):
        word, number = found.groups()
        return os.dup(int(number) if number else {"out": 1, "err": 2}[word]), None
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | (os.O_NOFOLLOW if private else 0)
    try:
        if private:
            _refuse_foreign_pipe(path, os.lstat(path))  # to open it might wait for ever
        handle = os.open(path, flags)
    except FileNotFoundError:
        return None, None
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        if private:
            _refuse_foreign_pipe(path, facts)  # it may have come since
        return handle, None
    os.close(handle)
    return None, facts


def _refuse_foreign_pipe(path: Path, facts: os.stat_result) -> None:
    """Refuse a pipe in which somebody else waits for private content."""
    if stat.S_ISFIFO(facts.st_mode) and facts.st_uid != os.geteuid():
        raise OutputError(errno.EPERM, "a pipe of another user", str(path), "a file of your own")


def _draft(target: Path, *, is_closed: bool) -> tuple[Path, int]:
    """Make an empty temporary file beside another, ``is_closed`` to everybody but its owner."""
    draft = target.with_name(f".pumice-{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return draft, os.open(draft, flags, _OWNER_ONLY if is_closed else _ANYONE)


def _keep_permissions(handle: int, before: os.stat_result) -> None:
    """Copy to a file the owner, group and permissions of the one that it replaces."""
    mode = stat.S_IMODE(before.st_mode) & 0o777
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            os.fchown(handle, before.st_uid, before.st_gid)
        if os.fstat(handle).st_gid != before.st_gid:
            with suppress(PermissionError):
                os.fchown(handle, -1, before.st_gid)
        if os.fstat(handle).st_gid != before.st_gid:
            mode &= 0o707 | (mode & 0o7) << 3  # another group gets what everybody gets
    os.fchmod(handle, mode)

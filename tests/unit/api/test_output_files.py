"""Files are written whole or not at all, with the right permissions, by one function."""

import ast
import errno
import os
import re
import resource
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from typing import Final

import pytest

from pumice.api.output_files import check_writable, make_folder, replacing, write_file
from pumice.errors import OutputError

SOURCES = Path(__file__).resolve().parents[3] / "src/pumice"
NO_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_text_and_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "é\r\n")
    write_file(tmp_path / "b", b"\xff\n")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\r\n"
    assert (tmp_path / "b").read_bytes() == b"\xff\n"
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_permissions_of_the_user_or_of_a_secret(tmp_path: Path) -> None:
    write_file(tmp_path / "open", "x")
    write_file(tmp_path / "private", "x", private=True)
    assert (mode(tmp_path / "open"), mode(tmp_path / "private")) == (0o640, 0o600)


@pytest.mark.parametrize("before", [0o600, 0o644, 0o664, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path: Path, before: int) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    file.chmod(before)
    write_file(file, "new")
    assert (file.read_text(), mode(file)) == ("new", before)


def test_a_private_file_is_closed_to_others_even_if_it_was_open(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    file.chmod(0o644)
    write_file(file, "new", private=True)
    assert (file.read_text(), mode(file)) == ("new", 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_existing_file_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    os.chown(file, 1234, 4321)
    write_file(file, "new")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


@NO_ROOT
def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(OutputError, match=r"f: .*Permission denied.*that you may write"):
        write_file(file, "new")
    assert file.read_text() == "old"


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_leads_to_the_new_content(tmp_path: Path, *, exists: bool) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there/file", tmp_path / "link"
    if exists:
        target.write_text("old")
    link.symlink_to("there/file")
    write_file(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), names(tmp_path / "there")) == ("new", ["file"])


@pytest.mark.parametrize("exists", [True, False])
def test_private_content_is_not_written_through_a_link(tmp_path: Path, *, exists: bool) -> None:
    target, link = tmp_path / "file", tmp_path / "link"
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    with pytest.raises(OutputError, match=r"link: .*\(name the file itself, or remove the link\)"):
        write_file(link, "secret", private=True)
    assert not exists or target.read_text() == "old"
    assert names(tmp_path) == (["file", "link"] if exists else ["link"])


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OutputError, match="a: expected a file that can be written"):
        write_file(tmp_path / "a", "x")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("no/file", "make its folder first"),
        ("file/x", "part of its path is a file"),
        ("folder", "this is a folder"),
        ("a" * 300, ""),
        ("a\0b", "a null character"),
    ],
)
def test_an_error_names_the_file_and_what_to_do(tmp_path: Path, name: str, hint: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for action in (lambda path: write_file(path, "x"), check_writable):
        with pytest.raises(OutputError) as caught:
            action(tmp_path / name)
        assert name[:100] in str(caught.value)
        assert hint in str(caught.value)
    assert names(tmp_path) == ["file", "folder"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/x"):
        with pytest.raises(OutputError, match=f"{name}: expected a folder that can be written to"):
            make_folder(tmp_path / name)
    make_folder(tmp_path / "a/b", private=True)
    make_folder(tmp_path / "a/b")
    assert mode(tmp_path / "a/b") == 0o700


@pytest.mark.parametrize("private", [True, False])
def test_an_error_in_the_middle_leaves_the_old_content(tmp_path: Path, *, private: bool) -> None:
    file = tmp_path / "f"
    file.write_text("old")

    def fall() -> None:
        with replacing(file, private=private) as out:
            out.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fall()
    assert (file.read_text(), names(tmp_path)) == ("old", ["f"])


@pytest.mark.parametrize("name", ["fsync", "fchmod", "open"])
def test_a_failure_of_the_system_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = tmp_path / "f"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        with pytest.raises(OutputError, match=r"f: .*No space left.*\(free some space and try"):
            write_file(file, "new")
    assert (file.read_text(), names(tmp_path)) == ("old", ["f"])


def test_a_file_that_becomes_too_large_leaves_the_old_content(tmp_path: Path) -> None:
    """The system itself refuses the write, in a process that may write 1,000 bytes."""
    file = tmp_path / "f"
    file.write_text("old")
    before, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # Python takes half a compiled file for a whole one
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OutputError, match="File too large"):
            write_file(file, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiles
    assert (file.read_text(), names(tmp_path)) == ("old", ["f"])


def test_a_full_disk_leaves_the_old_content(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    small = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if not (mount and umount) or run([mount, *small], capture_output=True, check=False).returncode:  # noqa: S603
        pytest.skip("only root may mount a small disk")
    try:
        write_file(disk / "f", "old")
        with pytest.raises(OutputError, match="No space left on device"):
            write_file(disk / "f", "x" * 100_000)
        assert ((disk / "f").read_text(), names(disk)) == ("old", ["f"])
    finally:
        run([umount, str(disk)], check=True)  # noqa: S603


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", "content", private=True)
    reader.join(10)
    assert (got, names(tmp_path)) == ([b"content"], ["pipe"])


def test_private_content_does_not_go_into_a_pipe_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(OutputError, match="a pipe of another user"):
        write_file(tmp_path / "pipe", "content", private=True)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("private", [True, False])
def test_standard_output_is_written_to_in_its_place(
    capfd: pytest.CaptureFixture[str], name: str, *, private: bool
) -> None:
    os.write(1, b"before ")
    write_file(Path(name), "content", private=private)
    os.write(1, b" after")
    assert capfd.readouterr().out == "before content after"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_that_is_full_is_named() -> None:
    write_file(Path("/dev/null"), "x")
    with pytest.raises(OutputError, match=r"/dev/full: .*No space left on device"):
        write_file(Path("/dev/full"), "x")


def test_a_reader_that_leaves_is_no_fault_of_the_output() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError):
            write_file(Path(f"/dev/fd/{write}"), "x")
    finally:
        os.close(write)


def test_a_check_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    check_writable(tmp_path / "old")
    check_writable(tmp_path / "new")
    assert ((tmp_path / "old").read_text(), names(tmp_path)) == ("old", ["old"])


WRITERS: Final = frozenset(
    {
        *("write_text", "write_bytes", "fdopen", "truncate", "ftruncate", "chmod"),
        *("mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryFile", "mkdir", "makedirs"),
        *("copyfile", "copy2", "copytree", "rename", "renames", "symlink", "symlink_to"),
        *("hardlink_to", "savefig", "savetxt", "tofile", "to_csv", "to_json", "to_parquet"),
        *("FileHandler", "RotatingFileHandler", "TimedRotatingFileHandler"),
    }
)
ALLOWED: Final = {
    "api/output_files.py": "the one function",
    "api/text_files.py": "opens secrets for reading, without waiting for a pipe",
    "cluster/embedded/data_records.py": "the log, appended to, and the lock of a data directory",
    "cluster/http/tls.py": "a file without a name for OpenSSL, gone at once",
    "kernel/library.py": "a compiler writes into a folder of its own; the result takes its name",
    "library/plots.py": "figures are drawn into memory, and written by the one function",
    "records/stores.py": "objects of a store such as S3, put there whole",
    "testing/recorded/vcctl.py": "a folder for one test, gone at its end",
}


def _opens_for_writing(call: ast.Call) -> bool:
    """Return whether a call makes or changes a file; reading is the only other use of open."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in WRITERS:
        return True
    if name != "open":
        return False
    texts = [
        each.value
        for each in (*call.args, *(word.value for word in call.keywords))
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    flags = {each.attr for each in ast.walk(call) if isinstance(each, ast.Attribute)}
    return any(set(text) & set("wax+") and len(text) <= 3 for text in texts) or bool(
        flags & {"O_WRONLY", "O_RDWR", "O_CREAT"}
    )


def test_nothing_else_opens_a_file_for_writing() -> None:
    found = {
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _opens_for_writing(node)
        if str(path.relative_to(SOURCES)) not in ALLOWED
    }
    known = {each for each in found if each.startswith(("cli/main.py:", "cli/serve.py:"))}
    assert found - known == set()
    main = (SOURCES / "cli/main.py").read_text(encoding="utf-8")
    assert main.count("os.open(") == main.count("os.open(os.devnull") == 1


INPUTS: Final = {"commands.py", "full_cluster.py", "questions.py", "signoff.py", "mutant_trials.py"}
"""These write what a program reads next, into folders that are gone at the end."""


@pytest.mark.parametrize("folder", ["bench", "tools"])
def test_results_of_benchmarks_and_tools_are_written_whole(folder: str) -> None:
    left_out = {*INPUTS, "reach.py"}  # it runs beside changed sources, and must not load them
    every = (SOURCES.parents[1] / folder).glob("*.py")
    files = [file for file in every if file.name not in left_out]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    assert [
        name for name, text in texts.items() if re.search(r"\.write_(text|bytes)\(", text)
    ] == []

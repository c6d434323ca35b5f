"""Files without end, and pipes that nobody writes to: an error in little time and memory."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.api import text_files
from pumice.api.text_files import read_text
from pumice.cli.main import main
from pumice.errors import InputError

COMMANDS = (
    ("run",),
    ("explain", "-f"),
    ("sim", "--trace"),
    ("trace", "describe"),
    ("job", "list", "-k"),
    ("vcctl", "jobflow", "create", "-f"),
    ("ui", "--demo", "--tls-key", "pipe", "--tls-cert"),
)


def problem(file: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_text(file)
    return str(caught.value).removeprefix(f"{file}")


def test_of_a_device_without_end_little_is_read() -> None:
    assert problem(Path("/dev/zero")) == ":1: expected UTF-8 text, got byte 0x00"


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_waits_for_a_pipe_without_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(text_files, "_WRITER_S", 0.1)
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    began = time.monotonic()
    result = CliRunner().invoke(main, [*words, "pipe"])
    assert result.exit_code in (1, 2, 255)
    assert "a pipe without a writer" in result.output or "Not a file" in result.output
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("wait_s", [0.0, 0.3])
def test_a_pipe_is_read_once_something_writes_to_it(tmp_path: Path, wait_s: float) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        time.sleep(wait_s)
        with pipe.open("w") as file:
            file.write("a: ")
            file.flush()
            time.sleep(wait_s)
            file.write("ä\n")

    writer = threading.Thread(target=write)
    writer.start()
    assert read_text(pipe) == "a: ä\n"
    writer.join()


def test_a_pipe_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MOST_STREAMED", 16 << 20)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            while True:
                file.write(b"y\n" * 10_000)

    writer = threading.Thread(target=write)
    writer.start()
    assert problem(pipe) == ": expected a readable file, got more than 16 MiB"
    writer.join()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((1 << 30) + 1)
    assert problem(large) == ": expected a readable file, got more than 1,024 MiB"


@pytest.mark.parametrize("before", ["", "a: b\n" * 3])
def test_a_null_character_is_no_text(tmp_path: Path, before: str) -> None:
    file = tmp_path / "file"
    file.write_text(f"{before}\0")
    line = before.count("\n") + 1
    assert problem(file) == f":{line}: expected UTF-8 text, got byte 0x00"

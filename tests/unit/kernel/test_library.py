"""The compiled kernel is built once, and nothing depends on it."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from pumice.kernel import library as module

make = module.library.__wrapped__
NEEDS_COMPILER = pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="no cc")


@pytest.fixture(autouse=True)
def nothing_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_BESIDE", tmp_path / "beside.so")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PUMICE_KERNEL", raising=False)


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "false"])
def test_it_can_be_switched_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_KERNEL", word)
    assert make() is None


def test_without_a_compiler_there_is_none_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with caplog.at_level(logging.WARNING):
        assert make() is None
    assert "without its compiled kernel, slower" in caplog.text


@NEEDS_COMPILER
def test_it_is_built_once_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make() is not None
    (built,) = (tmp_path / "cache" / "pumice").iterdir()
    assert built.name.startswith("kernel-")

    def never(_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "build", never)
    assert make() is not None


@NEEDS_COMPILER
def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "pumice"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert make() is None


@NEEDS_COMPILER
def test_one_beside_the_module_comes_first(tmp_path: Path) -> None:
    module.build(tmp_path / "beside.so")
    assert make() is not None
    assert not (tmp_path / "cache").exists()

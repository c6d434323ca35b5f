"""Inputs that once did harm do none, and the fuzzer itself notices harm."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.driver import Fuzzer, OverBudgetError, replay, run_input
from tests.fuzz.targets import TARGETS, Target

CORPUS = sorted(file for file in (Path(__file__).parent / "corpus").glob("*/*") if file.is_file())


@pytest.mark.parametrize("file", CORPUS, ids=[f"{file.parent.name}-{file.name}" for file in CORPUS])
def test_what_once_did_harm_does_none(file: Path) -> None:
    error = replay(file)
    if error is not None:
        raise error


@pytest.mark.parametrize("name", TARGETS)
def test_some_new_inputs_do_no_harm(name: str) -> None:
    fuzzer = Fuzzer(7, [TARGETS[name]])
    for _ in range(15):
        fuzzer.step(TARGETS[name])
    assert not fuzzer.finds


@pytest.mark.parametrize("name", TARGETS)
def test_an_input_follows_from_its_seed(name: str) -> None:
    made = [TARGETS[name].make(np.random.default_rng((5, 5))) for _ in range(2)]
    assert made[0] == made[1]


def test_harm_is_kept_with_its_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fall(data: bytes) -> None:
        json.loads(data)["missing"]

    monkeypatch.setattr("tests.fuzz.driver.FOUND", tmp_path)
    target = Target("fall", lambda rng: b"{}", fall)
    fuzzer = Fuzzer(0, [target])
    fuzzer.step(target)
    fuzzer.step(target)
    (kept,) = (tmp_path / "fall").iterdir()
    assert kept.read_bytes() == b"{}"
    assert f"--replay {kept}" in capsys.readouterr().out
    assert len(fuzzer.finds) == 1  # the second is the same
    monkeypatch.setitem(TARGETS, "fall", target)
    assert isinstance(replay(kept), KeyError)


def test_an_input_that_does_not_end_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    def turn(data: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr("tests.fuzz.driver.CPU_S", 0.05)
    assert isinstance(run_input(Target("turn", lambda rng: b"", turn), b""), OverBudgetError)

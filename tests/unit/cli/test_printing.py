"""JSON that commands print reads as ``json.dumps`` writes it, whatever is in it."""

import json
import time
from typing import Any

import click
import numpy as np
import pytest
import yaml

from pumice.api.shown_text import shown_json
from pumice.cli.printing import print_data, print_rows

PLAIN = [None, True, 1, -5, 2**70, 1.5, 1e300, 0.1 + 0.2, "", "ü\t\\", "<\x7f"]


def drawn(rng: np.random.Generator, depth: int) -> Any:
    kind = rng.random()
    if not depth or kind < 0.4:
        return PLAIN[rng.integers(len(PLAIN))]
    if kind < 0.7:
        return [drawn(rng, depth - 1) for _ in range(rng.integers(4))]
    return {str(rng.integers(9)): drawn(rng, depth - 1) for _ in range(rng.integers(4))}


@pytest.mark.parametrize("data", [[], {}, {"a": []}, "plain"])
def test_json_is_laid_out_by_lines(data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_data(data, "json")
    assert (
        capsys.readouterr().out == shown_json(json.dumps(data, indent=1, ensure_ascii=False)) + "\n"
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_express_is_null(
    number: float, capsys: pytest.CaptureFixture[str]
) -> None:
    print_data({"a": [number, 1]}, "json")
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {"a": [None, 1]}
    print_data({"a": [number, 1]}, "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == {"a": [None, 1]}


def test_drawn_data_is_laid_out_by_lines(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        data = drawn(rng, 5)
        print_data(data, "json")
        wanted = shown_json(json.dumps(data, indent=1, ensure_ascii=False))
        assert capsys.readouterr().out == f"{wanted}\n"


def test_tables_line_up_and_are_folded_only_where_they_do_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["漢字", "x" * 50], ["plain", "y"]]
    print_rows(["queue", "why"], rows)
    whole = f"queue   why\n{'─' * 58}\n漢字    {'x' * 50}\nplain   y\n"
    assert capsys.readouterr().out == whole
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    print_rows(["queue", "why"], rows)
    assert "x" * 33 not in capsys.readouterr().out


def test_a_reason_without_room_beside_the_rest_stands_below_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    why = "no node has nvidia.com/gpu: render-worker-0 asks for nvidia.com/gpu 1"
    print_rows(["job", "cause", "why", "starts"], [["data/render", "Insufficient", why, "never"]])
    assert click.unstyle(capsys.readouterr().out).splitlines() == [
        "job           cause          starts",
        "─" * 50,
        "data/render   Insufficient   never",
        "   no node has nvidia.com/gpu: render-worker-0",
        "   asks for nvidia.com/gpu 1",
    ]


def test_a_long_table_takes_no_time_to_lay_out(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.process_time()
    print_rows(["queue", "a", "b", "c"], [[f"q{row}", "1", "2", "3"] for row in range(20_000)])
    assert len(capsys.readouterr().out.splitlines()) == 20_002
    assert time.process_time() - started < 4  # by cells and styles it was twenty

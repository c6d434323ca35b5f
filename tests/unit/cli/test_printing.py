"""JSON that commands print reads as ``json.dumps`` writes it, whatever is in it."""

import json
from typing import Any

import numpy as np
import pytest
import yaml

from pumice.api.shown_text import shown_json
from pumice.cli.printing import print_data

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

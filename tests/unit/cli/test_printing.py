"""JSON that commands print reads as ``json.dumps`` writes it, whatever is in it."""

import json
from typing import Any

import numpy as np
import pytest

from pumice.cli.printing import print_data

PLAIN = [None, True, 1, -5, 2**70, 1.5, 1e300, 0.1 + 0.2, "", "ü\t\\", "<\x7f"]


def drawn(rng: np.random.Generator, depth: int) -> Any:
    kind = rng.random()
    if not depth or kind < 0.4:
        return PLAIN[rng.integers(len(PLAIN))]
    if kind < 0.7:
        return [drawn(rng, depth - 1) for _ in range(rng.integers(4))]
    return {str(rng.integers(9)): drawn(rng, depth - 1) for _ in range(rng.integers(4))}


@pytest.mark.parametrize("data", [[], {}, {"a": []}, [float("nan"), float("-inf")], "plain"])
def test_json_is_laid_out_by_lines(data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_data(data, "json")
    assert capsys.readouterr().out == json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def test_drawn_data_is_laid_out_by_lines(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        data = drawn(rng, 5)
        print_data(data, "json")
        assert capsys.readouterr().out == json.dumps(data, indent=1, ensure_ascii=False) + "\n"

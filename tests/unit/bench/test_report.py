"""The page of measurements: whole, or not written."""

import json
from pathlib import Path

import pytest

from bench import report


def test_the_page_has_a_row_for_every_line_of_its_tables() -> None:
    page = report.PAGE.read_text()
    assert [line.what for line in report.TABLED if f"| {line.what} |" not in page] == []


def test_results_of_a_few_cases_do_not_replace_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, page = tmp_path / "results.json", tmp_path / "performance.md"
    results.write_text(json.dumps([{"name": report.LINES[0].name}]))
    monkeypatch.setattr(report, "RESULTS", results)
    monkeypatch.setattr(report, "PAGE", page)
    with pytest.raises(SystemExit, match="expected all cases of the tables") as error:
        report.main()
    assert report.LINES[1].name in str(error.value)
    assert not page.exists()

"""Tables that data libraries take over."""

import builtins
from pathlib import Path
from typing import Any

import pytest

import pumice
from pumice.errors import InputError

TABLE = pumice.Table(("job", "wait"), [("a", 1.5), ("b", None)])


def test_a_table_is_rows_and_columns() -> None:
    assert len(TABLE) == 2
    assert list(TABLE) == [{"job": "a", "wait": 1.5}, {"job": "b", "wait": None}]
    assert TABLE["wait"] == [1.5, None]
    assert TABLE.names == ("job", "wait")


def test_a_table_without_rows_keeps_its_columns() -> None:
    empty = pumice.Table(("job", "wait"), [])
    assert empty.columns == {"job": [], "wait": []}
    assert list(empty.to_pandas().columns) == ["job", "wait"]


def test_data_libraries_take_a_table_over() -> None:
    import polars as pl  # noqa: PLC0415

    assert TABLE.to_arrow().column_names == ["job", "wait"]
    assert TABLE.to_pandas()["wait"].sum() == 1.5
    assert TABLE.to_polars()["job"].to_list() == ["a", "b"]
    assert pl.DataFrame(TABLE).equals(TABLE.to_polars())
    unknown = pumice.Table(["job", "wait"], [(None, None)], {"wait"})
    both = pl.concat([TABLE.to_polars(), unknown.to_polars(), pl.DataFrame(unknown)])
    assert both["job"].to_list() == ["a", "b", None, None]


def test_a_table_is_saved_as_csv_and_as_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet  # noqa: PLC0415

    assert TABLE.save(tmp_path / "t.csv").read_text() == "job,wait\na,1.5\nb,\n"
    assert parquet.read_table(TABLE.save(tmp_path / "t.parquet")).num_rows == 2


def test_markup_in_a_value_is_text() -> None:
    page = pumice.Table(("<b>",), [("<script>",)])._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_long_table_says_how_much_is_not_shown() -> None:
    table = pumice.Table(("n",), [(n,) for n in range(25)])
    assert "… and 5 more rows" in table._repr_html_()
    assert str(table).splitlines()[-2:] == ["19", "… and 5 more rows"]


def test_a_printed_table_has_columns() -> None:
    table = pumice.Table(("job", "wait"), [("long-name", None), ("b", 84.033333)])
    assert str(table).splitlines() == [
        "job         wait",
        "long-name   None",
        "b           84.0333",
    ]


def test_a_library_that_is_not_installed_is_named(monkeypatch: Any) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name=name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(InputError, match=r"pandas.*pip install pandas"):
        TABLE.to_pandas()

"""A table for any data library: rows, columns, CSV, Arrow, pandas, Polars."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from pumice.api.wording import extra_hint
from pumice.errors import InputError, Words
from pumice.library.arguments import PATHS, check_kind
from pumice.sim.output import write_table


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import the libraries of an extra.

    Raises:
        InputError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise InputError(
            wanted=f"the library {error.name}",
            found=Words("not installed"),
            hint=extra_hint(name),
        ) from None


def render(template: str, **values: Any) -> str:
    """Fill one of the templates."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_text),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


_FILE = "the name of a file that ends in .csv or .parquet"
_SHOWN = 20
"""Rows that a notebook or a text shows."""


class Table:
    """Named columns of equal length; a missing value is None.

    ``numbers`` names columns of numbers: in a data frame a missing one is NaN, also if all are.
    Any other column without a value is one of texts, so that tables can be put together.
    """

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Collection[str] = ()
    ) -> None:
        self._names = tuple(columns)
        self._rows = [tuple(row) for row in rows]
        self._numbers = [name for name in self._names if name in numbers]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @cached_property
    def columns(self) -> Mapping[str, list[Any]]:
        """The values by column."""
        lists = [list(each) for each in zip(*self._rows, strict=True)]
        return dict(zip(self._names, lists or [[] for _ in self._names], strict=True))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self._names, row, strict=True)) for row in self._rows)

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; needs the extra ``pumice[arrow]``."""
        with extra("arrow"):
            import pyarrow as pa  # noqa: PLC0415
        typed = {name: pa.array(self[name], pa.float64()) for name in self._numbers}
        table = pa.table({**self.columns, **typed})
        fields = [pa.field(one.name, pa.string()) if one.type == pa.null() else one
                  for one in table.schema]  # fmt: skip
        return table.cast(pa.schema(fields))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the table to any library that reads Arrow: ``polars.DataFrame(table)``, DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``; needs the extra ``pumice[pandas]``."""
        with extra("pandas"):
            import pandas as pd  # noqa: PLC0415
        return pd.DataFrame(dict(self.columns)).astype(dict.fromkeys(self._numbers, "float64"))

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``; needs the extra ``pumice[polars]``."""
        with extra("polars"):
            import polars as pl  # noqa: PLC0415
        frame = pl.DataFrame(dict(self.columns), infer_schema_length=None, strict=False)
        empty = [name for name, kind in frame.schema.items() if kind == pl.Null]
        frame = frame.with_columns(pl.col(name).cast(pl.String) for name in empty)
        return frame.with_columns(pl.col(name).cast(pl.Float64) for name in self._numbers)

    def save(self, path: str | Path) -> Path:
        """Write the table as CSV or as Parquet, as the name ends in ``.csv`` or ``.parquet``.

        Raises:
            InputError: It ends in something else.
        """
        check_kind("path", path, PATHS, _FILE)
        if Path(path).suffix not in (".csv", ".parquet"):
            raise InputError(wanted=_FILE, found=str(path), field="path")
        return write_table(Path(path), self._names, self._rows)

    def __repr__(self) -> str:
        return f"<Table {len(self)} x {', '.join(self._names)}>"

    def __str__(self) -> str:
        shown = [self._names, *(map(_cell, row) for row in self._rows[:_SHOWN])]
        columns = [[*column] for column in zip(*shown, strict=True)]
        widths = [max(map(len, column)) for column in columns]
        lines = ("   ".join(map(str.ljust, row, widths)) for row in zip(*columns, strict=True))
        more = len(self) - _SHOWN
        return "\n".join(
            [*map(str.rstrip, lines), *([f"… and {more} more rows"] if more > 0 else [])]
        )

    def _repr_html_(self) -> str:
        rows, more = self._rows[:_SHOWN], len(self) - _SHOWN
        return render("table.html", names=self._names, rows=rows, more=more)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)

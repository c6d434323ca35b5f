"""Tables with named columns, whatever file they are in: CSV, packed or not, or Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pumice.sim.readers.parquet import is_parquet, parquet_columns, parquet_rows
from pumice.sim.readers.text import csv_rows, first_row, read_text


def rows_of(
    path: Path, columns: Sequence[str] = (), *, even: bool = False
) -> Iterator[tuple[int, dict[str, str]]]:
    """Return the rows of a table as texts by column, each with its line or number.

    A CSV file names its columns in its first line, unless they are given; if it must be ``even``,
    a row with more or fewer cells is an error.

    Raises:
        InputError: The file cannot be read, or is too large.
    """
    if is_parquet(path):
        return parquet_rows(path)
    return csv_rows(read_text(path), str(path), columns, even=even)


def columns_of(path: Path) -> list[str]:
    """Name the columns of a table; none if the file is no table.

    Raises:
        InputError: The file cannot be read, or is too large.
    """
    return parquet_columns(path) if is_parquet(path) else first_row(read_text(path))

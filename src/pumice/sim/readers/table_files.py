"""Trace files as texts and tables: CSV, packed or not, and Parquet, which needs pyarrow."""

import csv
import errno
import gzip
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final, TextIO

from pumice.api.text_files import decoded, open_at_once, read_file
from pumice.api.wording import counted, extra_hint
from pumice.errors import InputError, Words
from pumice.sim.options import MAX_LINE, MAX_PODS, MAX_TRACE_BYTES, check_at_most

_GZIP = b"\x1f\x8b"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def read_text(path: Path, most: int = MAX_TRACE_BYTES) -> str:
    """Read a file of some bytes at most, unpacking it if it is packed by gzip.

    Raises:
        InputError: The file cannot be read, or is too large.
    """
    try:
        content: bytes | bytearray = read_file(path, most, is_text=False)
        if content.startswith(_GZIP):
            content = gzip.GzipFile(fileobj=BytesIO(content)).read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        found = Words("a packed file that is cut off or damaged")
        raise InputError(wanted="a readable text file", found=found, file=str(path)) from None
    except (OSError, ValueError) as error:
        found = Words(getattr(error, "strerror", None) or str(error))
        wanted = "a readable text file"
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            wanted = f"at most {most >> 20:,} MiB"
        raise InputError(wanted=wanted, found=found, file=str(path)) from None
    if len(content) > most:
        wanted = f"at most {most >> 20:,} MiB once it is unpacked"
        raise InputError(wanted=wanted, found=Words("more"), file=str(path))
    return decoded(content, str(path))


def lines(text: str, file: str) -> Iterator[str]:
    """Return the lines of a text one by one: a list of very many empty ones would not fit.

    Raises:
        InputError: A line is too long.
    """
    for number, match in enumerate(_LINE.finditer(text), start=1):
        line = match[0].rstrip("\r\n")
        if len(line) > MAX_LINE:
            check_at_most(len(line), MAX_LINE, "characters in a line", file=f"{file}:{number}")
        yield line


def first_lines(text: str) -> Iterator[str]:
    """Return the lines at the beginning of a text, which tell its format."""
    return lines(text[:MAX_LINE], "")


def csv_rows(
    text: str, file: str, columns: Sequence[str] = (), *, even: bool = False
) -> Iterator[tuple[int, dict[str, str]]]:
    """Return the rows of a table, each with its line number.

    The first row names the columns, unless they are given: then it may, and is skipped.  A table
    that is ``even`` has a cell for each column in every row.

    Raises:
        InputError: A line is no row.
    """
    reader = csv.reader(lines(text, file))
    try:
        first = [name.strip() for name in next(reader, [])]
        rows = reader if not columns or set(first) & set(columns) else chain([first], reader)
        columns = first if rows is reader else columns
        twice = next((name for name in columns if name and columns.count(name) > 1), None)
        if even and twice is not None:
            raise InputError(wanted="each column once", found=twice, file=f"{file}:1")
        for row in rows:
            if even and row and len(row) != len(columns):
                wanted = f"{counted(len(columns), 'cell')}, one for each column"
                place = f"{file}:{reader.line_num}"
                raise InputError(wanted=wanted, found=len(row), file=place)
            if row:
                named = zip_longest(columns, row[: len(columns)], fillvalue="")
                yield reader.line_num, {name: value for name, value in named if name}
    except csv.Error as error:
        place = f"{file}:{reader.line_num}"
        raise InputError(wanted="a row of a table", found=str(error), file=place) from None


def first_row(text: str) -> list[str]:
    """Return the first cells of a table, if a text is one: the names of its columns, mostly."""
    first = next(first_lines(text), "")
    return [name.strip() for name in first.split(",")] if "," in first else []


def number(
    row: Mapping[str, str], column: str, file: str, line: int, most: float = math.inf
) -> float:
    """Read a number from 0 up in a column.

    Raises:
        InputError: it is missing, or not a number.
    """
    text = row.get(column, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or value > most:
        wanted = "a number from 0 up" if most == math.inf else f"a number from 0 to {most:,g}"
        raise InputError(wanted=wanted, found=text, field=column, file=f"{file}:{line}")
    return value


_MAGIC: Final = b"PAR1"
_COLUMNS: Final = 1000
_CELL: Final = 1 << 16
"""The longest text of a cell, in bytes."""
_BATCH: Final = 4096


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet by its first bytes."""
    if not path.is_file():  # a pipe can be read once only
        return False
    try:
        with open_at_once(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def parquet_columns(path: Path) -> list[str]:
    """Name the columns of a file.

    Raises:
        InputError: It cannot be read, or is beyond a limit.
    """
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Return the rows as texts, each with its number; what is missing is empty.

    Raises:
        InputError: The file cannot be read, or is beyond a limit.
    """
    import pyarrow as pa  # noqa: PLC0415  (an optional library)

    number = 0
    with _opened(path) as file:
        try:
            for batch in file.iter_batches(batch_size=_BATCH):
                columns = [_texts(column, path) for column in batch.columns]
                names = batch.schema.names
                for row in zip(*columns, strict=True):
                    number += 1
                    check_at_most(number, MAX_PODS, "rows", file=str(path))
                    yield number, dict(zip(names, row, strict=True))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from None


def _opened(path: Path) -> Any:
    """Open a file whose own description is within the limits."""
    try:
        import pyarrow as pa  # noqa: PLC0415  (an optional library)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise InputError(
            wanted="the library pyarrow to read Parquet",
            found=Words("not installed"),
            file=str(path),
            hint=extra_hint("arrow"),
        ) from None
    try:
        with path.open("rb") as raw:
            schema = parquet.read_schema(raw)
        texts = [field.name for field in schema if _is_text(pa, field.type)]
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        file = parquet.ParquetFile(path, read_dictionary=texts)  # a text is unpacked once
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    if nested:
        raise InputError(wanted="columns of plain values", found=nested[0], file=str(path))
    about = file.metadata
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    check_at_most(about.num_columns, _COLUMNS, "columns", file=str(path))
    check_at_most(about.num_rows, MAX_PODS, "rows", file=str(path))
    if size > MAX_TRACE_BYTES:
        wanted = f"at most {MAX_TRACE_BYTES >> 20:,} MiB once it is unpacked"
        raise InputError(wanted=wanted, found=Words("more"), file=str(path))
    return file


def _is_text(pa: Any, kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _texts(column: Any, path: Path) -> list[str]:
    """Write the values of a column as texts, each distinct one once."""
    import pyarrow as pa  # noqa: PLC0415  (an optional library)
    from pyarrow import compute  # noqa: PLC0415

    if not pa.types.is_dictionary(column.type):
        return [_text(value) for value in column.to_pylist()]
    if (compute.max(compute.binary_length(column.dictionary)).as_py() or 0) > _CELL:
        raise InputError(
            wanted=f"at most {_CELL:,} bytes in a cell", found=Words("more"), file=str(path)
        )
    try:
        known = [_text(value) for value in column.dictionary.to_pylist()]
        return ["" if at is None else known[at] for at in column.indices.to_pylist()]
    except (UnicodeDecodeError, IndexError) as error:
        raise _unreadable(path, error) from None


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value)


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(wanted="a readable Parquet file", found=str(error), file=str(path))


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


# Cells of CSV files, which spreadsheets open: no text of a trace is taken for a formula there


_FORMULA: Final = frozenset("=+-@\t")
_GUARD: Final = "'"
"""A spreadsheet reads what follows as text."""


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; a text that a spreadsheet would compute gets a mark before it."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_guarded(name) for name in columns])
    writer.writerows(  # millions of cells, few of which are odd
        [
            _guarded(cell)
            if isinstance(cell, str) and (cell[:1] in _FORMULA or "\r" in cell)
            else cell
            for cell in row
        ]
        for row in rows
    )


def unguarded(text: str) -> str:
    """Return a text as it was before ``write_csv``."""
    return text[1:] if text.startswith(_GUARD) and _is_formula(text[1:]) else text


def _guarded(text: str) -> str:
    text = text.replace("\r", "\\r")  # would end a row: lines of ours end in another way
    return f"{_GUARD}{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    if text[:1] not in _FORMULA:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False

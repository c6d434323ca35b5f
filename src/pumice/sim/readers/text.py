"""Trace files as text, packed or not, and numbers in their columns."""

import csv
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from pumice.api.text_files import decoded
from pumice.api.wording import counted
from pumice.errors import InputError, Words
from pumice.sim.limits import MAX_LINE, MAX_TRACE_BYTES, check_at_most

_GZIP = b"\x1f\x8b"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def read_text(path: Path, most: int = MAX_TRACE_BYTES) -> str:
    """Read a file of some bytes at most, unpacking it if it is packed by gzip.

    Raises:
        InputError: The file cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            packed = file.peek(2).startswith(_GZIP)
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(most + 1)
        if len(content) > most:
            unpacked = " once it is unpacked" if packed else ""
            raise InputError(
                wanted=f"at most {most >> 20:,} MiB{unpacked}", found=Words("more"), file=str(path)
            )
    except (EOFError, zlib.error, gzip.BadGzipFile):
        found = Words("a packed file that is cut off or damaged")
        raise InputError(wanted="a readable text file", found=found, file=str(path)) from None
    except OSError as error:
        found = Words(error.strerror or str(error))
        raise InputError(wanted="a readable text file", found=found, file=str(path)) from None
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

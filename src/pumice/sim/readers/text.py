"""Trace files as text, packed or not, and numbers in their columns."""

import csv
import gzip
import math
import zlib
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from pumice.errors import InputError
from pumice.sim.limits import MAX_TRACE_BYTES

_GZIP = b"\x1f\x8b"


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
                wanted=f"at most {most >> 20:,} MiB{unpacked}", found="more", file=str(path)
            )
        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise InputError(wanted="a readable text file", found=found, file=str(path)) from None


def csv_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Return the rows of a table with a header, each with its line number."""
    reader = csv.reader(text.splitlines())
    columns = next(reader, [])
    for row in reader:
        if row:
            named = zip_longest(columns, row[: len(columns)], fillvalue="")
            yield reader.line_num, {name: value for name, value in named if name}


def header_of(text: str) -> set[str]:
    """Name the columns of a table, if it is one."""
    first = text.partition("\n")[0]
    return {name.strip() for name in first.split(",")} if "," in first else set()


def number(row: Mapping[str, str], column: str, file: str, line: int) -> float:
    """Read a number from 0 up in a column.

    Raises:
        InputError: it is missing, or not a number.
    """
    text = row.get(column, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(
            wanted="a number from 0 up", found=text, field=column, file=f"{file}:{line}"
        )
    return value

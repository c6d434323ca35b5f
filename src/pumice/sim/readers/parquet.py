"""Tables in Parquet files, read row by row within the limits of a trace; needs pyarrow."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pumice.api.wording import extra_hint
from pumice.errors import InputError, Words
from pumice.sim.limits import MAX_PODS, MAX_TRACE_BYTES, check_at_most

_MAGIC: Final = b"PAR1"
_COLUMNS: Final = 1000
_CELL: Final = 1 << 16
"""The longest text of a cell, in bytes."""
_BATCH: Final = 4096


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet by its first bytes."""
    try:
        with path.open("rb") as file:
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

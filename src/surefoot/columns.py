"""One line a trial, in a file that other programs read: CSV, or Parquet through pyarrow."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .checks import SurefootError
from .designs.base import ENDINGS
from .results import Array
from .simulate import Run, Sink


def lines(run: Run, columns: dict[str, Array], first: int) -> dict[str, Any]:
    """The columns of a job, with names where there are numbers."""
    names = np.array([*run.problem.names, ""])  # the last for no arm: it has the number -1
    size = len(columns["pulls"])
    where = {"scenario": run.scenario.name, "design": run.design.name, "budget": run.problem.budget, "seed": run.seed}
    return {
        **{key: [value] * size for key, value in where.items()},
        "trial": np.arange(first, first + size),
        **{key: x for key, x in columns.items() if x.ndim == 1},
        "ending": np.array(ENDINGS)[columns["ending"]],
        **{key: names[columns[key]] for key in ("winner", "recommended")},
    }


@contextmanager
def opened(path: Path | None) -> Iterator[Sink | None]:
    """A sink that writes every trial there, flat in memory; the file appears when all of them are in it."""
    if path is None:
        yield None
        return
    if path.suffix not in (".csv", ".parquet"):
        raise SurefootError(f"trials are kept in a .csv or a .parquet file; got {path}")
    half, seen, writer = path.with_name(path.name + ".half"), dict[int, int](), None
    kind = _Csv if path.suffix == ".csv" else _Parquet

    def sink(run: Run, columns: dict[str, Array]) -> None:
        nonlocal writer
        first = seen.get(id(run), 0)
        seen[id(run)] = first + len(columns["pulls"])
        table = lines(run, columns, first)
        writer = writer or kind(half, table)
        writer.add(table)

    try:
        if path.parent != Path() and not path.parent.is_dir():
            raise FileNotFoundError(2, "there is no such folder", str(path.parent))
        yield sink
        if writer is not None:
            writer.close()
            os.replace(half, path)
    except OSError as error:
        raise SurefootError(f"cannot write the trials to {path}: {error.strerror or error}") from error
    finally:
        half.unlink(missing_ok=True)


class _Csv:
    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self.file = path.open("w", encoding="utf-8", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(table)

    def add(self, table: dict[str, Any]) -> None:
        self.writer.writerows(zip(*(np.asarray(x).tolist() for x in table.values()), strict=True))

    def close(self) -> None:
        self.file.close()


class _Parquet:
    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise SurefootError(
                "a Parquet file needs pyarrow: pip install 'surefoot[parquet]', or keep a .csv"
            ) from None
        self.pyarrow = pyarrow
        self.writer = parquet.ParquetWriter(str(path), pyarrow.table(table).schema, compression="zstd")

    def add(self, table: dict[str, Any]) -> None:
        self.writer.write_table(self.pyarrow.table(table))

    def close(self) -> None:
        self.writer.close()

"""A folder that keeps what has been played, so that the same command goes on from there after a kill or a full disk.

Of every run there is a JSON file with the sums of its first trials, as many as are done, and where columns were asked
for a file of them for every job. A file is there whole or not at all. It is named by a digest of all that decides what
comes out, the code included: what other code ran is not taken for what this code would do.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .checks import SurefootError, write
from .play import Played, part_size, play
from .results import Array, Sums
from .scenario import CURVES

MARK = "run.json"  # a folder with this file in it is ours
KEPT = ". What was written before is kept: the same command goes on from there"


@cache
def code(*modules: str) -> str:
    """The version, and a digest of the source of these modules and of all that they import."""
    from . import __version__  # the package is not whole yet when this is read

    package, found, waiting = __name__.split(".")[0], set[str](), {play.__module__, *modules}
    while waiting:
        found.add(name := waiting.pop())
        used = {str(getattr(it, "__module__", "")) for it in vars(sys.modules[name]).values()}
        waiting |= {it for it in used - found if it.split(".")[0] == package}
    digest = hashlib.sha256()
    for name in sorted(found):
        file = getattr(sys.modules[name], "__file__", None)
        if file is None:
            raise SurefootError(f"what is written in {name!r} at a prompt cannot be kept: put it into a file")
        digest.update(Path(str(file)).read_bytes())
    return f"{__version__}+{digest.hexdigest()[:10]}"


def identity(run: Any) -> dict[str, Any]:
    """All that decides what comes of a run."""
    design, policy, truth = run.design, getattr(run.design, "policy", None), run.scenario
    functions = [curve for curve in (*truth.effect, *truth.harm) if type(curve) not in CURVES.values()]
    modules = {type(it).__module__ for it in (design, policy, run.watch) if it is not None}
    modules |= {getattr(curve, "func", curve).__module__ for curve in functions}  # a partial is what it is made of
    return {
        "scenario": truth.name, "truth": _pickled(run) if functions else truth.to_dict(run.problem),
        "design": design.name, "options": {key: repr(value) for key, value in design.options.items()},
        "policy": repr(policy), "trials": run.trials, "seed": run.seed, "part": part_size(design), "keep": run.keep,
        "watch": repr(run.watch), "device": repr(run.device), "numpy": np.__version__,
        "code": code(*sorted(m for m in modules if m != "builtins")),
    }  # fmt: skip


def _pickled(run: Any) -> str:
    """Of a truth with Python functions: those of a module are named there, and their source is part of `code`."""
    import cloudpickle

    truth = run.scenario
    told = run.problem.to_dict(), truth.effect, truth.harm, repr(truth.noise), truth.correlation, truth.drift
    return hashlib.sha256(cloudpickle.dumps(told)).hexdigest()


@dataclass
class Kept:
    """What is kept of one run: its first `done` trials."""

    folder: Path
    name: str
    identity: dict[str, Any]
    done: int = 0
    sums: Sums | None = None
    seconds: float = 0.0
    blocks: int = 0  # files of columns

    def add(self, played: Played) -> None:
        """Keep a job that follows on what is there."""
        if played.columns is not None:
            columns = BytesIO()
            np.savez(columns, **{key: np.asarray(x) for key, x in played.columns.items()})  # type: ignore[arg-type]
            write(self._block(self.blocks), columns.getvalue(), KEPT)
            self.blocks += 1
        self.sums = played.sums if self.sums is None else self.sums + played.sums
        self.done, self.seconds = self.done + played.trials, self.seconds + played.seconds
        data = {"identity": self.identity, "done": self.done, "seconds": self.seconds, "blocks": self.blocks}
        write(self.folder / f"{self.name}.json", json.dumps(data | {"sums": self.sums.to_dict()}), KEPT)

    def _block(self, k: int) -> Path:
        return self.folder / f"{self.name}.{k:06d}.npz"

    def columns(self) -> Iterator[dict[str, Array]]:
        """Of the trials that are kept, job by job."""
        for k in range(self.blocks):
            with np.load(self._block(k)) as data:
                yield dict(data)


class Store:
    """The folder of a command. `what` says in words what it is for."""

    def __init__(self, out: Path, force: bool = False) -> None:
        self.folder = out / "parts"
        try:
            if out.exists() and not out.is_dir():
                raise SurefootError(f"--out must be a folder; {out} is a file")
            if out.exists() and any(out.iterdir()) and not (out / MARK).exists() and not force:
                raise SurefootError(f"{out} holds something else; choose another folder, or write into it with --force")
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (out / MARK).exists():
                write(out / MARK, "{}\n")
        except OSError as error:
            raise SurefootError(f"cannot write to {out}: {error.strerror or error}") from error

    def kept(self, run: Any) -> Kept:
        """What is there of a run. What cannot be read is played again, with a warning."""
        told = identity(run)
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]
        words = f"{run.scenario.name}-{len(run.problem.arms)}-{run.design.name}"
        name = f"{re.sub(r'[^A-Za-z0-9.=-]+', '_', words)}-{digest}"
        path = self.folder / f"{name}.json"
        new = Kept(self.folder, name, told)
        if not path.exists():
            return new
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["identity"] != json.loads(json.dumps(told)):
                raise ValueError("it holds another run")
            sums = Sums.from_dict(data["sums"])
            found = Kept(self.folder, name, told, data["done"], sums, float(data["seconds"]), data["blocks"])
            if sums.trials != found.done or sum(sums.pulls.values()) != found.done:
                raise ValueError("its numbers are not complete")
            if run.keep and sum(len(block["pulls"]) for block in found.columns()) != found.done:
                raise ValueError("its columns are not complete")
            return found
        except (ValueError, KeyError, TypeError, OSError, EOFError) as error:
            warnings.warn(f"{path} is damaged ({error}); playing it again", stacklevel=2)
            return new

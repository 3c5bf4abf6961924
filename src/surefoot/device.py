"""An accelerator: where its arrays live, and the random numbers that are drawn there.

PyTorch's own generators are used behind the few names of NumPy's that a scenario asks for. They are equal in law to
NumPy's, and not number by number; the same seed, device and batch give the same numbers again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, to_device

from .arrays import Array
from .checks import SurefootError


def numpy(x: Array) -> Any:
    """An array of any namespace as one of NumPy's."""
    return x if isinstance(x, np.ndarray) else np.asarray(x.cpu() if hasattr(x, "cpu") else x)


@dataclass(frozen=True)
class Device:
    """A device of PyTorch by its name: `cuda`, `cuda:1`, or `cpu` to try it without one."""

    name: str

    def __post_init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise SurefootError(
                f"device {self.name!r} needs PyTorch, in the build for it: pip install 'surefoot[torch]'"
            ) from None
        try:
            torch.zeros(1, device=self.name)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise SurefootError(f"PyTorch {torch.__version__} cannot use device {self.name!r}: {reason}") from None

    @property
    def xp(self) -> Any:  # with PyTorch
        import array_api_compat.torch as xp

        return xp

    @contextmanager
    def ready(self) -> Iterator[None]:  # with PyTorch
        """While something runs there: numbers are of double precision, whatever they are made of."""
        import torch

        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with torch.inference_mode():
                yield
        except torch.OutOfMemoryError as error:
            reason = str(error).splitlines()[0]
            raise SurefootError(f"{self.name} has not enough memory for so many trials side by side; give a smaller "
                                f"width ({reason})") from None  # fmt: skip
        finally:
            torch.set_default_dtype(usual)

    def put(self, batch: Any) -> Any:
        """A dataclass of arrays, and of dataclasses of them, moved there."""
        moved: dict[str, Any] = {}
        for f in fields(batch):
            x = getattr(batch, f.name)
            if is_array_api_obj(x) and not isinstance(x, np.ndarray):
                if str(x.dtype) == "torch.float32":
                    raise SurefootError(f"{f.name} is of single precision: no design promises anything with that")
                moved[f.name] = to_device(x, self.name)
            elif is_dataclass(x) and f.name != "problem":
                moved[f.name] = self.put(x)
        return replace(batch, **moved) if moved else batch

    def generator(self, seed: int, first: int) -> Draws:  # with PyTorch
        import torch

        key = np.random.SeedSequence(seed, spawn_key=(first,)).generate_state(1, np.uint64)[0]
        return Draws(torch, torch.Generator(self.name).manual_seed(int(key) >> 1), self.name)


@dataclass(frozen=True)
class Draws:
    """What a scenario asks of a random generator, by the names that NumPy has for it."""

    torch: Any
    source: Any
    device: str

    def standard_normal(self, shape: tuple[int, ...]) -> Array:  # with PyTorch
        return self.torch.randn(tuple(shape), generator=self.source, dtype=self.torch.float64, device=self.device)

    def random(self, shape: tuple[int, ...]) -> Array:  # with PyTorch
        return self.torch.rand(tuple(shape), generator=self.source, dtype=self.torch.float64, device=self.device)

    def binomial(self, n: Array, p: Array) -> Array:  # with PyTorch
        n, p = self.torch.broadcast_tensors(n.to(self.torch.float64), p)
        return self.torch.binomial(n, p, generator=self.source)

    def __getattr__(self, name: str) -> Any:
        raise SurefootError(
            f"on a device normal, binomial and uniform numbers are drawn, not {name}: leave out --device for this noise"
        )

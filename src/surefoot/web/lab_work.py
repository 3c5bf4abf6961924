"""Jobs of the design lab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WORK: dict[str, Callable[..., Any]] = {}

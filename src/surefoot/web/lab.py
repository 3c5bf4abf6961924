"""The design lab: a problem as a form and as TOML, scenarios, operating characteristics, and the study they lead to."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(include_in_schema=False)

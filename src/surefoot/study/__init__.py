"""Live studies: ask, tell, and a certificate at the end, on a journal that loses nothing."""

try:
    import sqlalchemy  # noqa: F401
except ImportError as error:
    from ..problem import SurefootError

    raise SurefootError("live studies need SQLAlchemy: pip install 'surefoot[study]'") from error

from .demo import simulated
from .journal import Journal
from .status import Assignment, Paused
from .study import Study

__all__ = ["Assignment", "Journal", "Paused", "Study", "simulated"]

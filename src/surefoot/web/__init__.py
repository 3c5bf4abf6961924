"""The page: where a dose meeting looks, a clinic types, and a service calls. It shows, and decides nothing."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import create_app, demonstrate, serve

__all__ = ["create_app", "demonstrate", "serve"]


def __getattr__(name: str) -> Any:  # imported when used: jobs do without, and begin sooner
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import app
    except ImportError as error:
        from ..problem import SurefootError

        raise SurefootError("the page needs more than the core: pip install 'surefoot[web]'") from error
    return getattr(app, name)

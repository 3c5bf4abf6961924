"""The page: where a dose meeting looks, a clinic types, and a service calls. It shows, and decides nothing."""

try:
    import argon2  # noqa: F401
    import fastapi  # noqa: F401
    import itsdangerous  # noqa: F401
    import jinja2  # noqa: F401
except ImportError as error:
    from ..problem import SurefootError

    raise SurefootError("the page needs more than the core: pip install 'surefoot[web]'") from error

from .app import create_app, demonstrate, serve

__all__ = ["create_app", "demonstrate", "serve"]

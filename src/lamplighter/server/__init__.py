"""The scheduler as an HTTP service; `docs/guides/http.md` shows how it is used.

Needs the extra `server`. A route is declared once, in `routes/`; the
application, the checks of requests and the OpenAPI document are made of these declarations.
"""

from importlib.util import find_spec

from lamplighter.model.errors import extra_hint


def _is_missing(name: str) -> bool:
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:
        return True


for _name in ("starlette", "jsonschema_rs", "jwt", "cryptography"):
    if _is_missing(_name):
        raise ModuleNotFoundError(
            f"the HTTP service needs `{_name}`, which is not installed\n\n"
            f"hint: {extra_hint('server')}",
            name=_name,
        )

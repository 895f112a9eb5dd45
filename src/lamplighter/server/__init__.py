"""The scheduler as an HTTP service; `docs/guides/http.md` shows how it is used.

Needs what `pip install 'lamplighter[server]'` installs. A route is declared once, in `routes/`; the
application, the checks of requests and the OpenAPI document are made of these declarations.
"""

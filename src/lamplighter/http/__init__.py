"""Submitting and following jobs through the HTTP service, as an App does through the store.

Needs the extra `http`.
"""

from lamplighter.http.app import HttpApp
from lamplighter.http.call import HttpCall
from lamplighter.http.errors import ServiceRefused, ServiceUnreachable
from lamplighter.http.handle import HttpHandle, RemoteJob

__all__ = [
    "HttpApp",
    "HttpCall",
    "HttpHandle",
    "RemoteJob",
    "ServiceRefused",
    "ServiceUnreachable",
]

"""Every engine keeps the whole contract of the port; `conftest.py` says which engines there are."""

from lamplighter.port.conformance import every_test

globals().update(every_test())

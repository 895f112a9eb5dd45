"""The server and the way to it: its version, what sessions may do, who stands between."""

from __future__ import annotations

from lamplighter.engines.postgres import server
from lamplighter.engines.postgres.checkup.facts import Facts
from lamplighter.port.checkup import Finding, note, ok, problem, warning

_SHORT_MS = 10_000
_LITTLE_COST = 1_000.0
_CROWDED = 0.9
_MANY_NEWS = 0.5


def version(facts: Facts) -> Finding:
    """The server is new enough; an older one is asked nothing more."""
    if facts.host.number < server.MINIMUM * 10_000:
        return problem(
            "server",
            f"PostgreSQL {facts.host.version}; {server.MINIMUM} or newer is needed",
            "update the server",
        )
    return ok("server", f"PostgreSQL {facts.host.version}, database `{facts.database}`")


def encoding(facts: Facts) -> Finding:
    """Any text can be kept."""
    if facts.host.encoding == "UTF8":
        return ok("encoding", "UTF8")
    return problem(
        "encoding",
        f"{facts.host.encoding}: not every text can be kept",
        "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one in the url",
    )


def writable(facts: Facts) -> Finding:
    """The server takes writes."""
    if facts.host.standby:
        return problem(
            "writable",
            "this server is a standby, which only reads",
            "name the primary server; with several hosts in the url it is found by itself",
        )
    found = facts.settings.get("default_transaction_read_only")
    if facts.host.read_only or (found is not None and found.value == "on"):
        where = _source(facts, "default_transaction_read_only")
        return problem(
            "writable",
            f"default_transaction_read_only is on (set by: {where}): our sessions only read",
            "reset it where it was set: ALTER DATABASE, ALTER ROLE or postgresql.conf",
        )
    return ok("writable", "this server is a primary and takes writes")


def isolation(facts: Facts) -> Finding:
    """A call sees what others have committed while it waited for them."""
    name = "default_transaction_isolation"
    found = facts.host.isolation
    if found == server.READ_COMMITTED:
        return ok("isolation", found)
    return problem(
        "isolation",
        f"{name} is {found} (set by: {_source(facts, name)}): jobs could be stored or run twice, "
        "so that the store is not opened",
        server.isolation_remedy(facts.user),
    )


def array_nulls(facts: Facts) -> Finding:
    """Lists are read as they are meant."""
    if facts.host.array_nulls:
        return ok("array_nulls", "on")
    return problem(
        "array_nulls",
        f"off (set by: {_source(facts, 'array_nulls')}): what is missing in a list would be stored "
        "as the word NULL, so that the store is not opened",
        server.array_nulls_remedy(facts.user),
    )


def _source(facts: Facts, name: str) -> str:
    found = facts.settings.get(name)
    return "unknown" if found is None else found.source


def connections(facts: Facts) -> Finding:
    """There is room for more processes."""
    kept = facts.number("superuser_reserved_connections") + facts.number("reserved_connections")
    most = facts.number("max_connections") - kept
    text = f"{facts.connections} of {most} connections in use"
    remedy = "raise max_connections, use fewer processes, a smaller pool=… in the url, or a pooler"
    if facts.connections >= most:
        return problem("connections", f"{text}: no process can be added", remedy)
    if facts.connections > _CROWDED * most:
        return warning("connections", f"{text}: few are left", remedy)
    return ok("connections", text)


def timeouts(facts: Facts) -> Finding:
    """Nothing cuts off our calls. Only those that count for a call matter: we hold nothing open."""
    short = [
        (name, facts.number(name))
        for name in ("statement_timeout", "transaction_timeout", "lock_timeout")
        if 0 < facts.number(name) < _SHORT_MS
    ]
    if short:
        name, value = short[0]
        effect = (
            "a call that waits longer for another one has to begin again"
            if name == "lock_timeout"
            else "a call that takes longer under load is cut off and fails with store-busy"
        )
        return warning(
            "timeouts",
            f"{name} is {value} ms (set by: {_source(facts, name)}): {effect}",
            f"give our role more: ALTER ROLE {server.quoted(facts.user)} SET {name} = '60s'",
        )
    if facts.number("idle_session_timeout"):
        return note(
            "timeouts",
            f"idle_session_timeout is {facts.number('idle_session_timeout')} ms: quiet "
            "connections are cut, and made anew when needed",
            f"ALTER ROLE {facts.user} SET idle_session_timeout = 0",
        )
    return ok("timeouts", "none that would cut off our calls")


def jit(facts: Facts) -> Finding:
    """Short statements are not compiled."""
    cost = float(facts.setting("jit_above_cost", "100000"))
    if facts.setting("jit") == "on" and 0 <= cost < _LITTLE_COST:
        return warning(
            "jit",
            f"on, from a cost of {cost:g}: PostgreSQL compiles even our short statements, which "
            "takes longer than running them",
            f"ALTER ROLE {facts.user} SET jit = off",
        )
    return ok("jit", "our statements are not compiled")


def clock(facts: Facts) -> Finding:
    """The server's clock rules; clients turn dates into delays by their own."""
    limit = facts.lease_ms / 4
    surely = max(0.0, abs(facts.skew_ms) - facts.doubt_ms)
    side = "ahead of" if facts.skew_ms > 0 else "behind"
    text = f"the server is {abs(facts.skew_ms):.0f} ms {side} this machine"
    if surely > limit:
        return warning(
            "clock",
            f"{text}, more than a quarter of a lease ({limit:.0f} ms): dates given to `run_at`, "
            "and those shown here, are off by that",
            "set both clocks by NTP (timedatectl, chronyc tracking)",
        )
    return ok("clock", f"{text} (± {facts.doubt_ms:.0f} ms)")


def pooler(facts: Facts) -> Finding:
    """Who stands between us and the server."""
    if facts.pooled:
        return note(
            "pooler",
            "a pooler lends connections for single transactions; all calls work, wake-ups do not",
            "write listen=off in the url, which saves one connection per process; or let this url "
            "go past the pooler",
        )
    if facts.between:
        return note("pooler", "something between us and the server keeps connections for us")
    return ok("pooler", "none: we speak to the server itself")


def wakeups(facts: Facts) -> Finding:
    """Workers are told of new jobs."""
    if facts.heard is None:
        return note("wake-ups", "off (listen=off in the url): workers find new jobs by polling")
    if facts.news > _MANY_NEWS:
        return warning(
            "wake-ups",
            f"the server's queue of notifications is {100 * facts.news:.0f} % full: somebody, in "
            "any database, has said LISTEN and keeps a transaction open; when it is full, workers "
            "find new jobs by polling",
            "end sessions that are `idle in transaction` (pg_stat_activity); "
            "idle_in_transaction_session_timeout guards against them",
        )
    if facts.heard:
        return ok("wake-ups", "NOTIFY arrives: workers are told of new jobs at once")
    return warning(
        "wake-ups",
        "NOTIFY does not arrive: workers find new jobs by polling, a second later at most",
        "let the url go past the pooler, or write listen=off in it",
    )


CHECKS = (
    version,
    encoding,
    writable,
    isolation,
    array_nulls,
    connections,
    timeouts,
    jit,
    clock,
    pooler,
    wakeups,
)

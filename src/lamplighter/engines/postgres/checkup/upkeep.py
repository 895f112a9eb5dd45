"""What keeps tables small: vacuum, and what stands in its way."""

from __future__ import annotations

from lamplighter.engines.postgres.checkup.facts import Facts, Holder
from lamplighter.port.checkup import Finding, note, ok, problem, warning

_LONG_SECONDS = 60.0
_MANY_DEAD = 50_000
_SWEPT = ("job", "turn", "arrival", "share")
"""Tables whose rows live for seconds; the migration sets when they are swept."""


def autovacuum(facts: Facts) -> Finding:
    """Dead rows are swept."""
    for name in ("autovacuum", "track_counts"):
        if facts.setting(name, "on") == "off":
            return problem(
                "autovacuum",
                f"{name} is off: tables grow without end, and every call gets slower",
                f"set {name} = on in postgresql.conf and reload",
            )
    idle = [one.name for one in facts.relations if "autovacuum_enabled=false" in one.options]
    if idle:
        return problem(
            "autovacuum",
            f"switched off for the table `{idle[0]}`, which grows without end",
            f"ALTER TABLE {facts.schema}.{idle[0]} RESET (autovacuum_enabled)",
        )
    unset = [
        one.name
        for one in facts.relations
        if one.kind == "r"
        and one.name in _SWEPT
        and not any(option.startswith("autovacuum_vacuum_") for option in one.options)
    ]
    if unset:
        return warning(
            "autovacuum",
            f"the table `{unset[0]}` has lost its own settings and is swept too late",
            f"ALTER TABLE {facts.schema}.{unset[0]} SET (autovacuum_vacuum_scale_factor = 0, "
            "autovacuum_vacuum_threshold = 1000)",
        )
    return ok("autovacuum", "on; the tables in motion are swept early")


def horizon(facts: Facts) -> Finding:
    """Nobody keeps dead rows from being swept."""
    slots = [one for one in facts.holders if one.kind == "replication slot"]
    if slots:
        return warning(
            "transactions",
            f"the replication slot `{slots[0].name}` is used by nobody and keeps dead rows from "
            "being swept",
            f"start its standby, or SELECT pg_drop_replication_slot('{slots[0].name}')",
        )
    oldest = max(facts.holders, key=lambda one: one.seconds or 0.0, default=None)
    if oldest is not None and (oldest.seconds or 0.0) > _LONG_SECONDS:
        return warning(
            "transactions",
            f"{_told(oldest)}: it keeps dead rows from being swept, and claims get slower",
            _end(oldest),
        )
    if not facts.sees_all:
        return note(
            "transactions",
            f"unverified: the user `{facts.user}` may not see other users' transactions",
            f"GRANT pg_monitor TO {facts.user}",
        )
    return ok("transactions", f"none open for longer than {_LONG_SECONDS:.0f} s")


def _told(holder: Holder) -> str:
    since = f"for {holder.seconds or 0.0:.0f} s"
    if holder.kind != "session":
        return f"the {holder.kind} `{holder.name}` of `{holder.user}` has been open {since}"
    return (
        f"session {holder.name} (application `{holder.application}`, user `{holder.user}`, "
        f"{holder.state}) has had a transaction open {since}"
    )


def _end(holder: Holder) -> str:
    if holder.kind == "session":
        return (
            f"let it end, or SELECT pg_terminate_backend({holder.name}); "
            "idle_in_transaction_session_timeout guards against forgotten ones"
        )
    return f"COMMIT PREPARED '{holder.name}' or ROLLBACK PREPARED '{holder.name}'"


def wraparound(facts: Facts) -> Finding:
    """Old rows are frozen in time."""
    for what, age, setting in (
        ("transaction", facts.xid_age, "autovacuum_freeze_max_age"),
        ("multixact", facts.multixact_age, "autovacuum_multixact_freeze_max_age"),
    ):
        limit = facts.number(setting)
        if limit and age > limit / 2:
            grade = problem if age > 2 * limit else warning
            return grade(
                "wraparound",
                f"the oldest {what} id is {age:,} old, {100 * age // limit} % of {setting}; the "
                "server stops taking writes at 2 billion",
                "see that autovacuum keeps up and nothing holds it back; VACUUM (FREEZE) at a "
                "quiet time",
            )
    return ok("wraparound", f"the oldest transaction id is {facts.xid_age:,} old")


def bloat(facts: Facts) -> Finding:
    """Tables hold more rows than dead ones."""
    full = [
        one
        for one in facts.relations
        if one.kind == "r" and one.dead > _MANY_DEAD and one.dead > one.live
    ]
    if full:
        worst = max(full, key=lambda one: one.dead)
        return warning(
            "bloat",
            f"the table `{worst.name}` has {worst.dead:,} dead rows beside {worst.live:,} live "
            f"ones ({worst.bytes / 2**20:.0f} MiB)",
            f"VACUUM (ANALYZE) {facts.schema}.{worst.name}; if they stay, look for open "
            "transactions",
        )
    return ok("bloat", f"{sum(one.dead for one in facts.relations):,} dead rows in all tables")


CHECKS = (autovacuum, horizon, wraparound, bloat)

"""What may be forgotten: the settings that decide it, and what they come to."""

from __future__ import annotations

from lamplighter.engines.postgres.checkup.facts import Facts, Standby
from lamplighter.port.checkup import Finding, note, ok, problem, warning

_WAITING = ("on", "remote_apply", "remote_write")
_ACCEPT = "or accept the loss with durability=none in the url"
_TOLD = "the url accepts this with durability=none"


def fsync(facts: Facts) -> Finding:
    """Commits reach the disk."""
    if facts.host.fsync:
        return ok("fsync", "on: a commit is on the disk")
    text = "off: a crash of the machine may destroy the whole database"
    remedy = "set fsync = on in postgresql.conf and reload"
    if facts.durable:
        return problem("fsync", text, f"{remedy}; {_ACCEPT}")
    return warning("fsync", f"{text}; {_TOLD}", remedy)


def full_page_writes(facts: Facts) -> Finding:
    """A page that was half written can be put right."""
    if facts.setting("full_page_writes", "on") == "on":
        return ok("full_page_writes", "on: a page half written by a crash can be put right")
    return warning(
        "full_page_writes",
        "off: a crash of the machine may leave pages half written, unless the file system never "
        "does that (ZFS)",
        "set full_page_writes = on in postgresql.conf and reload",
    )


def synchronous_commit(facts: Facts) -> Finding:
    """An answer is given after the commit is on the disk."""
    name = "synchronous_commit"
    value = facts.host.synchronous_commit
    found = facts.settings.get(name)
    source = "" if found is None else f" (set by: {found.source})"
    if value == "off":
        text = f"off{source}: a crash of the server loses the commits of its last moments"
        remedy = "set synchronous_commit = on where it was switched off"
        if facts.durable:
            return problem(name, text, f"{remedy}; {_ACCEPT}")
        return warning(name, f"{text}; {_TOLD}", remedy)
    others = [one for one in facts.overrides if one.name == name and one.value == "off"]
    others = [one for one in others if one.role not in (None, facts.user)]
    if others:
        return warning(
            name,
            f"{value} for us, but off for the sessions of `{others[0].role}`; if that role runs "
            "jobs, its processes are refused",
            f"{others[0].place} RESET synchronous_commit",
        )
    return ok(name, f"{value}{source}: jobs are acknowledged when they are on the disk")


def standbys(facts: Facts) -> Finding:
    """Those who follow are near."""
    if not facts.standbys:
        return note("standbys", "none connected: if the server's disk is lost, so are the jobs")
    if not facts.sees_all:
        return note(
            "standbys",
            f"{len(facts.standbys)} connected; the user `{facts.user}` may not see how far behind",
            f"GRANT pg_monitor TO {facts.user}",
        )
    late = [one for one in facts.standbys if one.state != "streaming" or (one.behind_ms or 0) > 1e4]
    if late:
        return warning(
            "standbys",
            f"`{late[0].name}` is {late[0].state}, {behind(late[0])}: a failover to it now would "
            "lose that",
            "look at the standby's log, its disk and the network between",
        )
    told = ", ".join(f"`{one.name}` ({one.sync}, {behind(one)})" for one in facts.standbys)
    return ok("standbys", told)


CHECKS = (fsync, full_page_writes, synchronous_commit, standbys)


def survives(facts: Facts) -> dict[str, str]:
    """Say of each accident whether an acknowledged job survives it."""
    commit = facts.host.synchronous_commit
    settings = f"synchronous_commit={commit}, fsync={'on' if facts.host.fsync else 'off'}"
    waited = commit != "off"
    lost = "no: the commits of the last moments may be lost"
    return {
        "death of a process": "yes",
        "crash of the server": f"yes ({settings})" if waited else f"{lost} ({settings})",
        "power loss of its machine": _power(facts, settings),
        "failover": _failover(facts),
    }


def _power(facts: Facts, settings: str) -> str:
    if not facts.host.fsync:
        return f"no: the database itself may be destroyed ({settings})"
    if facts.host.synchronous_commit == "off":
        return f"no: the commits of the last moments may be lost ({settings})"
    return f"yes, if the disk keeps what it says it has written ({settings})"


def _failover(facts: Facts) -> str:
    if not facts.standbys:
        return "there is no standby to fail over to"
    if not facts.sees_all:
        return f"unverified: the user `{facts.user}` may not see the standbys"
    waited = facts.host.synchronous_commit in _WAITING
    safe = [one for one in facts.standbys if one.sync in ("sync", "quorum") and waited]
    loose = [one for one in facts.standbys if one not in safe]
    parts: list[str] = []
    if safe:
        names = ", ".join(f"`{one.name}`" for one in safe)
        parts.append(f"yes to {names}, which confirms each commit")
    if loose:
        told = ", ".join(f"`{one.name}`: {behind(one)}" for one in loose)
        parts.append(
            "to an asynchronous standby, what it had not received may be lost; at this moment "
            f"{told}"
        )
    return "; ".join(parts)


def behind(standby: Standby) -> str:
    """Say how far behind a standby is."""
    if standby.behind_bytes is None:
        return "how far behind is not known"
    late = "" if standby.behind_ms is None else f", {standby.behind_ms:.0f} ms"
    return f"{standby.behind_bytes:,.0f} bytes{late} behind"

"""Values as text, as every engine keeps them in its columns: JSON that any content survives."""

from __future__ import annotations

import json
from typing import Any

from lamplighter.model.ids import KEY_SEPARATOR
from lamplighter.model.job import NO_EXTRAS, ErrorInfo, Extras, Mark, Refusal
from lamplighter.model.journal import Progress
from lamplighter.model.retry import Retry
from lamplighter.port.schedules import Backfill


def clean(text: str) -> str:
    """Make any text storable: lone surrogates are replaced, NULs dropped."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def is_nobody(tenant: str | None) -> bool:
    """Tell whether no tenant can have this name, so that nothing belongs to it; None: to any."""
    return tenant is not None and (not tenant or KEY_SEPARATOR in tenant or clean(tenant) != tenant)


def extras_to_text(extras: Extras) -> str | None:
    """Return the stored form, or None when there is nothing to store."""
    if extras is NO_EXTRAS:
        return None
    values: dict[str, Any] = {}
    if extras.retry is not None:
        values["retry"] = extras.retry.to_json()
    if extras.timeout is not None:
        values["timeout"] = extras.timeout
    if extras.tags:
        values["tags"] = extras.tags
    if extras.metadata:
        values["metadata"] = dict(extras.metadata)
    if extras.secrets:
        values["secrets"] = extras.secrets
    return json.dumps(values) if values else None


def extras_of(text: str | None) -> Extras:
    """Read the stored form. What cannot be read counts as not given.

    One such row must not keep a claim or a rescue from all the others.
    """
    if text is None:
        return NO_EXTRAS
    try:
        values = json.loads(text)
        return Extras(
            retry=Retry.from_json(values["retry"]) if "retry" in values else None,
            timeout=values.get("timeout"),
            tags=tuple(values.get("tags", ())),
            metadata=values.get("metadata", {}),
            secrets=tuple(values.get("secrets", ())),
        )
    except (ValueError, TypeError, AttributeError, KeyError):
        return NO_EXTRAS


def mark_to_text(by: str, reason: str, at_ms: int) -> str:
    """Write who did something, why and when."""
    return json.dumps({"by": clean(by), "reason": clean(reason), "at": at_ms})


def mark_of(text: str | None) -> Mark | None:
    """Read who did something, why and when."""
    if text is None:
        return None
    try:
        values = json.loads(text)
        return Mark(by=values["by"], reason=values["reason"], at_ms=values["at"])
    except (ValueError, TypeError, KeyError):
        return Mark(by="unknown", reason=text, at_ms=0)


def error_to_text(error: ErrorInfo | None) -> str | None:
    """Write an error; any content can be stored."""
    if error is None:
        return None
    values: dict[str, object] = {
        "type": clean(error.type),
        "message": clean(error.message),
        "traceback": clean(error.traceback),
        "fingerprint": clean(error.fingerprint),
        "kinds": [clean(kind) for kind in error.kinds],
    }
    if error.refusals:
        values["refusals"] = [(clean(one.version), one.since_ms) for one in error.refusals]
    return json.dumps(values)


def error_of(text: str | None) -> ErrorInfo | None:
    """Read an error."""
    if text is None:
        return None
    try:
        values = json.loads(text)
        return ErrorInfo(
            type=values["type"],
            message=values["message"],
            traceback=values.get("traceback", ""),
            fingerprint=values.get("fingerprint", ""),
            kinds=tuple(values.get("kinds", ())),
            refusals=tuple(
                Refusal(version=version, since_ms=since)
                for version, since in values.get("refusals", ())
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ErrorInfo(type="Unreadable", message=text)


def progress_to_text(progress: Progress) -> str:
    """Write how far an attempt has come."""
    return json.dumps([progress.done, progress.total, clean(progress.note)])


def progress_of(text: str | None) -> Progress | None:
    """Read how far an attempt has come; what cannot be read says nothing."""
    if text is None:
        return None
    try:
        done, total, note = json.loads(text)
    except (ValueError, TypeError):
        return None
    return Progress(done=done, total=total, note=note)


def backfill_to_text(backfill: Backfill) -> str:
    """Write where a backfill stands."""
    return json.dumps(
        {
            "from": backfill.from_ms,
            "to": backfill.to_ms,
            "cursor": backfill.cursor_ms,
            "limit": backfill.limit,
            "made": backfill.made,
        }
    )


def backfill_of(text: str | None) -> Backfill | None:
    """Read where a backfill stands."""
    if text is None:
        return None
    values = json.loads(text)
    return Backfill(
        from_ms=values["from"],
        to_ms=values["to"],
        cursor_ms=values["cursor"],
        limit=values["limit"],
        made=values["made"],
    )

"""What a schedule is, as the text that stores keep. Equal schedules have equal texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, cast

from lamplighter.model import schedule
from lamplighter.model.errors import InvalidInput
from lamplighter.model.ids import schedule_key
from lamplighter.model.job import Delivery, Level
from lamplighter.model.names import shown
from lamplighter.model.recurring import DEFAULT_POLICY, CatchUp, Overlap, Policy, Spec, Template
from lamplighter.port.texts import extras_of, extras_to_text

_KINDS = {"overlap": Overlap, "catch_up": CatchUp}


def to_text(spec: Spec) -> str:
    """Write a spec."""
    template = spec.template
    values: dict[str, Any] = {
        "calendar": schedule.encode(spec.calendar),
        "type": template.type,
        "args": template.args.decode(),
        "queue": template.queue,
        "level": int(template.level),
        "tenant": template.tenant,
        "delivery": template.delivery.value,
        "cost": template.cost,
    }
    extras = extras_to_text(template.extras)
    if extras is not None:
        values["extras"] = extras
    policy = {
        field.name: value
        for field in fields(Policy)
        if (value := getattr(spec.policy, field.name)) != getattr(DEFAULT_POLICY, field.name)
    }
    if policy:
        values["policy"] = policy
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=1024)
def from_text(text: str, schedule_id: str) -> Spec:
    """Read a spec; its tenant and the id of the schedule decide what is hashed.

    What it costs does not depend on when the schedule fires: that was looked at when it was put.
    """
    try:
        values = cast("dict[str, Any]", json.loads(text))
        seed = schedule_key(values["tenant"], schedule_id)
        given = dict(values.get("policy", {}))
        for name, kind in _KINDS.items():
            if name in given:
                given[name] = kind(given[name])
        return Spec(
            calendar=_calendar(values["calendar"], seed),
            template=Template(
                type=values["type"],
                args=values["args"].encode(),
                queue=values["queue"],
                level=Level(values["level"]),
                tenant=values["tenant"],
                delivery=Delivery(values["delivery"]),
                extras=extras_of(values.get("extras")),
                cost=values["cost"],
            ),
            policy=Policy(**given) if given else DEFAULT_POLICY,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"what is stored of the schedule {shown(schedule_id)} cannot be read: {error!r}",
            hint="it was written by another version, or by something else: put it again",
            value=schedule_id,
        ) from error


def _calendar(values: Mapping[str, Any], seed: str) -> schedule.Calendar:
    """Read a calendar. Very many schedules have one that others have too, and share it."""
    if values["kind"] == "cron" and "H" not in values["expression"].upper():
        # Without an `H` the seed decides nothing.
        return _shared(tuple(sorted(values.items())))
    return schedule.decode(values, seed=seed, stored=True)


@lru_cache(maxsize=2048)
def _shared(items: tuple[tuple[str, Any], ...]) -> schedule.Calendar:
    return schedule.decode(dict(items), stored=True)

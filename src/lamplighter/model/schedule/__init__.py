"""Calendars: when a schedule fires. Pure values, which answer from their own content alone."""

from lamplighter.model.schedule.calendar import Calendar
from lamplighter.model.schedule.codec import decode, encode
from lamplighter.model.schedule.combine import Except, Union
from lamplighter.model.schedule.cron import Cron, Gap, Overlap
from lamplighter.model.schedule.days import Days
from lamplighter.model.schedule.instants import EPOCH
from lamplighter.model.schedule.interval import Interval
from lamplighter.model.schedule.once import Once
from lamplighter.model.schedule.preview import Effect, Preview, Touch, next_touch, preview
from lamplighter.model.schedule.rrule import RRule
from lamplighter.model.schedule.walls import Mark
from lamplighter.model.schedule.zones import tzdata_version, zone

__all__ = [
    "EPOCH",
    "Calendar",
    "Cron",
    "Days",
    "Effect",
    "Except",
    "Gap",
    "Interval",
    "Mark",
    "Once",
    "Overlap",
    "Preview",
    "RRule",
    "Touch",
    "Union",
    "decode",
    "encode",
    "next_touch",
    "preview",
    "tzdata_version",
    "zone",
]

"""Schedules as a program uses them."""

from lamplighter.schedules.making import ScheduleOptions, looked_at_next, new_schedule
from lamplighter.schedules.schedules import Schedules
from lamplighter.schedules.stored import Schedule
from lamplighter.schedules.upcoming import next_touch, upcoming

__all__ = [
    "Schedule",
    "ScheduleOptions",
    "Schedules",
    "looked_at_next",
    "new_schedule",
    "next_touch",
    "upcoming",
]

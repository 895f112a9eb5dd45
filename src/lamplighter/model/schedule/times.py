"""Times of a day: hours, minutes and seconds, each a set."""

from __future__ import annotations

from collections.abc import Iterator


class Times:
    """Every time of day whose hour, minute and second are in three sets.

    Bit n of a mask stands for the value n. Times are seconds since midnight; -1 is none.
    """

    __slots__ = ("first", "hours", "last", "minutes", "seconds")

    def __init__(self, hours: int, minutes: int, seconds: int) -> None:
        self.hours = hours
        self.minutes = minutes
        self.seconds = seconds
        self.first = low(hours) * 3600 + low(minutes) * 60 + low(seconds)
        self.last = high(hours) * 3600 + high(minutes) * 60 + high(seconds)

    @property
    def parts(self) -> tuple[int, int, int]:
        """The three sets."""
        return self.hours, self.minutes, self.seconds

    def __len__(self) -> int:
        return self.hours.bit_count() * self.minutes.bit_count() * self.seconds.bit_count()

    def __iter__(self) -> Iterator[int]:
        minutes, seconds = [*bits(self.minutes)], [*bits(self.seconds)]
        for hour in bits(self.hours):
            for minute in minutes:
                for second in seconds:
                    yield hour * 3600 + minute * 60 + second

    def next(self, time: int) -> int:
        """Return the first time at or after this one."""
        hour, rest = divmod(time, 3600)
        minute, second = divmod(rest, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                left = self.seconds >> second
                if left:
                    return hour * 3600 + minute * 60 + second + low(left)
            left = self.minutes >> minute + 1
            if left:
                return hour * 3600 + (minute + 1 + low(left)) * 60 + low(self.seconds)
        left = self.hours >> hour + 1
        if left:
            return (hour + 1 + low(left)) * 3600 + low(self.minutes) * 60 + low(self.seconds)
        return -1

    def previous(self, time: int) -> int:
        """Return the last time at or before this one."""
        hour, rest = divmod(time, 3600)
        minute, second = divmod(rest, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                left = self.seconds & (2 << second) - 1
                if left:
                    return hour * 3600 + minute * 60 + high(left)
            left = self.minutes & (1 << minute) - 1
            if left:
                return hour * 3600 + high(left) * 60 + high(self.seconds)
        left = self.hours & (1 << hour) - 1
        if left:
            return high(left) * 3600 + high(self.minutes) * 60 + high(self.seconds)
        return -1


def low(mask: int) -> int:
    """Return the smallest value of a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


def high(mask: int) -> int:
    """Return the largest value of a mask that is not empty."""
    return mask.bit_length() - 1


def bits(mask: int) -> Iterator[int]:
    """Return the values of a mask, the smallest first."""
    while mask:
        yield low(mask)
        mask &= mask - 1

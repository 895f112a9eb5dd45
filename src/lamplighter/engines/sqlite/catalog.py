"""Lanes and bands by number: what is asked for, what is held, known without a query.

The catalogue is a process's copy of a few small tables. Each transaction compares the version; a
rolled-back transaction drops the copy, because it may hold numbers that were never committed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model.job import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.values import ClaimRequest

SQL = load("catalog")


@dataclass(frozen=True, slots=True)
class Lane:
    """Jobs that are interchangeable for a worker."""

    id: int
    band: int
    queue: str
    level: Level
    type: str
    requirement: str


@dataclass(slots=True)
class Band:
    """A (queue, level) and its lanes."""

    id: int
    queue: str
    level: Level
    lanes: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class AskedBand:
    """A band in a claim: all its lanes, as JSON, and those the claimer can serve."""

    id: int
    all_lanes: str
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AskedQueue:
    """A queue in a claim: its bands, highest level first, and all lanes asked for, as JSON."""

    bands: tuple[AskedBand, ...]
    lanes: str


class Catalog:
    """In-memory copy of lanes, bands and holds."""

    def __init__(self) -> None:
        self._version = -1
        self.drop()

    def drop(self) -> None:
        """Forget everything; the next transaction reads it anew."""
        self._version = -1
        self._lanes: dict[tuple[str, Level, str, str], Lane] = {}
        self._by_id: dict[int, Lane] = {}
        self._by_queue: dict[str, list[Lane]] = {}
        self._bands: dict[tuple[str, Level], Band] = {}
        self._held_queues: set[str] = set()
        self._held_types: set[str] = set()
        self._asked: dict[tuple[str, tuple[str, ...], tuple[str, ...]], AskedQueue] = {}

    def refresh(self, tx: Transaction) -> None:
        """Read everything again if the version has moved."""
        version = tx.number(SQL["version"])
        if version == self._version:
            return
        self.drop()
        bands: dict[int, Band] = {}
        for band_id, queue, level in tx.all(SQL["bands"]):
            bands[band_id] = self._bands[queue, Level(level)] = Band(band_id, queue, Level(level))
        for lane_id, band_id, type_name, requirement in tx.all(SQL["lanes"]):
            self._enter(bands[band_id], lane_id, type_name, requirement)
        self._held_queues = {name for (name,) in tx.all(SQL["held_queues"])}
        self._held_types = {name for (name,) in tx.all(SQL["held_types"])}
        self._version = version

    def changed(self, tx: Transaction) -> None:
        """Tell all processes that the catalogue or a setting has changed."""
        tx.run(SQL["bump"])
        self._version = -1
        self.refresh(tx)

    def lane(
        self, tx: Transaction, queue: str, level: Level, type_name: str, requirement: str
    ) -> Lane:
        """Return the lane's number, making it on first use."""
        known = self._lanes.get((queue, level, type_name, requirement))
        if known is not None:
            return known
        band = self._bands.get((queue, level))
        if band is None:
            tx.run(SQL["new_queue"], queue)
            band_id = tx.number(SQL["new_band"], queue, int(level))
            band = self._bands[queue, level] = Band(band_id, queue, level)
        lane_id = tx.number(SQL["new_lane"], band.id, type_name, requirement)
        lane = self._enter(band, lane_id, type_name, requirement)
        tx.run(SQL["bump"])
        self._version += 1
        self._asked.clear()
        return lane

    def beside(self, tx: Transaction, lane_id: int, requirement: str) -> int:
        """Return the number of the lane that differs from one in its requirement alone."""
        lane = self._by_id[lane_id]
        if lane.requirement == requirement:
            return lane_id
        return self.lane(tx, lane.queue, lane.level, lane.type, requirement).id

    def by_id(self, lane_id: int) -> Lane:
        """Return the lane with this number."""
        return self._by_id[lane_id]

    def lanes_of(self, queue: str) -> list[Lane]:
        """Return all lanes of a queue, highest level first."""
        return sorted(self._by_queue.get(queue, ()), key=lambda lane: (lane.level, lane.id))

    def all_lanes(self) -> list[Lane]:
        """Return all lanes."""
        return list(self._by_id.values())

    def asked(self, request: ClaimRequest, queue: str) -> AskedQueue:
        """Return a queue's bands with the lanes this claimer can serve; none if it is held."""
        key = (queue, request.types, request.requirements)
        found = self._asked.get(key)
        if found is None:
            bands = tuple(self._bands_for(request, queue))
            lanes = json.dumps([lane for band in bands for lane in band.lanes])
            found = self._asked[key] = AskedQueue(bands, lanes)
        return found

    def _bands_for(self, request: ClaimRequest, queue: str) -> Iterator[AskedBand]:
        if queue in self._held_queues:
            return
        types = set(request.types) - self._held_types
        for level in Level:
            band = self._bands.get((queue, level))
            if band is None:
                continue
            lanes = [self._by_id[lane_id] for lane_id in band.lanes]
            asked = tuple(
                lane.id
                for lane in lanes
                if lane.type in types and lane.requirement in request.requirements
            )
            if asked:
                yield AskedBand(band.id, json.dumps(band.lanes), asked)

    def _enter(self, band: Band, lane_id: int, type_name: str, requirement: str) -> Lane:
        lane = Lane(lane_id, band.id, band.queue, band.level, type_name, requirement)
        self._lanes[band.queue, band.level, type_name, requirement] = lane
        self._by_id[lane_id] = lane
        self._by_queue.setdefault(band.queue, []).append(lane)
        band.lanes.append(lane_id)
        return lane

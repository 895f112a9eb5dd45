"""`lamplighter dlq`: the dead letters, by cause; retry, replay or remove them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from lamplighter.cli import noting, output, reading, shapes, store
from lamplighter.cli.answers import print_answers
from lamplighter.cli.jobs import PAGE, print_jobs, show_job
from lamplighter.cli.listing import ListingGroup
from lamplighter.cli.pace import Pace, Tally
from lamplighter.model.errors import InvalidInput, InvalidName, WrongState
from lamplighter.model.filters import NO_FINGERPRINT, Filter, fingerprints_of
from lamplighter.model.ids import check_id
from lamplighter.model.job import Attempt, JobRecord, JobState
from lamplighter.model.names import shown
from lamplighter.port.store import Engine
from lamplighter.port.values import SCAN_LIMIT, ChangeAnswer, Changed, DeadGroup, DeadGroups

Command = TypeVar("Command", bound=Callable[..., Any])

_EXAMPLES = 20
_WORDS = {"retry": "retried", "replay": "run again", "purge": "removed"}


@dataclass(frozen=True, slots=True)
class Note:
    """Who does it, and why."""

    by: str
    reason: str


def filter_options(command: Command) -> Command:
    """Let the user say which dead letters."""
    for option in reversed(
        (
            click.option("--type", "types", multiple=True, help="Only jobs of this type."),
            click.option("--queue", "queues", multiple=True, help="Only jobs of this queue."),
            click.option("--tenant", "tenants", multiple=True, help="Only jobs of this tenant."),
            click.option(
                "--fingerprint",
                "fingerprints",
                multiple=True,
                help="Only this cause; `none`: without one.",
            ),
            click.option("--after", metavar="TIME", help="Died after: an ISO time, or 2h for ago."),
            click.option("--before", metavar="TIME", help="Died before: an ISO time, or 2h."),
        )
    ):
        command = option(command)
    return command


@click.group(cls=ListingGroup, short_help="Look at dead letters; retry, replay or purge them.")
def dlq() -> None:
    """List, show, retry, replay and purge dead letters: jobs that failed for good."""


# ── look ─────────────────────────────────────────────────────────────────────────────────────


@dlq.command("list")
@filter_options
@store.store_options
def list_groups(url: str | None, *, as_json: bool, **chosen: Any) -> None:
    """List dead letters by type and cause, the most frequent first."""
    found = store.run(_groups(url, _filter(**chosen)))
    if as_json:
        groups = [shapes.dead_group(group) for group in found.groups]
        output.print_json({"groups": groups, "at_least": found.at_least})
        return
    output.print_table(
        [">count", "~type", "fingerprint", "newest", "?example", "~cause"],
        (
            [
                output.count(group.count, at_least=found.at_least),
                group.type,
                group.fingerprint or NO_FINGERPRINT,
                output.away(group.newest_at_ms),
                group.example,
                (_cause(group), "red"),
            ]
            for group in found.groups
        ),
        empty="no dead letters",
    )
    if found.at_least:
        output.note(f"only the newest {SCAN_LIMIT:,} dead letters were looked at")


def _cause(group: DeadGroup) -> str:
    error = group.error
    return output.cause(error.text if error else group.reason)


@dlq.command()
@click.argument("which", metavar="ID|FINGERPRINT")
@store.store_options
def show(which: str, url: str | None, *, as_json: bool) -> None:
    """Show one dead letter with its attempts and traceback, or all with one cause."""
    try:
        job_id = check_id(which)
    except InvalidName:
        _show_cause(which, url, as_json=as_json)
        return
    record, attempts = store.run(_letter(url, job_id))
    show_job(record, attempts, as_json=as_json)


def _show_cause(fingerprint: str, url: str | None, *, as_json: bool) -> None:
    records = store.run(_collect(url, _dead(fingerprints=fingerprints_of([fingerprint]))))
    if not records:
        raise InvalidInput(
            f"{shown(fingerprint)} is neither a job id nor the fingerprint of a dead letter",
            hint="`lamplighter dlq list` shows both",
            value=fingerprint,
        )
    if as_json:
        output.print_json({"jobs": [shapes.job(record) for record in records]})
    else:
        print_jobs(records, empty="")


# ── act ──────────────────────────────────────────────────────────────────────────────────────


def again_options(command: Command) -> Command:
    """Let the user say which dead letters are to run again, and how fast."""
    for option in reversed(
        (
            click.argument("job_ids", metavar="[ID]...", nargs=-1),
            filter_options,
            click.option("--all", "everything", is_flag=True, help="All dead letters."),
            click.option("--dry-run", is_flag=True, help="Only show what would be run again."),
            click.option(
                "--rate",
                type=click.FloatRange(min=0.01, max=100_000),
                metavar="N",
                help="At most so many a second, so that those who run them are not flooded.",
            ),
            store.operator_options,
            store.store_options,
        )
    ):
        command = option(command)
    return command


@dlq.command()
@again_options
def retry(**given: Any) -> None:
    """Retry dead letters, by id or by filter: they go on, with all attempts anew.

    Their effect keys stay: what they have done outside with them is not done twice.
    """
    _run_again("retry", **given)


@dlq.command()
@again_options
def replay(**given: Any) -> None:
    """Start dead letters anew, by id or by filter: same id, next generation.

    Their effect keys are new: what they do outside is done again.
    """
    _run_again("replay", **given)


def _run_again(
    verb: str,
    *,
    job_ids: tuple[str, ...],
    rate: float | None,
    by: str | None,
    reason: str,
    url: str | None,
    everything: bool,
    dry_run: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    if rate is not None and math.isnan(rate):
        raise click.UsageError("--rate nan is no number: give how many a second, as in --rate 10")
    which = _choice(verb, job_ids, chosen, everything=everything)
    if dry_run:
        _foresee(url, job_ids, which, f"would be {_WORDS[verb]}", as_json=as_json)
        return
    ids = reading.ids(job_ids)
    note = Note(store.operator(by), reason)
    _act(verb, ids, which, url=url, note=note, as_json=as_json, rate=rate)


@dlq.command()
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@filter_options
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Really remove them; they cannot be brought back.")
@store.operator_options
@store.store_options
def purge(
    job_ids: tuple[str, ...],
    by: str | None,
    reason: str,
    url: str | None,
    *,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Remove dead letters for ever, by id or by filter."""
    which = _choice("purge", job_ids, chosen, everything=everything)
    if dry_run:
        _foresee(url, job_ids, which, "would be removed for ever", as_json=as_json)
        return
    ids = reading.ids(job_ids)
    if not yes:
        number = len(store.run(_chosen(url, ids, which)))
        if not number:
            _report("purge", [], as_json=as_json)
            return
        raise InvalidInput(
            f"{output.letters(number)} would be removed for ever, and --yes was not given; nothing "
            "was done",
            hint="add --yes to remove them, or --dry-run to see which",
            value=number,
        )
    _act("purge", ids, which, url=url, note=Note(store.operator(by), reason), as_json=as_json)


def _choice(
    verb: str, job_ids: Sequence[str], chosen: dict[str, Any], *, everything: bool
) -> Filter:
    """Give the filter, and refuse to act on everything by mistake or on two things at once."""
    filtered = any(chosen.values())
    if sum((bool(job_ids), filtered, everything)) > 1:
        raise click.UsageError("give ids, a filter or --all, not several of them")
    if not (job_ids or filtered or everything):
        raise click.UsageError(f"nothing chosen to {verb}: give ids, a filter or --all")
    return _filter(**chosen)


def _foresee(
    url: str | None, job_ids: Sequence[str], which: Filter, what: str, *, as_json: bool
) -> None:
    records = store.run(_chosen(url, reading.ids(job_ids), which))
    if as_json:
        ids = [record.job.id for record in records]
        output.print_json({"dry_run": True, "count": len(ids), "ids": ids})
        return
    print_jobs(records[:_EXAMPLES], empty="no dead letters match")
    if len(records) > _EXAMPLES:
        output.print_text(f"… and {len(records) - _EXAMPLES} more")
    output.note(f"\n{output.letters(len(records))} {what}; nothing was done")


def _act(
    verb: str,
    ids: Sequence[str],
    which: Filter,
    *,
    url: str | None,
    note: Note,
    as_json: bool,
    rate: float | None = None,
) -> None:
    answers = store.run(_change(verb, ids, which, url=url, note=note, rate=rate))
    if ids:
        print_answers(verb, answers, as_json=as_json)
    else:
        _report(verb, answers, as_json=as_json)


def _report(verb: str, answers: Sequence[Changed], *, as_json: bool) -> None:
    """Say how many of those that a filter has chosen were changed."""
    counts = Counter(answer.answer.value for answer in answers)
    if as_json:
        output.print_json({"count": len(answers), "answers": dict(counts)})
        return
    done = counts.pop(ChangeAnswer.DONE.value, 0)
    output.print_text(f"{output.letters(done)} {_WORDS[verb]}")
    if not answers:
        output.note("hint: no dead letter was chosen; `lamplighter dlq list` shows all there are")
    elif counts:
        output.note(f"{output.letters(counts.total())} had changed meanwhile and were left alone")


# ── with the store ───────────────────────────────────────────────────────────────────────────


def _filter(
    *,
    types: tuple[str, ...],
    queues: tuple[str, ...],
    tenants: tuple[str, ...],
    fingerprints: tuple[str, ...],
    after: str | None,
    before: str | None,
) -> Filter:
    return _dead(
        types=reading.names("job type", types),
        queues=reading.names("queue", queues),
        tenants=reading.names("tenant", tenants),
        fingerprints=fingerprints_of(reading.names("fingerprint", fingerprints)),
        finished_after_ms=reading.moment_ms("--after", after),
        finished_before_ms=reading.moment_ms("--before", before),
    )


def _dead(**fields: Any) -> Filter:
    return Filter(statuses=("dead",), **fields)


async def _groups(url: str | None, which: Filter) -> DeadGroups:
    async with store.opened(url) as engine:
        return await engine.inspector.dead_groups(which)


async def _letter(url: str | None, job_id: str) -> tuple[JobRecord, list[Attempt]]:
    async with store.opened(url) as engine:
        return await _dead_job(engine, job_id), await engine.inspector.attempts(job_id)


async def _dead_job(engine: Engine, job_id: str) -> JobRecord:
    record = await store.job(engine, job_id)
    if record.state is JobState.DEAD:
        return record
    raise WrongState(
        f"job `{job_id}` is {record.status.value}, not dead",
        hint=f"`lamplighter jobs show {job_id}` shows any job",
        value=record.status.value,
    )


async def _chosen(url: str | None, ids: Sequence[str], which: Filter) -> list[JobRecord]:
    if not ids:
        return await _collect(url, which)
    async with store.opened(url) as engine:
        return [await _dead_job(engine, job_id) for job_id in ids]


async def _collect(url: str | None, which: Filter) -> list[JobRecord]:
    async with store.opened(url) as engine:
        return [record async for page in _pages(engine, which) for record in page]


async def _pages(engine: Engine, which: Filter) -> AsyncIterator[list[JobRecord]]:
    """Read the dead letters from the newest to the oldest, so that none is met a second time."""
    cursor: str | None = None
    while True:
        page = await engine.inspector.jobs(which, limit=PAGE, cursor=cursor)
        if page.jobs:
            yield page.jobs
        cursor = page.cursor
        if cursor is None:
            return


async def _change(
    verb: str,
    ids: Sequence[str],
    which: Filter,
    *,
    url: str | None,
    note: Note,
    rate: float | None,
) -> list[Changed]:
    async with store.opened(url) as engine:
        jobs = engine.jobs
        act = {"retry": jobs.retry, "replay": jobs.replay, "purge": jobs.purge}[verb]

        async def change(some: Sequence[str]) -> list[Changed]:
            return await act(some, by=note.by, reason=note.reason)

        if ids:
            # The verbs take any job that has ended; here only dead ones are meant.
            refused = {job_id: await _refusal(engine, job_id) for job_id in ids}
            dead = [job_id for job_id, refusal in refused.items() if refusal is None]
            tenants = noting.tenants(await noting.known(engine, dead))
            changed = await _paced(engine, dead, change, Pace(rate), Tally(len(dead), _WORDS[verb]))
            await _note(engine, verb, changed, tenants, note)
            done = {answer.id: answer for answer in changed}
            return [refused[job_id] or done[job_id] for job_id in ids]
        pace, tally = Pace(rate), Tally(await _number(engine, which), _WORDS[verb])
        answers: list[Changed] = []
        async for page in _pages(engine, which):
            some = [record.job.id for record in page]
            changed = await _paced(engine, some, change, pace, tally)
            tenants = {record.job.id: record.job.tenant for record in page}
            await _note(engine, verb, changed, tenants, note)
            answers += changed
        return answers


async def _note(
    engine: Engine, verb: str, changed: Sequence[Changed], tenants: Mapping[str, str], note: Note
) -> None:
    about = noting.done(changed, tenants)
    await noting.note(engine, f"dlq.{verb}", about, by=note.by, reason=note.reason)


async def _paced(
    engine: Engine, ids: Sequence[str], change: store.Change, pace: Pace, tally: Tally
) -> list[Changed]:
    answers: list[Changed] = []
    while len(answers) < len(ids):
        some = ids[len(answers) : len(answers) + pace.portion(len(ids))]
        await pace.wait(len(some))
        answers += await store.change(engine, some, change)
        tally.add(len(some))
    return answers


async def _number(engine: Engine, which: Filter) -> int:
    """Say how many there are about: jobs die and are removed meanwhile."""
    return sum(group.count for group in (await engine.inspector.dead_groups(which)).groups)


async def _refusal(engine: Engine, job_id: str) -> Changed | None:
    record = await engine.inspector.job(job_id)
    if record is None:
        return Changed(job_id, ChangeAnswer.UNKNOWN, None)
    if record.state is not JobState.DEAD:
        return Changed(job_id, ChangeAnswer.CONFLICT, record.state)
    return None

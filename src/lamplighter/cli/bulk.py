"""Jobs that are changed by id or by filter: counted first, confirmed, with progress."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from lamplighter.cli import filters, noting, output, reading, store
from lamplighter.cli.answers import print_answers
from lamplighter.cli.listing import print_jobs
from lamplighter.cli.pace import Pace, Tally
from lamplighter.cli.store import Command
from lamplighter.model.changes import Action, ChangeAnswer, Changed
from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidInput, WrongState
from lamplighter.model.filters import EVERY_JOB, Filter
from lamplighter.model.job import JobRecord
from lamplighter.port import bulk
from lamplighter.port.bulk import BulkChange
from lamplighter.port.store import Engine
from lamplighter.port.values import COUNT_LIMIT

_EXAMPLES = 20
_DONE = {
    Action.CANCEL: "cancelled",
    Action.HOLD: "held",
    Action.UNHOLD: "unheld",
    Action.RETRY: "retried",
    Action.REPLAY: "run again",
    Action.PURGE: "removed",
    Action.ERASE: "erased",
}
_WOULD = _DONE | {Action.PURGE: "removed for ever"}
_TO = {Action.REPLAY: "run", Action.PURGE: "remove"}
"""How `--yes` is advertised, where the name of the action is not the word for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a group of commands is about: jobs, or dead letters alone."""

    noun: str
    audited: str
    """First part of the name under which changes are noted."""
    listing: str
    """The command that lists them all."""
    statuses: tuple[str, ...] = ()
    """The only ones that are changed, also by id."""
    confirmed: frozenset[Action]
    """Actions that are confirmed when they are asked for by filter."""
    confirmed_ids: frozenset[Action] = frozenset()
    """…and by id."""

    def count(self, number: int) -> str:
        """Write how many there are."""
        if number >= COUNT_LIMIT:
            return f"at least {counted(number, self.noun)}"
        return counted(number, self.noun)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What somebody wants done, and how."""

    subject: Subject
    action: Action
    ids: Sequence[str]
    which: Filter
    by: str
    reason: str
    rate: float | None
    as_json: bool

    def begin(self, engine: Engine) -> BulkChange:
        """Begin with all that the filter means."""
        return BulkChange(engine, self.action, self.which, by=self.by, reason=self.reason)


def change_options(
    filter_options: Callable[[Command], Command], *, confirmed: bool = True
) -> Callable[[Command], Command]:
    """Let the user say which jobs are changed, by whom, why, and how fast."""
    options: list[Callable[[Any], Any]] = [
        click.argument("job_ids", metavar="[ID]...", nargs=-1),
        filter_options,
        click.option("--all", "everything", is_flag=True, help="All of them, without a filter."),
        click.option("--dry-run", is_flag=True, help="Only show which would be changed."),
        click.option(
            "--rate",
            type=click.FloatRange(min=0.01, max=100_000),
            metavar="N",
            help="At most so many a second, so that those who run them are not flooded.",
        ),
        store.operator_options,
        store.store_options,
    ]
    if confirmed:
        options.insert(4, click.option("--yes", is_flag=True, help="Do not ask for confirmation."))

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def carry_out(
    subject: Subject,
    action: Action,
    *,
    job_ids: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    rate: float | None,
    by: str | None,
    reason: str,
    url: str | None,
    as_json: bool,
    yes: bool = False,
    **given: Any,
) -> None:
    """Do it to the jobs that are meant, or say which they are."""
    if rate is not None and math.isnan(rate):
        raise click.UsageError("--rate nan is no number: give how many a second, as in --rate 10")
    chosen = sum((bool(job_ids), any(given.values()), everything))
    if chosen > 1:
        raise click.UsageError("give ids, a filter or --all, not several of them")
    if not chosen:
        raise click.UsageError(f"nothing chosen to {action}: give ids, a filter or --all")
    if subject.statuses:
        given["statuses"] = subject.statuses
    order = Order(
        subject=subject,
        action=action,
        ids=reading.ids(job_ids),
        which=EVERY_JOB if job_ids else filters.filter_of(**given),
        by=store.operator(by),
        reason=reason,
        rate=rate,
        as_json=as_json,
    )
    if dry_run:
        _foresee(order, url)
    elif order.ids:
        _change_ids(order, url, yes=yes)
    else:
        _change_all(order, url, yes=yes)


# ── look first ───────────────────────────────────────────────────────────────────────────────


def _foresee(order: Order, url: str | None) -> None:
    examples, ids = store.run(_meant(order, url))
    if order.as_json:
        output.print_json({"dry_run": True, "count": len(ids), "ids": ids})
        return
    noun, listed = order.subject.noun, len(ids)
    print_jobs(examples, empty=f"no {noun}s match")
    if listed > len(examples):
        output.print_text(f"… and {listed - len(examples)} more")
    output.note(f"\n{counted(listed, noun)} would be {_WOULD[order.action]}; nothing was done")


async def _meant(order: Order, url: str | None) -> tuple[list[JobRecord], list[str]]:
    """Return some of the jobs that are meant, and the ids of all."""
    async with store.opened(url) as engine:
        if order.ids:
            found = [await named(engine, job_id, order.subject) for job_id in order.ids]
            return found[:_EXAMPLES], list(order.ids)
        examples, ids, change = list[JobRecord](), list[str](), order.begin(engine)
        while not change.over:
            page = await change.read()
            examples += page[: _EXAMPLES - len(examples)]
            ids += [record.job.id for record in page]
        return examples, ids


async def named(engine: Engine, job_id: str, subject: Subject) -> JobRecord:
    """Read a job that is named; one that the commands are not about is refused."""
    record = await store.job(engine, job_id)
    if subject.statuses and record.state.value not in subject.statuses:
        raise WrongState(
            f"job `{job_id}` is {record.status.value}, not dead",
            hint=f"`lamplighter jobs show {job_id}` shows any job",
            value=record.status.value,
        )
    return record


async def _number(order: Order, engine: Engine) -> int:
    """Count the jobs that are meant, as far as that is soon done."""
    number, change = 0, order.begin(engine)
    while not change.over and number < COUNT_LIMIT:
        number += len(await change.read())
    return number


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _confirm(order: Order, number: int) -> None:
    """Ask for the word at a terminal; refuse where nobody can be asked."""
    subject, action = order.subject, order.action
    told = f"{subject.count(number)} would be {_WOULD[action]}"
    if not _can_ask():
        raise InvalidInput(
            f"{told}, and --yes was not given; nothing was done",
            hint=f"add --yes to {_TO.get(action, action.value)} them, or --dry-run to see which",
            value=number,
        )
    output.note(told)
    word = click.prompt(f"Type `{action}` to go on", default="", show_default=False, err=True)
    if str(word).strip().lower() != action.value:
        raise InvalidInput(
            f"{told}, which was not confirmed; nothing was done",
            hint=f"type `{action}`, or give --yes; --dry-run shows which they are",
            value=str(word),
        )


# ── by id ────────────────────────────────────────────────────────────────────────────────────


def _change_ids(order: Order, url: str | None, *, yes: bool) -> None:
    answers, before = store.run(_named(order, url, yes=yes))
    letters = bool(order.subject.statuses)
    print_answers(order.action.value, answers, before, letters=letters, as_json=order.as_json)


async def _named(
    order: Order, url: str | None, *, yes: bool
) -> tuple[list[Changed], dict[str, JobRecord]]:
    """Change the jobs that are named; returns also what they were before."""
    async with store.opened(url) as engine:
        before = await noting.known(engine, order.ids)
        if order.action in order.subject.confirmed_ids and not yes:
            _confirm(order, len(order.ids))
        pace, tally = Pace(order.rate), Tally(len(order.ids), _DONE[order.action])
        answers: list[Changed] = []
        while len(answers) < len(order.ids):
            portion = pace.portion(engine.capabilities.max_batch)
            some = order.ids[len(answers) : len(answers) + portion]
            await pace.wait(len(some))
            changed = await engine.jobs.change(
                order.action,
                some,
                by=order.by,
                reason=order.reason,
                statuses=frozenset(order.subject.statuses),
            )
            answers += changed
            await bulk.wake(engine, order.action, before.values(), changed)
            await _note(order, engine, changed, noting.tenants(before))
            tally.add(len(some))
        return answers, before


async def _note(
    order: Order, engine: Engine, changed: Sequence[Changed], tenants: dict[str, str]
) -> None:
    name = f"{order.subject.audited}.{order.action}"
    about = noting.done(changed, tenants)
    await noting.note(engine, name, about, by=order.by, reason=order.reason)


# ── by filter ────────────────────────────────────────────────────────────────────────────────


def _change_all(order: Order, url: str | None, *, yes: bool) -> None:
    counts = store.run(_matching(order, url, yes=yes))
    if order.as_json:
        output.print_json({"count": counts.total(), "answers": dict(counts)})
        return
    subject, total = order.subject, counts.total()
    done, asked = counts.pop(ChangeAnswer.DONE.value, 0), counts.pop("requested", 0)
    output.print_text(f"{counted(done, subject.noun)} {_DONE[order.action]}")
    if not total:
        output.note(f"hint: no {subject.noun} was chosen; `{subject.listing}` shows all there are")
    if asked:
        output.note(f"{counted(asked, 'running job')} told to stop")
    if counts.total():
        left = counted(counts.total(), subject.noun)
        output.note(f"{left} left alone: changed meanwhile, or there was nothing to do")


async def _matching(order: Order, url: str | None, *, yes: bool) -> Counter[str]:
    """Change all jobs that the filter means; returns how many were answered what."""
    counts = Counter[str]()
    async with store.opened(url) as engine:
        number = await _number(order, engine)
        if number and order.action in order.subject.confirmed and not yes:
            _confirm(order, number)
        change, pace = order.begin(engine), Pace(order.rate)
        with Tally(number, _DONE[order.action], at_least=number >= COUNT_LIMIT) as tally:
            while number and not change.over:
                page = await change.read(pace.portion(bulk.PAGE))
                await pace.wait(len(page))
                changed = await change.change(page)
                tenants = {record.job.id: record.job.tenant for record in page}
                await _note(order, engine, changed, tenants)
                counts.update(answer.answer.value for answer in changed)
                tally.add(len(changed))
    return counts

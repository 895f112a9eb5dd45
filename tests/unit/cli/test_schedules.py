import json
from datetime import UTC, datetime

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.coordinator import Firer
from lamplighter.model.job import Level
from lamplighter.model.retry import Retry
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule
from lamplighter.port.values import ClaimRequest
from lamplighter.testing.clock import installed

NIGHTLY = ("schedules", "put", "nightly", "charge", "order=o-1", "--cron", "30 2 * * *")


@pytest.fixture
def shop(store):
    """A store in which workers have told of `charge`: order, and euros if one likes."""
    store.worker("charge")
    return store


@pytest.fixture
def put(shop, answer):
    def put(name: str, *more: str, type: str = "charge") -> dict:
        when = () if {"--cron", "--every", "--once"} & set(more) else ("--every", "1d")
        return answer("schedules", "put", name, type, "order=o-1", *when, *more)

    return put


@pytest.fixture
def stored(shop):
    def stored(name: str, tenant: str = "default"):
        return shop.run(lambda engine: engine.schedules.schedule(name, tenant=tenant))

    return stored


@pytest.fixture
def fire(shop):
    """Fire everything that is due now; schedules of this test can be due every second."""

    def fire() -> None:
        shop.run(lambda engine: Firer(engine, Settings()).step())

    return fire


def in_words(result) -> tuple[int, str]:
    return result.exit_code, result.stderr


# ── put ──────────────────────────────────────────────────────────────────────────────────────


def test_put_makes_a_schedule_and_foretells_its_runs(shop, lamplighter, stored):
    result = lamplighter(*NIGHTLY, "--timezone", "Europe/Berlin")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("nightly created: At 02:30 every day, Europe/Berlin time.")
    runs = result.stderr.splitlines()
    assert len(runs) == 10
    assert all(" 02:30:00+0" in run or "(moved" in run for run in runs)
    assert lamplighter(*NIGHTLY, "--timezone", "Europe/Berlin").stdout.startswith("nightly already")
    assert lamplighter(*NIGHTLY).stdout.startswith("nightly changed: At 02:30 every day, UTC")
    assert stored("nightly").version == 2


def test_put_says_for_programs_what_became_of_it(shop, answer):
    said = answer(*NIGHTLY)
    assert (said["id"], said["answer"], said["version"]) == ("nightly", "created", 1)
    assert said["next_run"].endswith("02:30:00.000Z")


def test_put_takes_everything_about_job_and_policy(shop, answer, stored):
    options = {
        "--every": "15m",
        "--overlap": "queue_one",
        "--catch-up": "all",
        "--window": "2h",
        "--jitter": "1m",
        "--start": "2030-01-01T00:00:00Z",
        "--end": "2031-01-01T00:00:00+01:00",
        "--max-runs": "7",
        "--hold-after": "3",
        "--keep-succeeded": "5",
        "--keep-failed": "0",
        "--queue": "express",
        "--priority": "high",
        "--tenant": "acme",
        "--metadata": '{"source": "import"}',
        "--timeout": "90",
        "--retry": '{"max_attempts": 3, "fixed": 60}',
    }
    flat = [word for option in options.items() for word in option]
    tags = ("--tag", "eu", "--tag", "gold")
    answer("schedules", "put", "all", "charge", '{"order": "o-1", "euros": 5}', *flat, *tags)

    spec = specs.from_text(stored("all", "acme").spec, "all")
    template, policy = spec.template, spec.policy
    assert template.args == b'{"order":"o-1","euros":5}'
    assert (template.queue, template.level, template.tenant) == ("express", Level.HIGH, "acme")
    assert template.extras.timeout == 90
    assert template.extras.tags == ("eu", "gold")
    assert template.extras.metadata == {"source": "import"}
    assert template.extras.retry == Retry(max_attempts=3, fixed=60)
    assert (policy.keep_succeeded, policy.keep_failed) == (5, 0)
    assert (policy.overlap, policy.catch_up) == ("queue_one", "all")
    assert (policy.window_ms, policy.jitter_ms) == (7_200_000, 60_000)
    assert (policy.max_runs, policy.hold_after) == (7, 3)
    assert policy.end_ms - policy.start_ms == 365 * 86_400_000 - 3_600_000
    shown = answer("schedules", "show", "all", "--tenant", "acme")
    assert shown["arguments"] == {"order": "o-1", "euros": 5}
    assert (shown["queue"], shown["priority"], shown["timeout"]) == ("express", "high", 90)
    assert (shown["tags"], shown["metadata"]) == (["eu", "gold"], {"source": "import"})
    assert (shown["keep_succeeded"], shown["keep_failed"]) == (5, 0)
    assert (shown["retry"]["max_attempts"], shown["retry"]["fixed"]) == (3, 60)


def test_text_stays_text_where_the_type_says_so(shop, answer):
    answer("schedules", "put", "s", "charge", "order=7", "euros=7", "--every", "1d")
    assert answer("schedules", "show", "s")["arguments"] == {"order": "7", "euros": 7}


def test_put_says_that_a_time_is_past_and_how_far_jitter_shifts(shop, lamplighter):
    base = ("schedules", "put", "s", "charge", "order=1")
    past = lamplighter(*base, "--once", "2020-01-01T00:00:00Z")
    assert past.exit_code == 0
    assert "it never fires" in past.stderr
    assert "later" in lamplighter(*base, "--every", "1d", "--jitter", "1h").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cron", "0 24 * * *"], ["`24`", "midnight is hour 0"]),
        (["--cron", "0 0 31 2 *"], ["`0 0 31 2 *` never fires", "hint:"]),
        (["--cron", "0 0 * * *", "--timezone", "Europe/Berln"], ["`Europe/Berln`", "did you mean"]),
        (["--every", "1d", "--start", "2030-01-01T00:00"], ["2030-01-01T00:00", "time zone"]),
        (["--once", "tomorrow"], ["--once `tomorrow`", "2030-01-31T12:00:00Z"]),
        (["--every", "1d", "--end", "0001-01-01T00:00:00+14:00"], ["end `0001-01-01", "1970"]),
        (
            ["--every", "1d", "--start", "2030-01-02T00:00Z", "--end", "2030-01-01T00:00Z"],
            ["2030-01-01 00:00:00+00:00 is before the start 2030-01-02", "later than the start"],
        ),
        (["--every", "1d", "--window=-5m"], ["--window `-5m` is negative", "hint:"]),
        (["--every", "1d", "--jitter", "999999999d"], ["jitter", "out of range", "31622400"]),
        (["--every", "0"], ["--every `0`", "15m"]),
        (["--every", "1.5s"], ["--every `1.5s`", "whole seconds"]),
        (["--every", "99999999999999d"], ["--every `99999999999999d`", "hint:"]),
        (["--every", "1d", "--priority", "urgent"], ["`urgent`", "critical"]),
        (["--every", "1d", "--metadata", "eu"], ["metadata `eu`", "JSON", '{"source": "import"}']),
        (["--every", "1d", "--metadata", "[1]"], ["metadata `[1]`", "not a JSON object"]),
        (["--every", "1d", "--retry", '{"tries": 3}'], ["retry option `tries`", "max_attempts"]),
        (["--every", "1d", "--tag", ""], ["tag", "hint:"]),
        (
            ["--once", "2030-01-02T00:00:00Z", "--end", "2030-01-01T00:00:00Z"],
            ["`bad` would never fire", "up to 2030-01-01T00:00:00Z", "leave room"],
        ),
        (
            ["--cron", "0 0 29 2 *", "--start", "2030-01-01T00:00Z", "--end", "2031-12-31T00:00Z"],
            ["`bad` would never fire", "from 2030-01-01T00:00:00Z up to 2031-12-31T00:00:00Z"],
        ),
        (
            ["--rrule", "FREQ=DAILY;UNTIL=20200101T000000Z", "--start", "2030-01-01T00:00Z"],
            ["`bad` would never fire", "hint:"],
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_a_remedy_and_nothing_is_put(
    shop, lamplighter, answer, arguments, said
):
    code, text = in_words(lamplighter("schedules", "put", "bad", "charge", "order=1", *arguments))
    assert code == 1
    for part in said:
        assert part in text
    assert answer("schedules", "list") == {"schedules": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of --cron, --every, --rrule, --once"),
        (["--every", "5m", "--cron", "* * * * *"], "not --cron and --every"),
        (["--every", "5m", "--timezone", "UTC"], "say nothing to --every"),
        (["--rrule", "FREQ=DAILY"], "--start"),
        (["--every", "5m", "--max-runs", "0"], "--max-runs"),
        (["--every", "5m", "--overlap", "never"], "--overlap"),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_misuse(shop, lamplighter, arguments, said):
    code, text = in_words(lamplighter("schedules", "put", "bad", "charge", "order=1", *arguments))
    assert code == 2
    assert said in text
    assert "lamplighter schedules put --help" in text


def test_put_refuses_unknown_types_and_misfits_unless_forced(shop, lamplighter, stored):
    base = ("schedules", "put", "bad")
    code, text = in_words(lamplighter(*base, "chrage", "order=1", "--every", "1d"))
    assert code == 1
    assert "`chrage`" in text
    assert "known: charge" in text
    code, text = in_words(lamplighter(*base, "charge", "ordr=1", "--every", "1d"))
    assert code == 1
    assert "given were ordr" in text
    assert "it takes order, euros (optional)" in text
    code, text = in_words(lamplighter(*base, "charge", "order=1", "euros=x", "--every", "1d"))
    assert code == 1
    assert "given were charge(order: string, euros: string)" in text
    assert stored("bad") is None
    assert lamplighter(*base, "chrage", "order=1", "--every", "1d", "--force").exit_code == 0
    assert stored("bad").type == "chrage"


def test_put_makes_no_store_by_mistake(lamplighter, home):
    code, text = in_words(lamplighter(*NIGHTLY))
    assert code == 1
    assert "there is no store" in text
    assert not (home / "jobs.db").exists()
    assert lamplighter(*NIGHTLY, "--force").exit_code == 0


def test_a_queued_run_is_let_go_only_knowingly(put, answer, lamplighter, shop):
    put("nightly", "--overlap", "queue_one")
    answer("schedules", "trigger", "nightly")
    queued = answer("schedules", "trigger", "nightly")["job"]

    held = lamplighter("jobs", "hold", queued)
    assert "it waits for the run before it and goes on then" in held.stdout
    assert "`lamplighter schedules hold`" in held.stdout
    assert "held by schedule: it waits until the run before it" in lamplighter("why", queued).stdout

    said = lamplighter("jobs", "unhold", queued).stdout
    assert "it does not wait for the run before it any more: both may run at once" in said
    assert shop.job(queued).hold is None
    assert "it was not held" in lamplighter("jobs", "unhold", queued).stdout


# ── look ─────────────────────────────────────────────────────────────────────────────────────


def test_list_keeps_to_its_filters(put, answer, lamplighter):
    put("a-1"), put("a-2", "--tenant", "acme"), put("b-1")
    lamplighter("schedules", "hold", "b-1")

    def found(*options):
        return [one["id"] for one in answer("schedules", "list", *options)["schedules"]]

    assert found() == ["a-2", "a-1", "b-1"]
    assert found("--prefix", "a-") == ["a-2", "a-1"]
    assert found("--tenant", "acme") == ["a-2"]
    assert found("--held") == ["b-1"]
    assert found("--not-held", "--limit", "1") == ["a-2"]
    assert found("--type", "refund") == []
    assert "no such schedules" in lamplighter("schedules", "--type", "refund").stderr


def test_each_tenant_has_its_own_schedule_of_an_id(put, answer, lamplighter, stored):
    for tenant in ("acme", "zeta"):
        assert put("nightly", "--tenant", tenant)["tenant"] == tenant
    answer("schedules", "hold", "nightly", "--tenant", "zeta")
    assert (stored("nightly", "acme").hold, stored("nightly", "zeta").hold is None) == (None, False)
    ran = answer("schedules", "trigger", "nightly", "--tenant", "acme")
    assert answer("jobs", "show", ran["job"])["tenant"] == "acme"
    assert len(answer("schedules", "runs", "nightly", "--tenant", "acme")["runs"]) == 1
    assert answer("schedules", "runs", "nightly", "--tenant", "zeta")["runs"] == []
    assert lamplighter("schedules", "list").stdout.split()[:2] == ["tenant", "schedule"]
    missing = lamplighter("schedules", "show", "nightly")
    assert missing.exit_code == 1
    assert "the tenant `default` has no schedule `nightly`" in missing.stderr
    answer("schedules", "delete", "nightly", "--tenant", "acme")
    assert stored("nightly", "acme") is None
    assert stored("nightly", "zeta") is not None


def test_list_is_a_line_for_each(put, lamplighter):
    put("nightly", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    heading, line = lamplighter("schedules").stdout.splitlines()
    assert heading.split() == [
        "schedule",
        "type",
        "when",
        "next",
        "run",
        "fired",
        "failures",
        "hold",
    ]
    assert "At 02:30 every day, Europe/Berlin time." in line
    assert "gap" not in line


def test_one_that_cannot_be_read_hides_no_others_and_can_be_deleted(put, shop, answer, lamplighter):
    put("fine")
    bad = NewSchedule(id="bad", spec="{}", tenant="default", type="charge", due_ms=None)
    shop.run(lambda engine: engine.schedules.put_schedules([bad], by="test"))

    first, second = answer("schedules", "list")["schedules"]
    assert first["id"] == "bad"
    assert "cannot be read" in first["unreadable"]
    assert "unreadable" not in second
    assert "cannot be read" in lamplighter("schedules").stdout
    code, text = in_words(lamplighter("schedules", "show", "bad"))
    assert code == 1
    assert "put it again" in text
    assert lamplighter("schedules", "delete", "bad").exit_code == 0


def test_show_says_everything(put, answer, lamplighter):
    put("nightly", "--cron", "30 2 * * *", "--jitter", "1h", "--hold-after", "3")
    text = lamplighter("schedules", "show", "nightly").stdout
    for part in (
        "At 02:30 every day, UTC",
        '{"order": "o-1"}',
        "payments",
        "0 of 3",
        "later",
        "100 that",
    ):
        assert part in text
    shown = answer("schedules", "show", "nightly")
    assert shown["calendar"]["expression"] == "30 2 * * *"
    assert (shown["overlap"], shown["catch_up"], shown["window"]) == ("skip", "latest", 3600)
    assert 0 < shown["shift"] <= shown["jitter"] == 3600


def test_a_job_names_the_schedule_that_made_it(put, lamplighter, answer):
    put("nightly")
    job_id = answer("schedules", "trigger", "nightly")["job"]
    shown = answer("jobs", "show", job_id)
    assert shown["schedule"] == "nightly"
    lines = lamplighter("jobs", "show", job_id).stdout.splitlines()
    assert ["schedule", "nightly"] in [line.split() for line in lines]


def test_secret_arguments_are_not_shown(shop, lamplighter, answer, stored):
    answer("schedules", "put", "s", "charge", "order=hush", "--every", "1d")
    record = stored("s")
    hidden = json.loads(record.spec)
    hidden["extras"] = json.dumps({"secrets": ["order"]})
    new = NewSchedule(
        id="s", spec=json.dumps(hidden), tenant="default", type="charge", due_ms=record.due_ms
    )
    shop.run(lambda engine: engine.schedules.put_schedules([new], by="test"))
    assert "hush" not in lamplighter("schedules", "show", "s").stdout
    assert "hush" not in lamplighter("schedules", "show", "s", "--json").stdout


def test_preview_marks_what_the_clocks_do(put, answer, lamplighter):
    put("nightly", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    command = ("schedules", "preview", "nightly", "--after", "2026-03-28T12:00:00Z", "--count", "2")
    runs = answer(*command)["runs"]
    assert [run["utc"] for run in runs] == ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    assert runs[0]["local"] == "2026-03-29T03:00:00+02:00"
    assert runs[0]["mark"]
    text = lamplighter(*command).stdout
    assert f"2026-03-29 03:00:00+02:00  2026-03-29T01:00:00Z  {runs[0]['mark']}" in text


def test_preview_says_what_keeps_it_from_firing(put, lamplighter):
    put("over", "--end", "2020-01-01T00:00:00Z")
    assert "it never fires again" in lamplighter("schedules", "preview", "over").stderr
    put("held", "--jitter", "1h")
    lamplighter("schedules", "hold", "held")
    said = lamplighter("schedules", "preview", "held").stderr
    assert "later" in said
    assert "it is held" in said


def test_runs_tell_what_became_of_each(put, answer, lamplighter):
    put("nightly")
    assert answer("schedules", "runs", "nightly")["runs"] == []
    assert "it has not run yet" in lamplighter("schedules", "runs", "nightly").stderr
    job = answer("schedules", "trigger", "nightly")["job"]
    (run,) = answer("schedules", "runs", "nightly")["runs"]
    assert (run["state"], run["kind"], run["job"]) == ("started", "trigger", job)
    assert run["late_ms"] is not None
    heading, line = lamplighter("schedules", "runs", "nightly").stdout.splitlines()
    assert heading.split() == ["due", "state", "late", "by", "kind", "job", "why"]
    assert job in line


def test_occurrences_that_were_skipped_together_are_one_line(put, fire, lamplighter, answer):
    with installed(datetime(2030, 6, 1, 12, tzinfo=UTC)) as clock:
        put("tick", "--cron", "* * * * *", "--window", "0")
        clock.advance(minutes=3, seconds=30)
        fire()
    (skipped,) = answer("schedules", "runs", "tick")["runs"]
    assert (skipped["state"], skipped["reason"], skipped["count"]) == ("skipped", "late", 3)
    assert (skipped["first"][11:16], skipped["due"][11:16]) == ("12:01", "12:03")
    text = lamplighter("schedules", "runs", "tick").stdout
    assert "late: 3 since 2030-06-01T12:01:00.000Z" in text


@pytest.mark.parametrize(
    "command", ["show", "preview", "runs", "trigger", "hold", "unhold", "delete"]
)
def test_an_unknown_id_is_named(shop, lamplighter, command):
    code, text = in_words(lamplighter("schedules", command, "nope"))
    assert code == 1
    assert "no schedule `nope`" in text
    assert "lamplighter schedules list" in text


@pytest.mark.parametrize("command", ["list", "show x", "runs x", "hold x", "delete x"])
def test_looking_makes_no_store(lamplighter, home, command):
    assert "there is no store" in lamplighter("schedules", *command.split()).stderr
    assert not (home / "jobs.db").exists()


# ── operate ──────────────────────────────────────────────────────────────────────────────────


def test_hold_and_unhold_say_what_they_did(put, lamplighter, answer, stored):
    put("a"), put("b")
    held = lamplighter("schedules", "hold", "a", "b", "--reason", "migration")
    assert held.stdout.splitlines() == ["a: held", "b: held"]
    assert stored("a").hold.reason == "migration"
    assert stored("a").hold.by.startswith("ada@")
    assert lamplighter("schedules", "hold", "a").stdout == "a: was held before\n"
    assert answer("schedules", "show", "a")["next_run"] is None
    assert lamplighter("schedules", "unhold", "a").stdout == "a: not held any more\n"
    said = answer("schedules", "unhold", "a", "b")
    assert said == {"schedules": [{"id": "a", "answer": "already"}, {"id": "b", "answer": "done"}]}


def test_nothing_is_done_if_one_of_several_is_unknown(put, lamplighter, stored):
    put("a")
    assert lamplighter("schedules", "hold", "a", "nope").exit_code == 1
    assert lamplighter("schedules", "delete", "a", "nope").exit_code == 1
    assert stored("a").hold is None


def test_delete_removes(put, lamplighter, answer, stored):
    put("a"), put("b")
    assert answer("schedules", "delete", "a") == {"schedules": [{"id": "a", "answer": "done"}]}
    assert lamplighter("schedules", "delete", "b").stdout == "b: deleted\n"
    assert stored("a") is stored("b") is None


def test_trigger_prints_the_job_or_says_why_there_is_none(put, lamplighter, answer, shop):
    put("skip"), put("queue", "--overlap", "queue_one")
    job = lamplighter("schedules", "trigger", "skip").stdout.strip()
    assert shop.job(job).job.queue == "payments"
    code, text = in_words(lamplighter("schedules", "trigger", "skip"))
    assert code == 1
    assert "`skip` lets no more of them wait" in text
    refused = lamplighter("schedules", "trigger", "skip", "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout) == {"id": "skip", "job": None, "state": "skipped"}

    answer("schedules", "trigger", "queue")
    queued = lamplighter("schedules", "trigger", "queue")
    assert queued.exit_code == 0
    assert "queued: it runs when" in queued.stderr


def test_a_backfill_begins_and_show_tells_how_far_it_is(put, lamplighter, answer, fire, shop):
    put("daily")
    times = ("--from", "2026-03-01T12:00:00Z", "--to", "2026-03-04T12:00:00Z")
    begun = lamplighter("schedules", "backfill", "daily", *times, "--at-once", "2")
    assert begun.stdout == "backfill of daily has begun\n"
    again = answer("schedules", "backfill", "daily", *times, "--at-once", "2")
    assert again == {"id": "daily", "answer": "already"}
    code, text = in_words(lamplighter("schedules", "backfill", "daily", *times))
    assert code == 1
    assert "another backfill" in text

    fire()

    shown = answer("schedules", "show", "daily")["backfill"]
    assert (shown["made"], shown["at_once"]) == (2, 2)
    assert shown["at"] == "2026-03-03T00:00:00.000Z"
    assert "2 jobs so far" in lamplighter("schedules", "show", "daily").stdout
    runs = answer("schedules", "runs", "daily")["runs"]
    assert [run["due"][:10] for run in runs] == ["2026-03-03", "2026-03-02"]
    assert {run["kind"] for run in runs} == {"backfill"}


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (("2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z"), "later than the start"),
        (("2026-03-01T00:00:00", "2026-03-02T00:00:00Z"), "--from `2026-03-01T00:00:00`"),
        (("2026-03-01T00:00:00Z", "2126-03-02T00:00:00Z"), "has not come yet"),
    ],
)
def test_a_backfill_that_makes_no_sense_is_refused(put, lamplighter, stored, times, said):
    put("daily")
    start, end = times
    result = lamplighter("schedules", "backfill", "daily", "--from", start, "--to", end)
    assert result.exit_code == 1
    assert said in result.stderr
    assert stored("daily").backfill is None


def test_what_is_triggered_is_given_to_workers(put, answer, shop):
    put("nightly")
    answer("schedules", "trigger", "nightly")

    async def claim(engine):
        wanted = ClaimRequest(
            nonce=runtime.nonce(),
            worker="w-1",
            queues=(("payments", 1),),
            types=("charge",),
            limit=1,
            lease_ms=30_000,
        )
        return (await engine.jobs.claim(wanted)).claims

    (claimed,) = shop.run(claim)
    assert claimed.job.args == b'{"order":"o-1"}'


# ── a file ───────────────────────────────────────────────────────────────────────────────────

FILE = """
[nightly]
type = "charge"
arguments = { order = "o-1" }
cron = "30 2 * * *"
timezone = "Europe/Berlin"
twice = "both"
overlap = "queue_one"
window = "15m"

[often]
type = "charge"
arguments = { order = "o-2" }
every = "5m"
tags = ["eu"]

[monthly]
type = "charge"
arguments = { order = "o-3" }
rrule = "FREQ=MONTHLY;BYDAY=-1FR"
start = 2030-01-01T08:00:00Z

[launch]
type = "charge"
arguments = { order = "o-4" }
once = 2030-01-01T08:00:00+01:00
"""


@pytest.fixture
def file(shop, home):
    path = home / "schedules.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def steps(document: dict) -> dict[str, str]:
    return {step["id"]: step["what"] for step in document["steps"]}


def test_apply_lets_the_store_have_what_the_file_declares(file, answer, lamplighter, stored):
    assert set(steps(answer("schedules", "apply")).values()) == {"create"}
    nightly = specs.from_text(stored("nightly").spec, "nightly")
    assert (nightly.calendar.timezone, nightly.calendar.overlap) == ("Europe/Berlin", "both")
    assert (nightly.policy.overlap, nightly.policy.window_ms) == ("queue_one", 900_000)
    launch = datetime.fromtimestamp(stored("launch").due_ms / 1000, UTC)
    assert launch == datetime(2030, 1, 1, 7, tzinfo=UTC)
    again = answer("schedules", "apply", str(file))
    assert set(steps(again).values()) == {"same"}
    assert stored("nightly").version == 1
    assert lamplighter("schedules", "apply", "--diff").exit_code == 0


def test_diff_shows_what_would_change_and_changes_nothing(file, answer, lamplighter, stored):
    answer("schedules", "apply")
    changed = FILE.replace('"15m"', '"1h"').replace('"5m"', '"10m"').replace('"o-3"', '"o-9"')
    file.write_text(changed + '[new]\ntype = "charge"\narguments = {order="1"}\nevery = 60\n')

    result = lamplighter("schedules", "apply", "--diff")

    assert result.exit_code == 1
    found = {line.split()[1]: line for line in result.stdout.splitlines()[1:]}
    assert found["nightly"].startswith("change")
    assert "window: 15 min → 1 h" in found["nightly"]
    assert "Every 5 minutes" in found["often"]
    assert "→ Every 10 minutes" in found["often"]
    assert found["monthly"].endswith("arguments"), "arguments may be secret and are not quoted"
    assert found["launch"].split() == ["same", "launch"]
    assert found["new"].split() == ["create", "new"]
    assert stored("new") is None
    assert stored("nightly").version == 1
    as_json = lamplighter("schedules", "apply", "--diff", "--json")
    assert as_json.exit_code == 1
    document = json.loads(as_json.stdout)
    assert steps(document)["nightly"] == "change"
    assert document["steps"][0]["changes"] == ["window: 15 min → 1 h"]
    assert lamplighter("schedules", "apply").exit_code == 0
    assert stored("nightly").version == 2


def test_apply_takes_a_retry_policy_and_tells_of_what_is_over(file, lamplighter, stored):
    over = '[over]\ntype = "charge"\narguments = {order="1"}\nonce = 2020-01-01T00:00:00Z\n'
    file.write_text(over + "retry = { max_attempts = 3, delays = [1, 60] }\n")

    result = lamplighter("schedules", "apply")

    assert result.exit_code == 0
    assert "hint: [over] it never fires, since nothing of its calendar lies ahead" in result.stderr
    spec = specs.from_text(stored("over").spec, "over")
    assert spec.template.extras.retry == Retry(delays=[1, 60])
    assert lamplighter("schedules", "apply").stderr == ""


def test_others_are_deleted_only_by_their_prefix(file, put, answer, stored):
    put("team-a"), put("team-b"), put("other")
    answer("schedules", "apply")
    assert stored("team-a") is not None
    said = steps(answer("schedules", "apply", "--delete-others", "team-"))
    assert [name for name, what in said.items() if what == "delete"] == ["team-a", "team-b"]
    assert stored("team-a") is stored("team-b") is None
    assert stored("other") is not None


def test_an_empty_prefix_deletes_nothing(file, put, lamplighter, stored):
    put("other")
    refused = lamplighter("schedules", "apply", "--delete-others", "")
    assert refused.exit_code != 0
    assert "--delete-others is empty" in refused.stderr
    assert stored("other") is not None


GOOD = '[good]\ntype = "charge"\narguments = {order="1"}\nevery = 60\n'
WRONG = {
    "two calendars": ('every = 60\ncron = "* * * * *"', ["has cron, every", "exactly one"]),
    "no calendar": ("", ["has none", "exactly one"]),
    "24:00": ('cron = "0 24 * * *"', ["`24`", "midnight is hour 0"]),
    "zone": ('cron = "0 2 * * *"\ntimezone = "Mars"', ["`Mars`"]),
    "cron": ("cron = 5", ["cron = `5`", "between quotes"]),
    "naive": ("once = 2030-01-01T00:00:00", ["2030-01-01 00:00:00", "without quotes"]),
    "date": ("once = 2030-01-01", ["once = `2030-01-01`", "2030-01-31T12:00:00Z"]),
    "quoted": ('every = 60\nstart = "2030-01-01T00:00:00Z"', ["start =", "without quotes"]),
    "end": (
        "every = 60\nstart = 2030-01-02T00:00:00Z\nend = 2030-01-01T00:00:00Z",
        ["before the start", "later than the start"],
    ),
    "every": ('every = "soon"', ["every `soon`", "15m"]),
    "every yes": ("every = true", ["every `True`", "15m"]),
    "every huge": ("every = 99999999999999", ["99999999999999"]),
    "window": ("every = 60\nwindow = -1", ["window `-1`"]),
    "option": ("everyy = 60", ["`everyy`", "did you mean `every`"]),
    "rrule": ('rrule = "FREQ=DAILY"', ["`start`"]),
    "zone of every": ('every = 60\ntwice = "both"', ["twice says nothing to `every`"]),
    "overlap": ('every = 60\noverlap = "perhaps"', ["`perhaps`", "queue_one"]),
    "priority": ('every = 60\npriority = "urgent"', ["`urgent`", "critical"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_wrong_table_is_named_and_nothing_is_written(file, lamplighter, stored, case):
    text, said = WRONG[case]
    table = f'[bad]\ntype = "charge"\narguments = {{order="1"}}\n{text}\n'
    file.write_text(GOOD + table, encoding="utf-8")

    code, message = in_words(lamplighter("schedules", "apply"))

    assert code == 1
    assert "[bad] in schedules.toml: " in message
    for part in (*said, "hint:"):
        assert part in message
    assert stored("good") is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('type = "chrage"', ["[bad]", "`chrage`", "--force"]),
        ("", ["[bad]", "no `type`"]),
        ('type = "charge"\narguments = 3', ["[bad]", "arguments = `3`"]),
        ('type = "charge"\narguments = {ordr="1"}', ["[bad]", "given were ordr"]),
    ],
    ids=str,
)
def test_the_job_of_a_table_is_checked(file, lamplighter, table, said):
    file.write_text(f"[bad]\nevery = 60\n{table}\n", encoding="utf-8")
    code, message = in_words(lamplighter("schedules", "apply"))
    assert code == 1
    for part in said:
        assert part in message


def test_apply_may_come_before_the_first_worker_if_one_insists(home, lamplighter):
    (home / "schedules.toml").write_text(FILE, encoding="utf-8")
    assert "there is no store" in lamplighter("schedules", "apply").stderr
    assert lamplighter("schedules", "apply", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[a", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"a = 3", "a = `3` in schedules.toml is no table"),
    ],
)
def test_a_file_that_is_no_file_of_schedules_is_refused(file, lamplighter, content, said):
    file.write_bytes(content)
    code, text = in_words(lamplighter("schedules", "apply"))
    assert code == 1
    assert said in text
    assert "no file `other.toml`" in lamplighter("schedules", "apply", "other.toml").stderr


def test_an_empty_file_declares_nothing(file, lamplighter):
    file.write_text("")
    result = lamplighter("schedules", "apply")
    assert result.exit_code == 0
    assert "declares no schedules" in result.stderr

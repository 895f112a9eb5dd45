"""Schedules: foretold while one writes, changed by several people, operated, looked back at."""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.console.conftest import Sins
from tests.console.site import Site, until
from tests.console.test_hostile import SCRIPT, WORST, harmless

GREET = {"type": "greet", "arguments": {"name": "Ada"}}
NIGHTLY = {**GREET, "id": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Berlin"}


@pytest.fixture
def nightly(own) -> Site:
    own.ask("POST", "/v1/schedules", NIGHTLY)
    return own


def stored(site: Site, schedule_id: str = "nightly") -> dict:
    return site.ask("GET", f"/v1/schedules/{schedule_id}")


def confirm(page: Page, button: str, reason: str = "") -> None:
    dialog = page.get_by_role("dialog")
    if reason:
        dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def begin(page: Page, **fields: str) -> None:
    for label, text in {
        "Id": "nightly",
        "Job type": "greet",
        "Arguments, as JSON": json.dumps(GREET["arguments"]),
        "Expression": "30 2 * * *",
        "Time zone": "Europe/Berlin",
        **fields,
    }.items():
        page.get_by_label(label, exact=True).fill(text)


def test_a_schedule_is_foretold_over_a_change_of_the_clocks_and_made(own, look):
    page = look(own, "#/schedules")
    page.get_by_role("link", name="New schedule").click()
    begin(page)
    preview = page.get_by_role("region", name="Preview")
    runs = preview.get_by_role("list", name="next runs").get_by_role("listitem")
    expect(preview).to_contain_text("At 02:30 every day, Europe/Berlin time")
    expect(runs).to_have_count(10)

    preview.get_by_role("button", name="show it").click()
    expect(runs.filter(has_text="moved: the clocks skip its time")).to_contain_text("03:00:00")
    page.get_by_label("Times that the clocks skip").select_option("do not happen")
    skipped = runs.filter(has_text="skipped: the clocks do not show this time")
    expect(skipped).to_contain_text("02:30:00")

    preview.get_by_label("show runs from this day on").fill("2030-10-26")
    page.get_by_label("Times that they show twice").select_option("both times")
    expect(runs.filter(has_text="first of two")).to_contain_text("Sun 2030-10-27 02:30:00 +02:00")
    expect(runs.filter(has_text="second of two")).to_contain_text("Sun 2030-10-27 02:30:00 +01:00")

    assert own.ask("GET", "/v1/schedules")["schedules"] == []
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("nightly")
    found = stored(own)
    assert found["spec"]["calendar"] == {
        "kind": "cron",
        "expression": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "gap": "skip",
        "overlap": "both",
    }
    assert found["spec"]["arguments"] == GREET["arguments"]
    ahead = page.get_by_role("region", name="Next runs")
    expect(ahead.get_by_role("listitem")).to_have_count(10)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("Every so many seconds", {"Seconds between runs": "900"}, "Every 15 minutes"),
        ("Once", {"Instant": "2040-01-31T12:00:00+01:00"}, "2040-01-31"),
        (
            "iCalendar rule",
            {
                "Start, from which the rule counts": "2040-01-31T12:00:00Z",
                "Rule": "FREQ=MONTHLY;BYDAY=-1FR",
            },
            "FREQ=MONTHLY;BYDAY=-1FR",
        ),
    ],
)
def test_every_kind_of_calendar_is_foretold(shared, look, kind, fields, words):
    page = look(shared, "#/schedules?new=1")
    page.get_by_label("Kind").select_option(kind)
    for label, text in fields.items():
        page.get_by_label(label, exact=True).fill(text)
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text(words)
    expect(preview.get_by_role("listitem").first).to_be_visible()


def test_the_preview_says_what_is_wrong_while_one_writes(shared, look):
    page = look(shared, "#/schedules?new=1")
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("Say when, and see.")
    begin(page, Expression="61 2 * * *")
    expect(preview).to_contain_text("61")
    expect(preview.get_by_role("listitem")).to_have_count(0)
    page.get_by_label("Expression", exact=True).fill("31 2 * * *")
    expect(preview.get_by_role("listitem")).to_have_count(10)
    expect(preview.locator(".problem")).to_have_count(0)

    # Arguments that do not fit are told beside the times, which are well.
    arguments = page.get_by_label("Arguments, as JSON")
    arguments.fill('{"title": "Ada"}')
    expect(preview.locator(".problem")).to_contain_text("title")
    expect(preview.get_by_role("listitem")).to_have_count(10)
    page.get_by_text("what this type takes").click()
    expect(page.get_by_label("schedule", exact=True)).to_contain_text('"properties"')

    # What is no JSON is not sent at all.
    arguments.fill('{"name": ')
    expect(page.get_by_text("This is no JSON")).to_be_visible()
    expect(page.get_by_role("button", name="Create")).to_be_disabled()
    look.sins[-1].seen.clear()  # the browser notes each refusal


def test_a_new_schedule_does_not_overwrite_another_of_its_id(nightly, look):
    page = look(nightly, "#/schedules?new=1")
    begin(page, Expression="0 5 * * *")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("there is a schedule nightly already")
    assert stored(nightly)["version"] == 1


def test_an_edit_changes_only_what_was_changed(nightly, look):
    page = look(nightly, "#/schedules/nightly")
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Expression", exact=True)).to_have_value("30 2 * * *")
    page.get_by_label("Expression", exact=True).fill("45 3 * * *")
    page.get_by_label("Most runs").fill("5")
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("At 03:45 every day")
    expect(preview.get_by_role("listitem")).to_have_count(5)
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        page.get_by_role("button", name="Save").click()
    assert sent.value.post_data_json == {"cron": "45 3 * * *", "max_runs": 5}
    expect(page.get_by_label("summary")).to_contain_text("At 03:45 every day, Europe/Berlin time")
    assert stored(nightly)["version"] == 2


def test_another_kind_of_calendar_takes_the_place_of_the_old_one(nightly, look):
    page = look(nightly, "#/schedules/nightly?edit=1")
    page.get_by_label("Kind").select_option("Every so many seconds")
    page.get_by_label("Seconds between runs").fill("900")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("summary")).to_contain_text("Every 15 minutes")
    assert stored(nightly)["spec"]["calendar"]["kind"] == "interval"


def test_a_change_of_somebody_else_is_shown_and_nothing_is_lost(nightly, look):
    page = look(nightly, "#/schedules/nightly?edit=1")
    page.get_by_label("Expression", exact=True).fill("45 3 * * *")
    nightly.ask("PATCH", "/v1/schedules/nightly", {"max_runs": 7, "cron": "0 4 * * *"})
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert", name="conflict")
    expect(conflict).to_contain_text("Somebody else has changed this schedule")
    cron = conflict.get_by_role("row", name="cron")
    for said in ("30 2 * * *", "0 4 * * *", "45 3 * * *"):
        expect(cron).to_contain_text(said)
    expect(conflict.get_by_role("row", name="max_runs")).to_contain_text("as it was")
    assert stored(nightly)["version"] == 2

    conflict.get_by_role("button", name="Put my changes on top").click()
    expect(conflict).to_have_count(0)
    expect(page.get_by_label("Most runs")).to_have_value("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Edit")).to_be_visible()
    found = stored(nightly)
    assert (found["spec"]["calendar"]["expression"], found["spec"]["max_runs"]) == ("45 3 * * *", 7)
    look.sins[-1].seen.clear()  # the browser notes the refusal


def test_a_hold_of_somebody_else_does_not_stand_in_the_way_of_an_edit(nightly, look):
    page = look(nightly, "#/schedules/nightly?edit=1")
    page.get_by_label("Expression", exact=True).fill("45 3 * * *")
    nightly.ask("POST", "/v1/schedules/nightly/hold", reason="not now")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("summary")).to_contain_text("At 03:45 every day")
    expect(page.get_by_label("summary")).to_contain_text("not now")
    look.sins[-1].seen.clear()  # the browser notes the refusal


def test_own_changes_can_be_dropped_for_those_of_somebody_else(nightly, look):
    page = look(nightly, "#/schedules/nightly?edit=1")
    page.get_by_label("Expression", exact=True).fill("45 3 * * *")
    nightly.ask("PATCH", "/v1/schedules/nightly", {"cron": "0 4 * * *"})
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Drop my changes").click()
    expect(page.get_by_label("Expression", exact=True)).to_have_value("0 4 * * *")
    assert stored(nightly)["version"] == 2
    look.sins[-1].seen.clear()  # the browser notes the refusal


def reload_asks(page: Page, sins: Sins) -> bool:
    """Try to reload, and stay if the browser asks; tells whether it did."""
    seen = []

    def stay(dialog: Dialog) -> None:
        seen.append(dialog.type)
        dialog.dismiss()

    def gone(_: Page) -> None:
        seen.append("load")

    sins.on_dialog = stay
    page.on("load", gone)
    page.evaluate("setTimeout(() => location.reload(), 0)")
    while not seen:
        page.wait_for_timeout(20)
    page.remove_listener("load", gone)
    return seen == ["beforeunload"]


def test_whoever_reloads_a_half_written_schedule_is_asked_first(own, look):
    page = look(own, "#/schedules?new=1&type=greet")
    sins = look.sins[-1]
    expression = page.get_by_label("Expression", exact=True)
    expression.click()
    assert not reload_asks(page, sins)  # nothing is written yet
    expression.click()
    page.keyboard.type("30 2 * * *")
    assert reload_asks(page, sins)
    expect(expression).to_have_value("30 2 * * *")
    expression.clear()
    assert not reload_asks(page, sins)  # it is again as it was
    expression.click()
    page.keyboard.type("30 2 * * *")
    page.get_by_role("link", name="Leave it").click()
    expect(page.get_by_text("There are no schedules.")).to_be_visible()
    assert not reload_asks(page, sins)


def test_whoever_reloads_an_edited_schedule_is_asked_until_it_is_stored(nightly, look):
    page = look(nightly, "#/schedules/nightly?edit=1")
    sins = look.sins[-1]
    expression = page.get_by_label("Expression", exact=True)
    expression.click()
    assert not reload_asks(page, sins)
    expression.fill("45 3 * * *")
    expression.click()
    assert reload_asks(page, sins)
    # It is compared with what is stored now, by whomever.
    nightly.ask("PATCH", "/v1/schedules/nightly", {"cron": "0 4 * * *"})
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Drop my changes").click()
    expect(expression).to_have_value("0 4 * * *")
    assert not reload_asks(page, sins)
    expression.fill("45 3 * * *")
    expression.click()
    assert reload_asks(page, sins)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("summary")).to_contain_text("At 03:45 every day")
    assert not reload_asks(page, sins)
    sins.forgive("status of 409")


def test_a_schedule_is_held_and_goes_on_with_a_reason(nightly, look):
    page = look(nightly, "#/schedules/nightly")
    summary = page.get_by_label("summary")
    page.get_by_role("button", name="Hold").click()
    confirm(page, "Hold", reason="end of the month")
    expect(summary).to_contain_text("end of the month")
    expect(page.get_by_role("region", name="Next runs")).to_contain_text("It is held")
    assert stored(nightly)["hold"]["reason"] == "end of the month"
    page.get_by_role("button", name="Unhold").click()
    confirm(page, "Unhold")
    expect(summary).not_to_contain_text("end of the month")
    assert stored(nightly)["hold"] is None


def test_a_run_that_was_asked_for_stands_among_the_past_ones(nightly, look):
    page = look(nightly, "#/schedules/nightly")
    page.get_by_role("button", name="Run now").click()
    confirm(page, "Run now")
    past = page.get_by_role("region", name="Past runs")
    row = past.get_by_role("row", name="asked for")
    expect(row).to_contain_text("succeeded")
    row.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("greet")
    expect(page.get_by_label("summary").get_by_role("link", name="nightly")).to_be_visible()


def test_the_past_is_backfilled(nightly, look):
    page = look(nightly, "#/schedules/nightly")
    page.get_by_role("button", name="Backfill").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("After this instant").fill("2026-01-01T00:00:00Z")
    dialog.get_by_label("Up to this instant").fill("2025-01-04T00:00:00Z")
    dialog.get_by_role("button", name="Backfill").click()
    expect(dialog.get_by_role("alert")).to_contain_text("2025-01-04")
    dialog.get_by_label("Up to this instant").fill("2026-01-04T00:00:00Z")
    confirm(page, "Backfill")
    past = page.get_by_role("region", name="Past runs")
    expect(past.get_by_role("row", name="backfill").filter(has_text="succeeded")).to_have_count(3)
    look.sins[-1].seen.clear()  # the browser notes the refusal


def test_skipped_occurrences_say_why(own, look):
    body = {"id": "often", "type": "report", "every": 1, "overlap": "skip"}
    own.ask("POST", "/v1/schedules", body)
    page = look(own, "#/schedules/often")
    row = page.get_by_role("region", name="Past runs").get_by_role("row", name="skipped").first
    expect(row).to_contain_text("overlap")
    expect(row.get_by_role("link")).to_have_count(0)


def test_a_schedule_is_deleted_after_one_more_question(nightly, look):
    page = look(nightly, "#/schedules/nightly")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("removed permanently")
    confirm(page, "Delete the schedule", reason="not needed")
    expect(page.get_by_text("There are no schedules.")).to_be_visible()
    assert nightly.ask("GET", "/v1/schedules")["schedules"] == []


def test_the_list_is_filtered_paged_and_live(own, look):
    for at in range(52):
        own.ask("POST", "/v1/schedules", {**NIGHTLY, "id": f"s-{at:02}", "tenant": f"t-{at % 2}"})
    page = look(own, "#/schedules")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("At 02:30 every day, Europe/Berlin time")
    expect(rows.first).to_contain_text("in ")
    own.ask("POST", "/v1/schedules/s-00/hold", tenant="t-0")
    expect(rows.first).to_contain_text("held")
    page.get_by_role("link", name="next page").click()
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="first page").click()
    page.get_by_label("Tenant").fill("t-1")
    expect(rows).to_have_count(26)
    page.get_by_label("Id begins with").fill("s-0")
    expect(rows).to_have_count(5)
    page.get_by_role("link", name="clear").click()
    expect(rows).to_have_count(50)
    page.get_by_label("Held").select_option("true")
    expect(rows).to_have_count(1)


def test_the_list_tells_of_failures_in_a_row(own, look):
    own.ask(
        "POST",
        "/v1/schedules",
        {"id": "bill", "type": "charge", "arguments": {"order": "o"}, "every": 1},
    )
    page = look(own, "#/schedules")
    row = page.get_by_role("row", name="bill")
    expect(row).to_contain_text("in a row")
    own.sign("mended")
    expect(row).to_contain_text("healthy")


def tab_to(page: Page, label: str) -> None:
    """Go on to a field by keyboard, and select what is in it."""
    field = page.get_by_label(label, exact=True)
    for _ in range(20):
        if field.evaluate("(field) => field === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(field).to_be_focused()
    page.keyboard.press("Control+A")


def test_a_schedule_is_made_held_and_edited_by_keyboard_alone(own, look):
    page = look(own)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    keys = page.keyboard
    keys.press("g")
    keys.press("s")
    expect(page.get_by_text("There are no schedules.")).to_be_visible()
    keys.press("n")
    expect(page.get_by_label("Id", exact=True)).to_be_focused()
    keys.type("weekly")
    keys.press("Tab")
    keys.type("greet")
    keys.press("Tab")
    keys.press("Control+A")
    keys.type('{"name": "Ada"}')
    tab_to(page, "Expression")
    keys.type("0 9 * * 1")
    expect(page.get_by_role("region", name="Preview").get_by_role("listitem")).to_have_count(10)
    keys.press("Enter")
    expect(page.get_by_role("button", name="Hold")).to_be_visible()
    keys.press("h")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Control+Enter")
    until(lambda: stored(own, "weekly")["hold"])
    expect(page.get_by_role("dialog")).to_have_count(0)
    keys.press("e")
    expect(page.get_by_label("Job type")).to_be_focused()
    tab_to(page, "Expression")
    keys.type("0 10 * * 1")
    keys.press("Enter")
    expect(page.get_by_label("summary")).to_contain_text("10:00")
    assert stored(own, "weekly")["spec"]["calendar"]["expression"] == "0 10 * * 1"
    look.sins[-1].seen.clear()  # what was half written was refused


@pytest.mark.parametrize("width", [1200, 360])
def test_the_form_and_its_conflicts_show_the_worst_as_text(own, look, width):
    name = f"nightly {SCRIPT}\u202e"
    body = {**NIGHTLY, "id": name, "arguments": {"name": WORST}, "tags": [SCRIPT]}
    own.ask("POST", "/v1/schedules", body)
    page = look(own, f"#/schedules/{quote(name, safe='')}?edit=1", width=width)
    expect(page.get_by_role("region", name="Preview").get_by_role("listitem")).to_have_count(10)
    page.get_by_text("what this type takes").click()
    harmless(page)
    page.get_by_label("Expression", exact=True).fill("45 3 * * *")
    path = f"/v1/schedules/{quote(name, safe='')}"
    own.ask("PATCH", path, {"arguments": {"name": SCRIPT + WORST}, "tags": [f"{SCRIPT}\u202e"]})
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert", name="conflict")).to_contain_text("<script>")
    harmless(page)
    page.get_by_role("button", name="Put my changes on top").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("summary")).to_contain_text("At 03:45 every day")
    harmless(page)
    assert own.ask("GET", path)["spec"]["arguments"] == {"name": SCRIPT + WORST}
    look.sins[-1].forgive("status of 409")

"""A job that ends leaves one table for another: the audit shows that as the one change it is."""

from uuid import UUID

from tests.faults.audit.postgres import joined

ID = str(UUID(int=7))
WAITING = {"id": ID, "state": "waiting"}
RUNNING = {"id": ID, "state": "running"}
DONE = {"id": ID, "state": "succeeded"}


def note(number, transaction, place, old, new):
    return (number, transaction, 0, place, old, new, "default", 2)


def changes(*notes):
    return [(one.number, one.old, one.new) for one in joined(notes)]


def test_what_leaves_one_table_and_enters_another_is_one_change():
    assert changes(
        note(1, 10, "job", RUNNING, None),
        note(2, 10, "done", None, DONE),
    ) == [(1, RUNNING, DONE)]


def test_the_order_of_the_two_notes_does_not_matter():
    assert changes(
        note(1, 10, "dead", None, DONE),
        note(2, 10, "job", RUNNING, None),
    ) == [(1, RUNNING, DONE)]


def test_a_replay_leaves_the_end_for_the_beginning():
    assert changes(
        note(1, 10, "done", DONE, None),
        note(2, 10, "job", None, WAITING),
    ) == [(1, DONE, WAITING)]


def test_what_is_stored_and_taken_back_at_once_was_never_there():
    assert (
        changes(
            note(1, 10, "job", None, WAITING),
            note(2, 10, "job", WAITING, None),
        )
        == []
    )


def test_changes_of_different_transactions_stay_apart():
    assert changes(
        note(1, 10, "job", None, WAITING),
        note(2, 11, "job", WAITING, RUNNING),
        note(3, 12, "job", RUNNING, None),
        note(4, 13, "done", None, DONE),
    ) == [(1, None, WAITING), (2, WAITING, RUNNING), (3, RUNNING, None), (4, None, DONE)]


def test_changes_of_different_jobs_in_one_transaction_stay_apart():
    other = {"id": str(UUID(int=8)), "state": "succeeded"}

    assert changes(
        note(1, 10, "job", RUNNING, None),
        note(2, 10, "done", None, other),
    ) == [(1, RUNNING, None), (2, None, other)]

"""Bookkeeping of a child's claims."""

from lamplighter.worker.ledger import Ledger


def ledger_with(count: int = 3, *, sent_at: float = 100.0) -> Ledger:
    ledger = Ledger()
    ledger.claimed("n" * 16, 5, [(f"job-{n}", n + 1, f"type-{n}") for n in range(count)], sent_at)
    return ledger


def test_claims_are_numbered_from_the_first():
    ledger = ledger_with()

    assert [(e.number, e.id, e.lease) for e in ledger.unstarted()] == [
        (5, "job-0", 1),
        (6, "job-1", 2),
        (7, "job-2", 3),
    ]


def test_a_started_claim_has_a_hard_end_until_its_handler_ends():
    ledger = ledger_with()
    ledger.started([(5, 110.0)], 101.0)

    assert [e.number for e in ledger.overdue(109.9)] == []
    assert [e.number for e in ledger.overdue(110.0)] == [5]
    assert ledger.running() == 1

    ledger.ended([5])

    assert ledger.overdue(1000.0) == []
    assert ledger.running() == 0
    assert [e.number for e in ledger.unstarted()] == [6, 7]


def test_reports_about_forgotten_claims_change_nothing():
    ledger = ledger_with(1)
    assert [e.id for e in ledger.drop([5, 99])] == ["job-0"]

    ledger.started([(5, 110.0)], 101.0)
    ledger.ended([5])
    ledger.renewed([5], 102.0)

    assert len(ledger) == 0


def test_leases_are_renewed_by_age_and_long_runs_in_every_round():
    ledger = ledger_with()
    ledger.started([(5, 1000.0), (6, 1000.0)], 100.5)
    ledger.ended([6])

    early = ledger.to_renew(101.0, age=10.0, watched_after=1.0)
    later = ledger.to_renew(102.0, age=10.0, watched_after=1.0)
    aged = ledger.to_renew(110.0, age=10.0, watched_after=1000.0)

    assert [e.number for e in early] == []
    assert [e.number for e in later] == [5, 6]
    assert [e.number for e in aged] == [5, 6, 7]


def test_a_claim_past_its_hard_end_is_not_renewed():
    ledger = ledger_with(1)
    ledger.started([(5, 105.0)], 100.0)

    assert ledger.to_renew(105.0, age=1.0, watched_after=1.0) == []


def test_forsaken_claims_are_forgotten_when_the_store_holds_them_no_longer():
    ledger = ledger_with()
    ledger.started([(5, 110.0), (6, 110.0), (7, 110.0)], 100.0)
    ledger.forsake([5, 6])
    asked = list(ledger.forsaken)
    # Given up while the store was asked: its answer says nothing about this one.
    ledger.forsake([7])

    ledger.forget(asked, {(entry.id, entry.fence) for entry in asked if entry.number == 6})

    assert [entry.number for entry in ledger.forsaken] == [6, 7]


def test_a_lease_is_believed_in_from_the_moment_its_renewal_was_sent():
    ledger = ledger_with(2)
    ledger.renewed([6], 104.0)

    assert [e.number for e in ledger.stale(108.0, 8.0)] == [5]
    assert [e.number for e in ledger.stale(112.0, 8.0)] == [5, 6]


def test_a_handler_that_has_ended_does_not_hang_though_its_claim_was_lost():
    ledger = ledger_with()
    ledger.started([(5, 110.0), (6, 110.0)], 101.0)
    ledger.lose([5, 6], 102.0)
    assert ledger.hanging == {5: 102.0, 6: 102.0}

    ledger.ended([5])

    assert ledger.hanging == {6: 102.0}

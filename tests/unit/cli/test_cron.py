SPRING = ("--timezone", "Europe/Berlin", "--after", "2026-03-27T12:00:00Z")
AUTUMN = ("--timezone", "Europe/Berlin", "--after", "2026-10-24T12:00:00Z")


def test_explain_says_it_in_words_and_shows_what_the_clocks_do(lamplighter):
    shown = lamplighter("cron", "explain", "30 2 * * *", *SPRING).stdout.splitlines()

    assert shown[0].startswith("At 02:30 every day, Europe/Berlin time.")
    runs = [line for line in shown if line.endswith(("Z", "gap"))]
    assert len(runs) == 10
    assert runs[0].split() == ["Sat", "2026-03-28", "02:30:00", "+01:00", "2026-03-28T01:30:00Z"]
    assert runs[1].endswith("2026-03-29T01:00:00Z  moved out of a gap")
    assert "03:00:00 +02:00" in runs[1]
    assert "2026-03-29 02:00 to 03:00, so 02:30 does not exist then and happens at 03" in shown[-1]


def test_explain_follows_the_policies(lamplighter):
    skip = lamplighter("cron", "explain", "30 2 * * *", *SPRING, "--gap", "skip").stdout
    assert "2026-03-29T" not in skip.rpartition("\n\n")[0]
    assert "is left out" in skip.rpartition("\n\n")[2]
    both = lamplighter("cron", "explain", "30 2 * * *", *AUTUMN, "--overlap", "both").stdout
    assert "second of two" in both
    assert "happens both times" in both.rpartition("\n\n")[2]
    first = lamplighter("cron", "explain", "30 2 * * *", *AUTUMN).stdout
    assert "second of two" not in first
    assert "the first time only" in first.rpartition("\n\n")[2]


def test_explain_gives_programs_the_same(answer):
    found = answer("cron", "explain", "30 2 * * *", *SPRING, "--count", "2")

    assert found["runs"] == [
        {"utc": "2026-03-28T01:30:00Z", "local": "2026-03-28T02:30:00+01:00", "mark": None},
        {
            "utc": "2026-03-29T01:00:00Z",
            "local": "2026-03-29T03:00:00+02:00",
            "mark": "moved out of a gap",
        },
    ]
    assert found["touched"] == {
        "at": "2026-03-29T01:00:00Z",
        "effect": "moved",
        "wall": "2026-03-29T02:30:00",
        "low": "2026-03-29T02:00:00",
        "high": "2026-03-29T03:00:00",
    }
    assert found["timezone"] == "Europe/Berlin"
    assert found["follows"] == "wall time"
    assert found["description"].startswith("At 02:30")
    assert found["tzdata"]


def test_explain_begins_now_and_needs_no_store(answer, home):
    found = answer("cron", "explain", "* * * * *", "--count", "1000")
    assert len(found["runs"]) == 1000
    assert found["touched"] is None
    assert found["follows"] == "elapsed time"
    assert [*home.iterdir()] == []


def test_explain_of_what_is_over_says_so(lamplighter):
    result = lamplighter("cron", "explain", "0 0 1 1 *", "--after", "9999-06-01T00:00:00Z")
    assert result.exit_code == 0
    assert "never fires after 9999-06-01" in result.stderr


def test_explain_names_a_day_that_was_left_out(lamplighter):
    at = ("--timezone", "Pacific/Apia", "--after", "2011-12-29T00:00:00Z")
    shown = lamplighter("cron", "explain", "0 12 * * *", *at).stdout
    assert "happens at 2011-12-31 00:00" in shown


def test_a_seed_decides_what_a_hash_stands_for(answer):
    one, same, other = (
        answer("cron", "explain", "H H * * *", "--seed", seed)["description"]
        for seed in ("a", "a", "b")
    )
    assert one == same != other


def test_explain_refuses_with_cause_and_remedy(lamplighter):
    for arguments, cause, remedy in (
        (["0 24 * * *"], "`24` in the hour field", "midnight is hour 0"),
        (["* * * * *", "--timezone", "Berlin"], "no time zone `Berlin`", "Europe/Berlin"),
        (["* * * * *", "--after", "2026-01-01"], "no time zone", "2030-01-31T12:00:00Z"),
    ):
        result = lamplighter("cron", "explain", *arguments)
        assert result.exit_code == 1
        assert cause in result.stderr
        assert remedy in result.stderr
    assert lamplighter("cron", "explain", "* * * * *", "--gap", "jump").exit_code == 2
    assert lamplighter("cron", "explain", "* * * * *", "--count", "0").exit_code == 2

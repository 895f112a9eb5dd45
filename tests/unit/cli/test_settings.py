import pytest

from lamplighter.port.values import TenantSettings


def test_queues_lists_what_waits_and_runs(answer, lamplighter, store):
    store.submit(queue="mail"), store.submit(queue="mail", delay_ms=60_000)
    store.running(queue="payments")

    queues = {queue["name"]: queue for queue in answer("queues")["queues"]}

    assert (queues["mail"]["ready"], queues["mail"]["scheduled"]) == (1, 1)
    assert queues["payments"]["running"] == 1
    assert queues["mail"]["waiting_by_priority"]["normal"] == 2
    for command in (["queues"], ["queues", "list"]):
        heading, *rows = lamplighter(*command).stdout.splitlines()
        assert heading.split()[:4] == ["queue", "ready", "scheduled", "running"]
        assert [row.split()[:4] for row in rows] == [
            ["mail", "1", "1", "0"],
            ["payments", "0", "0", "1"],
        ]


def test_a_queue_can_be_held_and_told_how_long_to_wait(answer, lamplighter, store):
    store.submit(queue="mail")

    held = answer("queues", "set", "mail", "--hold", "--reason", "bounces", "--max-wait", "5m")

    assert held["max_wait_seconds"] == 300
    assert held["hold"]["reason"] == "bounces"
    assert "bounces" in lamplighter("queues").stdout
    assert answer("queues", "set", "mail", "--unhold")["hold"] is None
    assert answer("queues", "set", "mail", "--hold")["max_wait_seconds"] == 300


def test_a_tenant_can_be_weighted_and_held(answer, lamplighter, store):
    assert answer("tenants", "set", "acme", "--weight", "5")["weight"] == 5
    held = answer("tenants", "set", "acme", "--hold", "--by", "grace")
    assert (held["weight"], held["hold"]["by"]) == (5, "grace")
    assert answer("tenants")["tenants"][0]["name"] == "acme"
    assert "grace" in lamplighter("tenants", "list").stdout
    assert "weight 5" in lamplighter("tenants", "set", "acme", "--unhold").stdout


def test_of_very_many_tenants_each_can_be_set_and_shown(answer, lamplighter, store):
    async def fill(engine):
        for number in range(1_001):
            settings = TenantSettings(weight=2)
            await engine.settings.put_tenant(f"t{number:04}", settings, by="test", reason="")

    store.run(fill)
    listed = lamplighter("tenants")
    assert "t1000" not in listed.stdout
    assert "no more than 1,000 are listed" in listed.stderr

    lamplighter("tenants", "set", "t1000", "--hold", "--by", "grace")
    said = answer("tenants", "set", "t1000", "--weight", "7")

    assert (said["weight"], said["hold"]["by"]) == (7, "grace")
    assert answer("tenants", "show", "t1000") == said
    assert "grace" in lamplighter("tenants", "show", "t1000").stdout


def test_a_tenant_that_is_not_there_is_named(lamplighter, store):
    result = lamplighter("tenants", "show", "nope")
    assert result.exit_code == 1
    assert "the tenant `nope` has neither jobs nor settings" in result.stderr
    assert "`lamplighter tenants` lists" in result.stderr
    assert lamplighter("tenants", "show", "x" * 65).exit_code == 1


def test_types_can_be_held(answer, lamplighter, store):
    store.worker("charge", "refund")

    assert lamplighter("types", "hold", "charge", "refund", "--reason", "fraud").exit_code == 0

    types = {row["name"]: row for row in answer("types")["types"]}
    assert types["charge"]["hold"]["reason"] == "fraud"
    assert types["charge"]["live_workers"] == 1
    assert types["charge"]["schema"]["required"] == ["order"]
    assert "fraud" in lamplighter("types").stdout
    assert answer("types", "unhold", "charge") == {"types": [{"name": "charge", "held": False}]}
    told = lamplighter("types", "hold", "chrage", "charge")
    assert "type chrage: held" in told.stdout
    assert told.stderr.count("hint:") == 1
    assert "no worker has told this store of `chrage` yet" in told.stderr


def test_workers_lists_who_is_alive(answer, lamplighter, store):
    assert "no worker has joined" in lamplighter("workers").stderr
    store.worker("charge")
    (worker,) = answer("workers")["workers"]
    assert (worker["id"], worker["state"], worker["pid"]) == ("w-1", "alive", 4711)
    assert "4711" in lamplighter("workers").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["queues", "set", "mail"],
        ["tenants", "set", "acme"],
        ["tenants", "set", "acme", "--weight", "0"],
        ["tenants", "set", "acme", "--weight", "1001"],
        ["types", "hold"],
    ],
)
def test_settings_that_say_nothing_are_misuse(lamplighter, store, arguments):
    assert lamplighter(*arguments).exit_code == 2


@pytest.mark.parametrize("wait", ["0", "-5", "never"])
def test_a_longest_wait_is_a_time(lamplighter, store, wait):
    result = lamplighter("queues", "set", "mail", "--max-wait", wait)
    assert result.exit_code == 1
    assert "the longest wait" in result.stderr


def test_migrate_makes_a_store_and_says_so(answer, lamplighter, home):
    assert answer("migrate")["before"] == 0
    assert (home / "jobs.db").exists()
    assert "already" in lamplighter("migrate").stdout

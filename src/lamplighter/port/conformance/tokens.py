"""Tokens: put once, found by their prefix, ended by time or by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Mark
from lamplighter.port.access import NewToken, TokenRecord
from lamplighter.port.values import ChangeAnswer

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, ALREADY = ChangeAnswer.DONE, ChangeAnswer.ALREADY
HOUR_MS = 3_600_000
TOKEN = NewToken(
    prefix="00c0ffee0001", digest="d" * 64, name="deploy", scopes=("jobs:read", "jobs:write")
)


async def _put(engine: Engine, *tokens: NewToken) -> None:
    for token in tokens:
        assert await engine.access.put_token(token, by="alice") is DONE


async def _revoke(engine: Engine, prefix: str = TOKEN.prefix, reason: str = "lost") -> ChangeAnswer:
    return await engine.access.revoke_token(prefix, by="bob", reason=reason)


async def test_a_token_is_found_by_its_prefix_as_it_was_put(
    engine: Engine, clock: VirtualClock
) -> None:
    awkward = replace(TOKEN, name="it's 100 % “größer”", tenant='a "b" ☃', lifetime_ms=HOUR_MS)
    await _put(engine, awkward)

    now = clock.now_ms()
    assert await engine.access.token(TOKEN.prefix) == TokenRecord(
        prefix=TOKEN.prefix,
        digest=TOKEN.digest,
        name=awkward.name,
        scopes=TOKEN.scopes,
        tenant=awkward.tenant,
        created_at_ms=now,
        created_by="alice",
        expires_at_ms=now + HOUR_MS,
        left_ms=HOUR_MS,
    )


async def test_a_token_without_scopes_tenant_and_end_has_none(engine: Engine) -> None:
    await _put(engine, replace(TOKEN, scopes=()))

    found = await engine.access.token(TOKEN.prefix)

    assert found is not None
    assert (found.scopes, found.tenant, found.expires_at_ms, found.left_ms) == (
        (),
        None,
        None,
        None,
    )


@pytest.mark.parametrize("prefix", ["", "00c0ffee0002", "00c0ffee000", "%", "' OR 1=1 --", "a\0b"])
async def test_a_token_of_another_prefix_is_not_found(engine: Engine, prefix: str) -> None:
    await _put(engine, TOKEN)

    assert await engine.access.token(prefix) is None


async def test_the_same_token_again_is_already_and_changes_nothing(
    engine: Engine, clock: VirtualClock
) -> None:
    await _put(engine, TOKEN)
    before = await engine.access.token(TOKEN.prefix)
    clock.advance(seconds=5)

    other = replace(TOKEN, name="other", lifetime_ms=1)

    assert await engine.access.put_token(other, by="eve") is ALREADY
    assert await engine.access.token(TOKEN.prefix) == before


async def test_another_token_of_the_same_prefix_is_a_conflict_and_changes_nothing(
    engine: Engine,
) -> None:
    await _put(engine, TOKEN)
    before = await engine.access.token(TOKEN.prefix)

    other = replace(TOKEN, digest="e" * 64, scopes=("admin",))

    assert await engine.access.put_token(other, by="eve") is ChangeAnswer.CONFLICT
    assert await engine.access.token(TOKEN.prefix) == before


async def test_the_store_tells_how_long_a_token_is_still_good(
    engine: Engine, clock: VirtualClock
) -> None:
    await _put(engine, replace(TOKEN, lifetime_ms=60_000))
    left = list[int | None]()
    for _ in range(3):
        clock.advance(seconds=25)
        found = await engine.access.token(TOKEN.prefix)
        assert found is not None
        left.append(found.left_ms)

    assert left == [35_000, 10_000, 0]


async def test_a_revoked_token_keeps_who_did_it_first(engine: Engine, clock: VirtualClock) -> None:
    await _put(engine, TOKEN)
    clock.advance(seconds=3)
    assert await _revoke(engine) is DONE
    revoked_at = clock.now_ms()
    clock.advance(seconds=3)
    assert await _revoke(engine, reason="again") is ALREADY

    found = await engine.access.token(TOKEN.prefix)

    assert found is not None
    assert found.revoked == Mark(by="bob", reason="lost", at_ms=revoked_at)


async def test_a_token_that_has_expired_is_revoked_too(engine: Engine, clock: VirtualClock) -> None:
    await _put(engine, replace(TOKEN, lifetime_ms=1_000))
    clock.advance(seconds=5)

    assert await _revoke(engine) is DONE

    found = await engine.access.token(TOKEN.prefix)
    assert found is not None
    assert found.revoked is not None
    assert found.left_ms == 0


async def test_a_token_that_is_not_there_cannot_be_revoked(engine: Engine) -> None:
    assert await _revoke(engine, "00c0ffee9999") is ChangeAnswer.UNKNOWN
    assert await engine.access.token("00c0ffee9999") is None


async def test_a_token_is_not_put_or_revoked_with_a_note_that_cannot_be_kept(
    engine: Engine,
) -> None:
    with pytest.raises(InvalidInput):
        await engine.access.put_token(TOKEN, by="two\nlines")
    assert await engine.access.token(TOKEN.prefix) is None
    await _put(engine, TOKEN)
    with pytest.raises(InvalidInput):
        await _revoke(engine, reason="x" * 1_001)
    found = await engine.access.token(TOKEN.prefix)
    assert found is not None
    assert found.revoked is None


async def test_tokens_are_listed_by_their_prefixes_page_by_page(engine: Engine) -> None:
    prefixes = [f"{number:012x}" for number in (7, 1, 250, 16, 3)]
    await _put(engine, *(replace(TOKEN, prefix=prefix) for prefix in prefixes))
    await _revoke(engine, prefixes[0])
    listed, cursor = list[TokenRecord](), None
    while True:
        page = await engine.access.tokens(limit=2, cursor=cursor)
        assert len(page.tokens) <= 2
        listed += page.tokens
        if (cursor := page.cursor) is None:
            break

    assert [token.prefix for token in listed] == sorted(prefixes)
    assert [token.prefix for token in listed if token.revoked] == [prefixes[0]]
    assert listed == [await engine.access.token(prefix) for prefix in sorted(prefixes)]


async def test_more_tokens_than_a_store_reads_at_once_are_all_listed(engine: Engine) -> None:
    prefixes = [f"{number:012x}" for number in range(205)]
    await _put(engine, *(replace(TOKEN, prefix=prefix) for prefix in prefixes))

    page = await engine.access.tokens(limit=500)

    assert [token.prefix for token in page.tokens] == prefixes
    assert page.cursor is None


async def test_tokens_that_ended_long_ago_are_removed_and_others_stay(
    engine: Engine, clock: VirtualClock
) -> None:
    names = {
        "revoked": replace(TOKEN, prefix="00000000000a"),
        "expired": replace(TOKEN, prefix="00000000000b", lifetime_ms=1_000),
        "good": replace(TOKEN, prefix="00000000000c"),
        "good for long": replace(TOKEN, prefix="00000000000d", lifetime_ms=100 * HOUR_MS),
        "revoked lately": replace(TOKEN, prefix="00000000000e"),
    }
    await _put(engine, *names.values())
    await _revoke(engine, names["revoked"].prefix)
    clock.advance(seconds=3 * 3600)
    await _revoke(engine, names["revoked lately"].prefix)
    assert await engine.access.prune_access(2 * HOUR_MS, 1) == 1
    assert await engine.access.prune_access(2 * HOUR_MS, 10) == 1
    assert await engine.access.prune_access(2 * HOUR_MS, 10) == 0

    left = [token.prefix for token in (await engine.access.tokens(limit=10)).tokens]

    assert left == ["00000000000c", "00000000000d", "00000000000e"]
    assert await engine.access.token(names["revoked"].prefix) is None

"""The example with many tenants in many zones, with few of them."""

import pytest

from examples import billing


@pytest.fixture(autouse=True)
def no_bills_yet():
    billing.billed.clear()
    billing.wrong.clear()


async def test_every_tenant_is_billed_once_when_its_own_day_begins(capsys):
    await billing.main(80)
    assert "each of 80 tenants was billed once" in capsys.readouterr().out
    assert set(billing.billed.values()) == {1}
    assert len(billing.billed) == 80

"""Known bugs are planted one by one; a suite that does not notice them proves nothing."""

import pytest

from tests.faults import mutants


@pytest.mark.timeout(120)
def test_every_planted_bug_is_noticed(tmp_path):
    told = []

    survivors = mutants.hunt(tmp_path, processes=False, say=told.append)

    assert survivors == [], "\n".join(told)

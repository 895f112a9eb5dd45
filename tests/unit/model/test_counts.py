"""Counts as people read them: one of something is never several."""

import pytest

from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidOption
from lamplighter.model.retry import Retry
from lamplighter.model.schedule import Cron


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (12_345, "12,345 jobs")]
)
def test_a_noun_has_the_number_of_its_count(number, told):
    assert counted(number, "job") == told


def test_words_that_do_not_end_in_s_are_named():
    assert [counted(n, "child is", "children are") for n in (1, 2)] == [
        "1 child is",
        "2 children are",
    ]


def test_a_cron_expression_of_one_field_has_one_field():
    with pytest.raises(InvalidOption, match=r"(?m)`hourly` has 1 field$"):
        Cron("hourly")


def test_one_named_delay_is_one_retry():
    with pytest.raises(InvalidOption, match=r"(?m)names only 1 retry$"):
        Retry(delays=[5], max_attempts=3)

"""Queues of a worker, as users write them."""

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.worker import queues


def test_names_alone_mean_strict_order():
    stride = queues.parse("b, a")

    assert stride.queues == ("b", "a")
    assert stride.weights is None


def test_weights_mean_shares():
    stride = queues.parse("a=3, b = 1")

    assert stride.queues == ("a", "b")
    assert stride.weights == (3, 1)


def test_names_may_contain_the_signs_that_separate_them():
    assert queues.parse("a%2Cb,c%3d1").queues == ("a,b", "c=1")
    assert queues.parse("a%2Cb=3,c%3D1=1").weights == (3, 1)
    assert queues.parse("100%252C").queues == ("100%2C",)
    assert queues.parse("50% off,%20").queues == ("50% off", "%20")


@pytest.mark.parametrize("text", ["", "a,,b", "a=1,b", "a,a", "a=0", "a=x", "a=1001", "a=-1", "=1"])
def test_what_cannot_be_meant_is_refused_with_a_hint(text):
    with pytest.raises(InvalidInput) as refused:
        queues.parse(text)
    assert refused.value.hint

import lamplighter
from lamplighter.model.errors import LamplighterError


def test_the_public_names_are_sorted_and_exist():
    assert lamplighter.__all__ == sorted(lamplighter.__all__)
    assert all(hasattr(lamplighter, name) for name in lamplighter.__all__)


def test_public_errors_are_the_same_as_in_the_errors_module():
    for name in lamplighter.__all__:
        value = getattr(lamplighter, name)
        if isinstance(value, type) and issubclass(value, LamplighterError):
            assert getattr(lamplighter.errors, name) is value

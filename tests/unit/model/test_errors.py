import pytest

from lamplighter.model import errors

# A refinement defined elsewhere shares the code, and so the page, of the class it refines.
OWN = [cls for cls in errors.every_error() if cls.__module__ == errors.__name__]


def test_every_class_has_a_code_of_its_own():
    codes = [cls.code for cls in OWN]

    assert len(codes) == len(set(codes))
    assert all("code" in vars(cls) for cls in OWN)


def test_every_class_of_the_module_is_listed():
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.LamplighterError)
    }

    assert defined == set(OWN)


@pytest.mark.parametrize("cls", OWN)
def test_codes_are_words_joined_by_dashes(cls):
    assert cls.code == cls.code.lower().strip("-")
    assert cls.code.replace("-", "").isalpha()


@pytest.mark.parametrize("cls", OWN)
def test_an_error_carries_value_cause_and_remedy(cls):
    error = cls("the cause", hint="the remedy", value=7)

    assert (error.cause, error.hint, error.value) == ("the cause", "the remedy", 7)
    assert str(error) == "the cause\n\nhint: the remedy"


def test_without_a_hint_only_the_cause_is_said():
    assert str(errors.StoreError("the cause", hint="")) == "the cause"

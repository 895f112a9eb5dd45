import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.errors import InvalidName
from lamplighter.model.names import KEY_LIMIT, NAME_LIMIT, check_key, check_name, shown

plain = st.characters(exclude_categories=["Cc", "Cs"])


def texts(longest: int) -> st.SearchStrategy[str]:
    return st.text(plain, min_size=1, max_size=longest).filter(lambda text: text not in {".", ".."})


@given(texts(NAME_LIMIT))
def test_any_text_without_control_characters_is_a_name(text):
    assert check_name("queue", text) == text


@given(texts(KEY_LIMIT))
def test_keys_may_be_longer_than_names(text):
    assert check_key(text) == text


@pytest.mark.parametrize("code", [0, 9, 10, 13, 27, 31, 127, 128, 159, 0xD800, 0xDFFF])
def test_control_characters_and_lone_surrogates_are_refused(code):
    assert unicodedata.category(chr(code)) in {"Cc", "Cs"}
    with pytest.raises(InvalidName) as refused:
        check_name("tenant", f"a{chr(code)}b")

    assert f"U+{code:04X}" in refused.value.cause
    assert chr(code) not in refused.value.cause


@pytest.mark.parametrize("bad", ["", "x" * (NAME_LIMIT + 1), "ä" * (NAME_LIMIT + 1)])
def test_empty_and_too_long_names_are_refused(bad):
    with pytest.raises(InvalidName, match="type"):
        check_name("type", bad)


@pytest.mark.parametrize("bad", [None, 7, b"bytes", ["list"]])
def test_what_is_not_text_is_refused(bad):
    with pytest.raises(InvalidName, match="not text"):
        check_name("queue", bad)


def test_a_key_has_its_own_limit():
    with pytest.raises(InvalidName, match=str(KEY_LIMIT)):
        check_key("x" * (KEY_LIMIT + 1))


@given(st.one_of(st.text(), st.binary(), st.integers(), st.none(), st.lists(st.text())))
def test_what_is_shown_is_short_and_printable(value):
    text = shown(value)

    assert len(text) <= 45 + 8 * 41
    assert text.isprintable()

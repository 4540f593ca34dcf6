import pytest

from moldau.cli.printing import print_rows, table, text_or_base64


def test_columns_of_numbers_stand_to_the_right() -> None:
    text = table(["name", "count", "rate"], [["a", 5, 1.25], ["bcd", 12345, None]])
    assert text.splitlines() == [
        "NAME  COUNT  RATE",
        "a         5  1.25",
        "bcd   12345  -",
    ]


def test_lists_and_flags_have_words() -> None:
    assert table(["x"], [[[1, 2]], [[]], [True], [False]]).split() == ["X", "1,2", "-", "yes", "no"]


def test_rows_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("a",), [{"a": "ř", "b": None}], as_json=True)
    assert capsys.readouterr().out == '{"a":"ř","b":null}\n'


def test_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("a",), [], as_json=False, empty="nothing")
    assert capsys.readouterr() == ("", "nothing\n")


def test_what_is_not_text_is_base64() -> None:
    assert text_or_base64("key", b"\xff") == {"key_base64": "/w=="}
    assert text_or_base64("key", "ř".encode()) == {"key": "ř"}
    assert text_or_base64("key", None) == {"key": None}

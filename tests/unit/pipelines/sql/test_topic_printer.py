import pytest

from moldau.pipelines.sql.topic_printer import as_text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, None),
        (b"", ""),
        ("žluť".encode(), "žluť"),
        (b'{"a": 1}', '{"a": 1}'),
        (b"\x00\x00\x00\x07", "7"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xfe", "-2"),
        (b"\x00\x01", "0x0001"),
        (b"\xff", "0xff"),
    ],
)
def test_bytes_are_shown_as_people_read_them(data: bytes | None, shown: str | None) -> None:
    assert as_text(data) == shown

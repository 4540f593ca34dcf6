"""Kafka's text form of a uuid: base64url without padding, 22 characters."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

TEXT_SIZE = 22


def uuid_to_text(uuid: bytes) -> str:
    """Return the 22 characters that stand for sixteen bytes."""
    assert len(uuid) == 16, f"a uuid has 16 bytes, not {len(uuid)}"
    return urlsafe_b64encode(uuid)[:TEXT_SIZE].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """Return the sixteen bytes; `ValueError` if the text is not a uuid in this form.

    Padding is taken as well, because people and other tools write it.
    """
    bare = text.removesuffix("==")
    # The decoder skips what is not of its alphabet, so only the way back shows that nothing was.
    uuid = urlsafe_b64decode(bare.encode() + b"==") if len(bare) == TEXT_SIZE else b""
    if len(uuid) != 16 or uuid_to_text(uuid) != bare:
        raise ValueError(f"{text!r} is not a uuid in base64url")
    return uuid

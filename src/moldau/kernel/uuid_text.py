"""Kafka's text form of a uuid: base64url without padding, 22 characters."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

# Padding is taken as well, because people and other tools write it.
_TEXT = re.compile("([A-Za-z0-9_-]{22})(==)?")


def uuid_to_text(uuid: bytes) -> str:
    """Return the 22 characters that stand for sixteen bytes."""
    assert len(uuid) == 16, f"a uuid has 16 bytes, not {len(uuid)}"
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """Return the sixteen bytes; `ValueError` if the text is not a uuid in this form."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a uuid in base64url")
    return urlsafe_b64decode(match[1] + "==")

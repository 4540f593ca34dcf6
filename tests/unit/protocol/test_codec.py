"""The native codec agrees with the readable one, on every message and version."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.protocol.schema import Message
from tests.reference import codec as reference
from tests.strategies import SETTINGS, all_messages, structs, versions_of


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
@settings(SETTINGS, max_examples=SETTINGS.max_examples // 2)
@given(data=st.data())
def test_both_codecs_agree(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(cls)), label="version")
    message = data.draw(structs(cls, version), label="message")
    flexible = version >= cls._flexible
    encoded = cls.plan(version).encode(message)
    assert encoded == reference.encode(message, version, flexible=flexible)
    assert b"".join(cls.plan(version).encode_chunks(message)) == encoded
    assert cls.plan(version).decode(encoded) == message
    assert reference.decode(cls, encoded, version, flexible=flexible) == message

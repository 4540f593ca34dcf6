"""Damaged frames of every message and version: refused or read, and nothing else.

MOLDAU_FUZZ_FRAMES says how many (`make fuzz`: a million), MOLDAU_FUZZ_SEED which ones. The native
codec and the readable one must come to the same verdict, and to the same values.
"""

import os
import random
import resource
import secrets
import sys
import time

import pytest

from moldau.kernel.errors import ProtocolError
from moldau.protocol.schema import Message, Struct
from tests.fuzz.mutation import damage, random_struct
from tests.reference import codec as reference
from tests.strategies import all_versions

FRAMES = int(os.environ.get("MOLDAU_FUZZ_FRAMES", "20000"))
SEED = os.environ.get("MOLDAU_FUZZ_SEED") or secrets.token_hex(4)
FRAME_SECONDS_MAX = 1.0
MEMORY_GROWTH_MAX = 64 << 20


def outcome(cls: type[Message], data: bytes, version: int) -> Struct | None:
    """Decode with both codecs, encode again; None if the frame was refused."""
    try:
        message = cls.plan(version).decode(data)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            reference.decode(cls, data, version, flexible=version >= cls._flexible)
        return None
    encoded = cls.plan(version).encode(message)
    other = reference.decode(cls, data, version, flexible=version >= cls._flexible)
    # Not the values themselves: a float that is not a number differs from itself.
    assert encoded == reference.encode(other, version, flexible=version >= cls._flexible)
    assert encoded == cls.plan(version).encode(cls.plan(version).decode(encoded))
    return message


def peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@pytest.mark.long
def test_damaged_frames() -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED} MOLDAU_FUZZ_FRAMES={FRAMES}")  # noqa: T201 - to run it again
    versions = all_versions()
    rng = random.Random(SEED)
    refused = 0
    memory = None
    for number in range(FRAMES):
        cls, version = versions[number % len(versions)]
        valid = random_struct(rng, cls, version).encode(version)
        data = damage(rng, valid)
        started = time.process_time()
        try:
            refused += outcome(cls, data, version) is None
        except BaseException as error:
            error.add_note(f"frame {number}: {cls.__name__} v{version}: {data.hex()}")
            raise
        assert time.process_time() - started < FRAME_SECONDS_MAX, (cls, version, data.hex())
        if number == len(versions):
            memory = peak_memory()
    assert FRAMES / 4 < refused < FRAMES
    assert memory is None or peak_memory() - memory < MEMORY_GROWTH_MAX


@pytest.mark.long
def test_noise() -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED}")  # noqa: T201 - to run it again
    rng = random.Random(SEED)
    for cls, version in all_versions():
        for _ in range(max(1, FRAMES // 20_000)):
            outcome(cls, rng.randbytes(rng.randrange(100)), version)

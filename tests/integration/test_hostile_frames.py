"""Hostile frames beside a healthy client, all of whose requests succeed.

MOLDAU_HOSTILE_FRAMES says how many (`make soak`: 100,000), MOLDAU_FUZZ_SEED which ones.
"""

import os
import random
import re
import resource
import secrets
import socket
import struct
import sys
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from moldau._native.records import Record
from moldau.broker.served import HANDLERS
from moldau.protocol.framing import encode_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.fuzz.mutation import damage, random_struct
from tests.integration.nodes import running
from tests.nodes import RunningNode
from tests.wire import Wire

if TYPE_CHECKING:
    from moldau.protocol.schema import Message

FRAMES = int(os.environ.get("MOLDAU_HOSTILE_FRAMES", "2000"))
SEED = os.environ.get("MOLDAU_FUZZ_SEED") or secrets.token_hex(4)
GROWTH_BYTES_MAX = 64 << 20
OPEN_MAX = 50
TOPIC = "healthy"
CHANGING = re.compile("create|delete|alter|update|elect|unregister")
"""APIs of which a damaged request may still do what it says, and change what is healthy."""
# A reset at the end leaves nothing behind that would keep the port.
LINGER_NOT = struct.pack("ii", 1, 0)


def hostile(rng: random.Random) -> bytes:
    """Return what no client in its right mind sends, or only the beginning of something."""
    match rng.randrange(8):
        case 0:
            return rng.choice(
                [
                    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500),
                    b"\x00\x00\x00\x00" * 10,
                    b"\xff" * 100,
                ]
            )
        case 1:
            return rng.randbytes(rng.randrange(1, 2000))
        case 2:
            size = rng.choice([-1, 0, 7, -(1 << 31), (1 << 31) - 1, 100 << 20, 104_857_601])
            return size.to_bytes(4, signed=True) + rng.randbytes(rng.randrange(200))
        case 3:
            # An unknown API or version, whole.
            body = rng.randbytes(rng.randrange(8, 100))
            return len(body).to_bytes(4) + body
        case 4:
            # A large frame that never comes.
            return (50 << 20).to_bytes(4) + b"\x00\x00\x00\x08" + rng.randbytes(1000)
        case _:
            return _damaged_request(rng)


def _damaged_request(rng: random.Random) -> bytes:
    called = rng.choice(
        [each.api for each in HANDLERS.values() if not CHANGING.search(each.api.module)]
    )
    version = rng.randint(called.first, called.last_stable)
    message = cast("Message", random_struct(rng, called.request_class, version))
    pieces = encode_request(message, version, correlation_id=1, client_id="h")
    whole = b"".join(pieces)
    return whole[:4] + damage(rng, whole[4:])


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


class Healthy(threading.Thread):
    """Asks and produces all the time."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self.requests = 0
        self.error: BaseException | None = None
        self.is_over = threading.Event()
        self._wire = wire

    def run(self) -> None:
        records = [Record(0, 1_700_000_000_000, None, random.Random(1).randbytes(2000), [])]
        try:
            while not self.is_over.is_set():
                versions = self._wire.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
                assert versions.api_keys
                assert self._wire.produce(TOPIC, records).error_code == 0
                self.requests += 2
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error
        finally:
            self._wire.close()


@pytest.mark.alone
@pytest.mark.long
def test_hostile_frames_beside_a_healthy_client(tmp_path: Path) -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED} MOLDAU_HOSTILE_FRAMES={FRAMES}")  # noqa: T201 - to run it again
    # The two clients share an interpreter, and are not what is tested.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        with running(
            "--data", tmp_path / "data", "--set", "auto.create.topics.enable=false"
        ) as node:
            attack(node, random.Random(SEED))
            log = node.stop()
    finally:
        sys.setswitchinterval(interval)
    assert "closing the connection of 127.0.0.1" in log
    assert "Traceback" not in log, log[-5000:]
    assert log.count("\n") < FRAMES / 2, "whoever floods us writes no log"


def attack(node: RunningNode, rng: random.Random) -> None:
    port = node.address[1]
    wire = Wire("127.0.0.1", port)
    wire.create_topic(TOPIC)
    healthy = Healthy(wire)
    healthy.start()
    opened: deque[socket.socket] = deque()
    before = largest = resident_bytes(node.process.pid)
    for number in range(FRAMES):
        attacker = socket.create_connection(("127.0.0.1", port), timeout=30)
        attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        attacker.sendall(hostile(rng))
        opened.append(attacker)
        if len(opened) > OPEN_MAX:
            opened.popleft().close()
        if number % 500 == 0:
            largest = max(largest, resident_bytes(node.process.pid))
    largest = max(largest, resident_bytes(node.process.pid))
    for attacker in opened:
        attacker.close()
    healthy.is_over.set()
    healthy.join()
    assert healthy.error is None
    assert healthy.requests > FRAMES // 100
    growth = largest - before
    print(f"{healthy.requests} healthy requests, {growth / 1e6:.1f} MB more")  # noqa: T201
    assert growth < GROWTH_BYTES_MAX

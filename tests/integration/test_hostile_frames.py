"""Hostile frames beside a healthy client, all of whose requests succeed.

MOLDAU_HOSTILE_FRAMES says how many (`make soak`: 100,000), MOLDAU_FUZZ_SEED which ones.
"""

import os
import random
import resource
import secrets
import socket
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from moldau.protocol.apis import APIS
from moldau.protocol.framing import encode_request
from tests.fuzz.mutation import damage, random_struct
from tests.listeners import Client

if TYPE_CHECKING:
    from moldau.protocol.schema import Message

FRAMES = int(os.environ.get("MOLDAU_HOSTILE_FRAMES", "5000"))
SEED = os.environ.get("MOLDAU_FUZZ_SEED") or secrets.token_hex(4)
GROWTH_BYTES_MAX = 64 << 20
OPEN_MAX = 50
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
    called = rng.choice([each for each in APIS if each.key in {0, 1, 3, 18}])
    version = rng.randint(called.first, called.last_stable)
    message = cast("Message", random_struct(rng, called.request_class, version))
    pieces = encode_request(message, version, correlation_id=1, client_id="h")
    whole = b"".join(pieces)
    return whole[:4] + damage(rng, whole[4:])


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@contextmanager
def serving() -> Iterator[tuple[int, int]]:
    """Run the listener in a process of its own, to see its memory; yield pid and port."""
    command = [sys.executable, "-m", "tests.listeners"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()
        assert process.wait(30) == 0


class Healthy(threading.Thread):
    """Asks and produces all the time."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.requests = 0
        self.error: BaseException | None = None
        self.is_over = threading.Event()
        self._client = client

    def run(self) -> None:
        batch = random.Random(1).randbytes(20_000)
        try:
            while not self.is_over.is_set():
                self._client.ask_versions()
                self._client.check_produced(self._client.send_produce(batch), batch)
                self.requests += 2
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error
        finally:
            self._client.socket.close()


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_hostile_frames_beside_a_healthy_client() -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED} MOLDAU_HOSTILE_FRAMES={FRAMES}")  # noqa: T201 - to run it again
    rng = random.Random(SEED)
    # The two clients share an interpreter, and are not what is tested.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        attack(rng)
    finally:
        sys.setswitchinterval(interval)


def attack(rng: random.Random) -> None:
    with serving() as (pid, port):
        healthy = Healthy(Client(port, "127.0.0.1"))
        healthy.start()
        opened: deque[socket.socket] = deque()
        before = largest = resident_bytes(pid)
        for number in range(FRAMES):
            attacker = socket.create_connection(("127.0.0.1", port), timeout=30)
            attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            attacker.sendall(hostile(rng))
            opened.append(attacker)
            if len(opened) > OPEN_MAX:
                opened.popleft().close()
            if number % 500 == 0:
                largest = max(largest, resident_bytes(pid))
        largest = max(largest, resident_bytes(pid))
        for attacker in opened:
            attacker.close()
        healthy.is_over.set()
        healthy.join()
        assert healthy.error is None
        assert healthy.requests > FRAMES // 100
        growth = largest - before
        print(f"{healthy.requests} healthy requests, {growth / 1e6:.1f} MB more")  # noqa: T201
        assert growth < GROWTH_BYTES_MAX

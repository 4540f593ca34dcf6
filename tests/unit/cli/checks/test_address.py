import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from moldau.cli.checks import address
from moldau.cli.checks.address import HELLO, check_address


@contextmanager
def serving(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """Listen, and answer whatever is said first."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(answer(connection.recv(1024)))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def last(port: int, host: str = "127.0.0.1") -> tuple[str, str]:
    *_, finding = check_address(host, port)
    return finding.state, finding.what


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (b"\0\0\0\6" + HELLO[8:12] + b"\0\0", "ok", "speaks Kafka's protocol"),
        (b"HTTP/1.1 400\r\n", "problem", "is an HTTP server, no Kafka broker"),
        (b"SSH-2.0-x\r\n", "problem", "is an SSH server, no Kafka broker"),
        (b"\x15\x03\x03\0\2\2\x46", "problem", "wants TLS"),
        (b"something", "problem", "does not speak Kafka's protocol: it said b'something'"),
        (b"", "problem", "does not speak Kafka's protocol: it says nothing, or hangs up"),
    ],
    ids=["kafka", "http", "ssh", "tls", "another", "nothing"],
)
def test_who_is_there(answer: bytes, state: str, words: str) -> None:
    with serving(lambda _: answer) as port:
        assert last(port) == (state, f"127.0.0.1:{port} {words}")


def test_nobody_is_there() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        assert last(port) == ("problem", f"nothing listens at 127.0.0.1:{port}")


def test_a_name_that_nobody_knows() -> None:
    [finding] = check_address("nowhere.invalid", 9092)
    assert finding.what.startswith("the host name nowhere.invalid cannot be resolved")


def test_a_firewall(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(address.socket, "create_connection", never)
    *_, finding = check_address("127.0.0.1", 9092)
    assert finding.what == "127.0.0.1:9092 does not answer within 5 s"
    assert "firewall" in finding.way_out

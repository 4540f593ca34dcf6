"""Is there a broker at an address: name, port, protocol, versions, advertised listeners."""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from moldau.cli.checks.finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from moldau.client.admin import Admin

SECONDS: Final = 5.0
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})

# ApiVersions, version 0, from a client without a name: every Kafka since 0.10 answers it.
HELLO: Final = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
TLS_ALERT: Final = b"\x15\x03"
GREETINGS: Final = {
    b"HTTP/": "an HTTP server",
    b"<": "an HTTP server",
    b"SSH-": "an SSH server",
    b"-ERR": "a Redis server",
    b"+OK": "a mail server",
    b"220": "a mail or FTP server",
}


def check_address(host: str, port: int) -> Iterator[Finding]:
    """Look at one address from the outside in; stop where nothing further can be seen."""
    address = f"{host}:{port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        yield problem(
            f"the host name {host} cannot be resolved ({getattr(error, 'strerror', error)})",
            "check its spelling; a container's name is known inside its own network only",
        )
        return
    numbers = ", ".join(dict.fromkeys(str(each[4][0]) for each in found))
    yield ok(f"{host} is {numbers}")
    try:
        connection = socket.create_connection((host, port), SECONDS)
    except OSError as error:
        yield _unreachable(host, port, error)
        return
    with connection:
        yield ok(f"something listens at {address}")
        yield from _check_protocol(connection, host, port)


def _unreachable(host: str, port: int, error: OSError) -> Finding:
    address = f"{host}:{port}"
    if isinstance(error, TimeoutError) or error.errno == errno.ETIMEDOUT:
        return problem(
            f"{address} does not answer within {SECONDS:g} s",
            "a firewall or a security group drops what is sent there, or the host is down: allow"
            f" TCP port {port}",
        )
    if error.errno == errno.ECONNREFUSED:
        start = f"start one with `moldau start --port {port}`" if host in LOCAL else "start it"
        return problem(
            f"nothing listens at {address}",
            f"{start}, or check the port; a broker that listens on localhost only is not reached"
            " from elsewhere (`moldau start --host 0.0.0.0`)",
        )
    return problem(
        f"{address} cannot be reached ({error.strerror or error})", "check the network between"
    )


def _check_protocol(connection: socket.socket, host: str, port: int) -> Iterator[Finding]:
    address = f"{host}:{port}"
    answer = _ask(connection)
    if len(answer) >= 8 and answer[4:8] == HELLO[8:12]:
        yield ok(f"{address} speaks Kafka's protocol")
        return
    if answer.startswith(TLS_ALERT) or (not answer and _speaks_tls(host, port)):
        yield problem(
            f"{address} wants TLS",
            "use the port of a PLAINTEXT listener; TLS is not done yet here (docs/gaps.md)",
        )
        return
    for greeting, who in GREETINGS.items():
        if answer.startswith(greeting):
            yield problem(f"{address} is {who}, no Kafka broker", "check the port: 9092 is usual")
            return
    said = f"it said {answer[:20]!r}" if answer else "it says nothing, or hangs up"
    yield problem(
        f"{address} does not speak Kafka's protocol: {said}",
        "check the port: it may be a controller's, or another program's; 9092 is usual",
    )


def _ask(connection: socket.socket) -> bytes:
    """Say hello; return the beginning of what is answered."""
    answer = b""
    try:
        connection.sendall(HELLO)
        while len(answer) < 8:
            piece = connection.recv(1024)
            if not piece:
                break
            answer += piece
    except OSError:
        pass
    return answer


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), SECONDS) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except ssl.SSLError as error:
        # It took part in a handshake, even if it wants a certificate.
        return "WRONG_VERSION_NUMBER" not in str(error) and "EOF" not in str(error)
    except OSError:
        return False


def check_cluster(admin: "Admin", host: str, port: int) -> Iterator[Finding]:
    """Look at the cluster behind an address that works."""
    import moldau
    from moldau.metadata.features import LEVELS, METADATA_VERSION

    features = admin.describe_features()
    level = features.finalized.get(METADATA_VERSION)
    names = {each.level: each.name for each in LEVELS}
    here = f"this is Moldau {moldau.__version__}, which knows Kafka up to {LEVELS[-1].release}"
    if level is None:
        yield warning(
            f"the cluster says no metadata.version: it is older than Kafka 3.3; {here}",
            "update it, if something does not work",
        )
    elif level in names:
        yield ok(f"the cluster's metadata.version is {level} ({names[level]}); {here}")
    else:
        yield warning(
            f"the cluster's metadata.version is {level}, which is not known here; {here}",
            "update Moldau, if something does not work",
        )
    cluster = admin.describe_cluster()
    yield ok(f"cluster {cluster.cluster_id} has {len(cluster.nodes)} broker(s)")
    for node in cluster.nodes:
        if (node.host, node.port) != (host, port):
            yield _check_advertised(node.node_id, node.host, node.port)
    yield from _check_partitions(admin)


def _check_advertised(node_id: int, host: str, port: int) -> Finding:
    name = f"broker {node_id} tells clients to come to {host}:{port}"
    try:
        with socket.create_connection((host, port), SECONDS):
            return ok(f"{name}, which can be reached")
    except OSError as error:
        reason = error.strerror or str(error)
        return problem(
            f"{name}, which cannot be reached from here ({reason})",
            "set advertised.listeners of the broker to an address that clients reach, such as"
            " PLAINTEXT://HOST:PORT, or have this machine resolve and reach it",
        )


def _check_partitions(admin: "Admin") -> Iterator[Finding]:
    topics = admin.list_topics().values()
    partitions = [(topic.name, each) for topic in topics for each in topic.partitions]
    headless = [f"{name}-{each.index}" for name, each in partitions if each.leader < 0]
    behind = [
        f"{name}-{each.index}"
        for name, each in partitions
        if len(each.in_sync) < len(each.replicas)
    ]
    if headless:
        yield problem(
            f"{len(headless)} partition(s) have no leader: {', '.join(headless[:3])}",
            "start the brokers that have them, and look for disk errors in their logs",
        )
    if behind:
        yield warning(
            f"{len(behind)} partition(s) lack copies: {', '.join(behind[:3])}",
            "wait for the brokers to catch up, or start those that are down",
        )
    if not headless and not behind:
        yield ok(f"all {len(partitions)} partition(s) have a leader and all their copies")

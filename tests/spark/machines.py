"""Machines, as far as sockets can tell: network namespaces behind a switch, all on this computer.

Needs root. Nothing of one machine's loopback is seen on another; files are shared.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

NETWORKS_MAX = 256
NETWORK = "198.18.{number}"
"""Addresses that are set aside for tests of networks (RFC 2544)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A namespace with an address."""

    name: str
    address: str

    @property
    def program(self) -> tuple[str, ...]:
        """What goes before a command that is to run there; the command takes its place."""
        return ("ip", "netns", "exec", self.name)

    def kill(self) -> None:
        """End everything that runs there with -9, as a machine does that loses its power."""
        while pids := _ip("netns", "pids", self.name).split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


@contextmanager
def machines(*names: str) -> Iterator[list[Machine]]:
    """Have machines that reach each other and this process; nothing is left of them at the end."""
    with ExitStack() as stack:
        number, switch = _reserve(stack)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        own = f"moldau{number}"
        addresses = (f"{NETWORK.format(number=number)}.{last}" for last in range(1, 255))
        _ip("link", "add", own, "type", "veth", "peer", "name", "here", "netns", switch)
        # A namespace that is deleted takes its end along, and so both, but some time later.
        stack.callback(_ip, "link", "delete", own)
        _plug(switch, "here", (), own, next(addresses))
        yield [_make(stack, switch, f"moldau{number}-{name}", next(addresses)) for name in names]


def _reserve(stack: ExitStack) -> tuple[int, str]:
    for number in range(NETWORKS_MAX):
        name = f"moldau{number}-switch"
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "add", name)  # another run's, or one that was killed, has its own
            stack.callback(_ip, "netns", "delete", name)
            return number, name
    raise AssertionError("no network is free: `ip netns` lists them, are you root?")


def _make(stack: ExitStack, switch: str, name: str, address: str) -> Machine:
    machine = Machine(name, address)
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "delete", name)
    stack.callback(machine.kill)
    _ip("-n", name, "link", "set", "lo", "up")
    end = name.partition("-")[2]
    peer = ("peer", "name", end, "netns", switch)
    _ip("link", "add", "eth0", "netns", name, "type", "veth", *peer)
    _plug(switch, end, ("-n", name), "eth0", address)
    return machine


def _plug(switch: str, end: str, where: tuple[str, ...], interface: str, address: str) -> None:
    _ip("-n", switch, "link", "set", "dev", end, "master", "switch", "up")
    _ip(*where, "address", "add", f"{address}/24", "dev", interface)
    _ip(*where, "link", "set", "dev", interface, "up")


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
    return done.stdout

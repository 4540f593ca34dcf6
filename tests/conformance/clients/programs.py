"""Clients in other languages: programs that are told what to do line by line.

A command is one line of words with tabs between them; `produce` says how many rows follow it, one
a line. The answer is lines, the last of them `.`, or `! ` and what went wrong.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Timer

from tests.conformance import jars
from tests.conformance.clients.client import FETCH_WAIT_MS, Acks, ClientError, Row
from tools import peers

HERE = Path(__file__).parents[1]
ANSWER_SECONDS_MAX = 90


class Program:
    """A `Client` that is another process."""

    def __init__(self, command: Sequence[str], servers: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*command, servers, str(FETCH_WAIT_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **environment},
        )

    def ask(self, *words: object, rows: Sequence[Row] = ()) -> list[str]:
        """Send a command; return the lines of its answer."""
        assert self.process.stdin
        assert self.process.stdout
        lines = ["\t".join(map(str, words))]
        lines += [f"{row.timestamp}\t{row.key or '-'}\t{row.value}" for row in rows]
        self.process.stdin.write("\n".join(lines) + "\n")
        self.process.stdin.flush()
        answer: list[str] = []
        limit = Timer(ANSWER_SECONDS_MAX, self.process.kill)
        limit.start()
        try:
            while (line := self.process.stdout.readline().rstrip("\n")) != ".":
                if line.startswith("! "):
                    raise ClientError(line[2:])
                assert line, f"the program ended: {self.process.wait()}"
                answer.append(line)
        finally:
            limit.cancel()
        return answer

    def produce(
        self, topic: str, partition: int, rows: Sequence[Row], *, codec: str, acks: Acks
    ) -> None:
        self.ask("produce", topic, partition, codec, acks, len(rows), rows=rows)

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Row]:
        rows = [line.split("\t") for line in self.ask("consume", topic, partition, offset, count)]
        return [
            Row(int(timestamp), None if key == "-" else key, value)
            for timestamp, key, value in rows
        ]

    def find_offset(self, topic: str, partition: int, timestamp: int) -> int:
        return int(self.ask("offset", topic, partition, timestamp)[0])

    def list_topics(self) -> list[str]:
        return self.ask("list")

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        self.ask("create", topic, partitions, *(f"{name}={configs[name]}" for name in configs))

    def count_partitions(self, topic: str) -> int:
        return int(self.ask("count", topic)[0])

    def get_config(self, topic: str, name: str) -> str:
        return self.ask("config", topic, name)[0]

    def set_config(self, topic: str, name: str, value: str) -> None:
        self.ask("set", topic, name, value)

    def add_partitions(self, topic: str, total: int) -> None:
        self.ask("grow", topic, total)

    def delete_topic(self, topic: str) -> None:
        self.ask("delete", topic)

    def read_as_group(self, topic: str, group: str, count: int) -> set[str]:
        return set(self.ask("group", topic, group, count))

    def transact(self, topic: str, count: int) -> None:
        self.ask("transact", topic, count)

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(ANSWER_SECONDS_MAX)
        finally:
            self.process.kill()
            self.process.stdout.close()


def java(servers: str) -> Program:
    """Kafka's own client, 4.4.0."""
    return Program(jars.command("Client"), servers)


def franz_go(servers: str) -> Program:
    """franz-go, built with the modules that go.sum names."""
    return Program([str(peers.franz_go())], servers)


def kafkajs(servers: str) -> Program:
    """kafkajs, with the codecs that its users plug in."""
    modules = str(peers.kafkajs())
    return Program(["node", str(HERE / "js" / "client.js")], servers, NODE_PATH=modules)

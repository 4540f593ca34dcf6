"""A tool of Kafka's, 4.3.1, and our face of it: run with the same arguments."""

import re
from collections.abc import Callable
from pathlib import Path

from tests.commands import script
from tests.conformance.jars import run_java

CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

LOGGED = re.compile(r"\d{4}-\d\d-\d\dT\S+ \S+ (ERROR|WARN) |\tat |Option --property is deprecated")


class Tools:
    """Both tools of a name, told which broker to ask."""

    def __init__(self, bootstrap_servers: str, directory: Path) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.directory = directory

    def ours(self, name: str, *words: str, typed: str = "") -> tuple[int, str]:
        done = script(f"{name}.sh", *self._there(name), *words, typed=typed.encode())
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    def theirs(self, name: str, *words: str, typed: str = "") -> tuple[int, str]:
        done = run_java(self.directory, CLASSES[name], *self._there(name), *words, typed=typed)
        # What it logs stands between what it prints.
        lines = [line for line in done.stdout.splitlines(keepends=True) if not LOGGED.match(line)]
        return done.returncode, "".join(lines)

    def _there(self, name: str) -> tuple[str, ...]:
        if name == "kafka-dump-log":
            return ()
        return ("--bootstrap-server", self.bootstrap_servers)

    def check(
        self, name: str, *words: str, normal: Callable[[str], object] = lambda text: text
    ) -> str:
        """Run both, and compare exit code and output; return the output."""
        code, text = self.ours(name, *words)
        their_code, their_text = self.theirs(name, *words)
        told = f"{name} {words}: ours\n{code} {text}\ntheirs\n{their_code} {their_text}"
        assert (code, normal(text)) == (their_code, normal(their_text)), told
        return text

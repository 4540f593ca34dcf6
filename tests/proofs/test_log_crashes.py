"""Real crashes of a process that writes logs: what it acknowledged is there, nothing is corrupt."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.faults import PowerLossVolume

KILLS = int(os.environ.get("MOLDAU_KILLS", "5"))
LOSSES = int(os.environ.get("MOLDAU_POWER_LOSSES", "2"))
ROUNDS_PER_DIRECTORY = 20
DEADLINE_SECONDS = 60

pytestmark = [pytest.mark.alone, pytest.mark.long]


class Log:
    """A log directory, its writers one after the other, and what they said."""

    def __init__(self, root: Path, notes: Path, seed: int) -> None:
        self.root = root
        self.notes = notes
        self.random = random.Random(seed)
        self.seed = seed
        self.acknowledged = notes / "acknowledged"
        self.acknowledged.write_text("")

    def write_until(self, end) -> None:
        """Let a writer run for a while, and call `end(process)`."""
        self.seed += 1
        errors = self.notes / "errors"
        command = [sys.executable, "-m", "tests.proofs.log_writer", str(self.seed), str(self.root)]
        with (
            errors.open("a") as sink,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink, text=True) as writer,
        ):
            try:
                self._watch(writer)
                end(writer)
                output = writer.stdout.read()
            finally:
                writer.kill()
        lines = output.splitlines(keepends=True)
        with self.acknowledged.open("a") as file:
            file.writelines(line for line in lines if line.endswith("\n") and " " in line)

    def _watch(self, writer: subprocess.Popen[str]) -> None:
        """Choose the moment: while it opens, soon after, or in the middle of its work."""
        moment = self.random.choice(["opening", "open", "writing", "writing", "writing"])
        line = ""
        while line != ("opening\n" if moment == "opening" else "open\n"):
            line = writer.stdout.readline()
            assert line, (self.notes / "errors").read_text()
        if moment == "writing":
            wanted = self.random.randint(1, 300)
            with self.acknowledged.open("a") as file:
                for _ in range(wanted):
                    line = writer.stdout.readline()
                    assert line.endswith("\n"), (self.notes / "errors").read_text()
                    file.write(line)
        # Not in step with what it prints: anywhere within a few wake-ups.
        time.sleep(self.random.random() * 0.02)

    def check(self, crash: str) -> int:
        ending = self.random.choice(["crash", "close"])
        arguments = [str(self.acknowledged), crash, ending, str(self.root)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.proofs.log_checker", *arguments],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"seed {self.seed}: {done.stderr}"
        # A power loss may take one page of the unsynced tail and leave the next.
        assert crash == "power" or "WHOLE BATCHES FOLLOW" not in done.stdout, done.stdout
        return int(done.stdout.split("\n", 1)[0])


def test_what_was_acknowledged_survives_kill_9(tmp_path, record_property):
    checked = 0
    for turn in range(KILLS):
        if turn % ROUNDS_PER_DIRECTORY == 0:
            notes = tmp_path / str(turn)
            notes.mkdir()
            log = Log(notes / "data", notes, random.getrandbits(30))
        log.write_until(lambda writer: writer.kill())
        checked += log.check("kill")
    record_property("kills", KILLS)
    record_property("batches_checked", checked)
    assert KILLS < 5 or checked


def test_what_was_acknowledged_survives_power_losses(tmp_path, record_property):
    checked = 0
    with PowerLossVolume(tmp_path, size_mb=256) as volume:
        for turn in range(LOSSES):
            if turn % ROUNDS_PER_DIRECTORY == 0:
                notes = tmp_path / str(turn)
                notes.mkdir()
                root = volume.path / str(turn)
                shutil.rmtree(volume.path / str(turn - ROUNDS_PER_DIRECTORY), ignore_errors=True)
                root.mkdir()
                os.sync()
                log = Log(root, notes, random.getrandbits(30))

            def lose(writer, turn=turn):
                volume.power_loss(flush_journal=turn % 2 == 1)
                writer.kill()

            log.write_until(lose)
            volume.restart()
            checked += log.check("power")
    record_property("power_losses", LOSSES)
    record_property("batches_checked", checked)

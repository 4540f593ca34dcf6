"""Long answers through a pager, short ones as they are."""

import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from typing import Final, Self

# Quit if it fits, keep colours, do not wrap, leave the text where it is.
PAGER: Final = "less -FRSX"


class Pager:
    """Takes lines; from the first that does not fit on the screen on, a pager has them all."""

    def __init__(self) -> None:
        self._lines_max = shutil.get_terminal_size().lines - 2
        self._lines: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._is_broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, line: str) -> None:
        """Take a line."""
        if self._is_broken:
            return
        self._lines.append(line)
        if self._process is None and len(self._lines) <= self._lines_max:
            return
        if self._process is None:
            self._process = _open()
        self._drain()

    def close(self) -> None:
        """Show what is left, and wait for whoever reads it."""
        if self._process is None:
            self._drain()
            return
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        while True:
            try:
                self._process.wait()
                return
            except KeyboardInterrupt:
                continue  # it is the pager's

    def _drain(self) -> None:
        lines, self._lines = self._lines, []
        if self._process is None or self._process.stdin is None:
            for line in lines:
                print(line)
            return
        try:
            self._process.stdin.writelines(f"{line}\n" for line in lines)
        except BrokenPipeError:
            self._is_broken = True  # who reads has seen enough


def _open() -> "subprocess.Popen[str] | None":
    command = shlex.split(os.environ.get("PAGER") or PAGER)
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    except OSError:
        return None

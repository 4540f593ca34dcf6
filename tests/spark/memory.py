"""How much memory a driver and what it starts have had at most."""

from pathlib import Path

MB = 1 << 20


class PeakMemory:
    """The peaks of resident memory, in bytes, of a driver's processes, seen while they run."""

    def __init__(self) -> None:
        self.driver = 0
        """Of the Python process that runs the app."""
        self.jvm = 0
        self.worker = 0
        """Of the largest other Python process."""

    def look(self, pid: int) -> None:
        """Look at a driver and all that it has started; the kernel keeps each process's peak."""
        found = _processes()
        wanted = {pid}
        while more := {each for each, (parent, _, _) in found.items() if parent in wanted} - wanted:
            wanted |= more
        for each in wanted & found.keys():
            _, name, peak = found[each]
            # One that the JVM is just starting has the JVM's memory, and a thread's name.
            kind = "driver" if each == pid else {"java": "jvm", "python": "worker"}.get(name)
            if kind is not None:
                setattr(self, kind, max(getattr(self, kind), peak))


def _processes() -> dict[int, tuple[int, str, int]]:
    """Return parent, name and peak of all processes."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended meanwhile.
        # The kernel's own have none.
        peak = int(fields.get("VmHWM", "0").split()[0]) * 1024
        found[int(status.parent.name)] = (int(fields["PPid"]), fields["Name"].strip(), peak)
    return found

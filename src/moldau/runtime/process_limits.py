"""What the system allows a process."""

import resource


def raise_open_files_limit() -> None:
    """Use all file descriptors that there may be: connections and segments need many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_for_logs(wanted: int, directories: int) -> int:
    """Return how many files each log directory may keep open, connections left half of all."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(wanted, soft // 2) // max(1, directories))

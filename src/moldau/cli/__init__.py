"""The `moldau` command."""

import argparse
from collections.abc import Sequence

import moldau


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="moldau", description=moldau.__doc__)
    parser.add_argument("--version", action="version", version=f"moldau {moldau.__version__}")
    parser.parse_args(argv)
    parser.print_help()
    return 0

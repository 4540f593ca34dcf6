"""`moldau format`: prepare a data directory without starting."""

from collections.abc import Sequence

from moldau.cli.frame import Parser, complain
from moldau.cli.options import add_settings_options, load_settings
from moldau.kernel.disk import DiskError
from moldau.log.errors import DirectoryRefusedError
from moldau.metadata.settings.broker import BrokerSettings
from moldau.runtime.directory_lock import DirectoryInUseError
from moldau.runtime.event_loop import run
from moldau.runtime.formatting import Prepared, prepare_directories
from moldau.runtime.machine import MachineEnvironment


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau format",
        description="Prepare a data directory. `moldau start` does the same by itself for a new\n"
        "directory; this is for choosing the release that it is made for.",
        epilog="example:\n  moldau format --data data --release-version 4.3\n"
        "     makes a directory that Apache Kafka 4.3 can open, too",
    )
    add_settings_options(parser)
    parser.add_argument(
        "--release-version",
        metavar="RELEASE",
        help="the release of Kafka whose formats are used, such as 4.4 (default: 4.3)",
    )
    return parser


async def _prepare(settings: BrokerSettings) -> Prepared:
    return prepare_directories(settings, MachineEnvironment())


def main(argv: Sequence[str]) -> int:
    """Format; return the exit code."""
    options = make_parser().parse_args(argv)
    release = options.release_version
    loaded = load_settings(options, *([f"metadata.version={release}"] if release else []))
    if loaded is None or loaded.settings is None:
        return 2
    try:
        prepared = run(_prepare(loaded.settings))
    except (DirectoryInUseError, DirectoryRefusedError, DiskError) as error:
        complain(str(error))
        return 1
    prepared.release()
    where = ", ".join(loaded.settings.log_directories)
    if not prepared.is_new:
        complain(f"{where}: already formatted, as node {prepared.node_id} of {prepared.cluster_id}")
        return 1
    print(f"{where}: formatted as node {prepared.node_id} of the new cluster {prepared.cluster_id}")
    return 0

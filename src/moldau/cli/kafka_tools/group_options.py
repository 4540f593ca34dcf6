"""What `kafka-consumer-groups` and `kafka-share-groups` are both told."""

from typing import Final

from moldau.cli.frame import Parser

ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
TIMEOUT_MS: Final = 5000


def add_group_options(parser: Parser) -> None:
    """Add what to do, and with which groups and topics."""
    for action in ACTIONS:
        parser.add_argument(f"--{action}", action="store_true", help=f"{action.replace('-', ' ')}")
    parser.add_argument(
        "--group", action="append", metavar="GROUP", help="which group; may be repeated"
    )
    parser.add_argument("--all-groups", action="store_true", help="all groups")
    parser.add_argument(
        "--topic", action="append", metavar="TOPIC", help="which topic, or t:0,1; may be repeated"
    )
    parser.add_argument("--all-topics", action="store_true", help="all that a group has offsets of")
    parser.add_argument("--members", action="store_true", help="of --describe: the members")
    parser.add_argument("--offsets", action="store_true", help="of --describe: offsets and lag")
    parser.add_argument(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="of --describe: the state; of --list: the state, too, of groups in some states",
    )
    parser.add_argument("--dry-run", action="store_true", help="of --reset-offsets: only show")
    parser.add_argument("--execute", action="store_true", help="of --reset-offsets: do it")
    parser.add_argument(
        "--timeout", type=int, default=TIMEOUT_MS, metavar="MS", help=f"give up ({TIMEOUT_MS})"
    )

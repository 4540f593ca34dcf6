"""`moldau sql`: ask topics in SQL, and have queries run for ever."""

import argparse
from collections.abc import Sequence

from moldau.cli.frame import Parser, UsageError, run
from moldau.cli.target import DEFAULT_SERVER, SERVER_VARIABLE, add_json_option, add_verbose_option

EXAMPLES = """examples:
  moldau sql                                         a shell; `help` and Tab tell what there is
  moldau sql -e "SELECT user, sum(amount) FROM orders GROUP BY user"
  moldau sql -f shop.sql                             the statements of a file
  moldau sql --json -e "SELECT * FROM orders EMIT CHANGES LIMIT 5" | jq .amount
  moldau sql server                                  owns the queries and the views, until Ctrl-C
  moldau sql --server http://10.0.0.7:8088           a shell that talks to that one

The shell talks to the server that runs for this cluster. Where none runs, it runs one inside
itself, and the queries that are made there rest when it ends. Any topic can be read without being
declared. docs/sql.md is the guide, docs/from-ksqldb.md maps ksqlDB's statements."""
SERVER_EXAMPLES = """examples:
  moldau sql server
  moldau sql server --listen 0.0.0.0:8088            whoever reaches it can read and delete topics
  moldau sql server --master spark://h:7077 --checkpoints s3a://bucket/sql
  curl -s localhost:8088/statements -H 'Content-Type: application/json' \\
       -d '{"sql": "SHOW TOPICS"}'"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau sql",
        description="SQL on topics: questions that end or do not, and queries that run for ever.",
        epilog=EXAMPLES,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-e", "--execute", metavar="SQL", help="statements, with ; between them")
    what.add_argument("-f", "--file", metavar="FILE", help="a file of statements; - for the input")
    add_json_option(parser)
    parser.add_argument(
        "--server",
        metavar="URL",
        help="a server to talk to (default: the cluster's, or http://127.0.0.1:8088)",
    )
    _add_setup(parser, has_defaults=True)
    actions = parser.add_subparsers(metavar="[server]", dest="action")
    serve = actions.add_parser(
        "server",
        prog="moldau sql server",
        description="Run the queries that run for ever, keep views, and answer over HTTP.",
        epilog=SERVER_EXAMPLES,
        help="own the queries and the views, and answer over HTTP",
    )
    serve.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:8088",
        help="where (127.0.0.1:8088); port 0 chooses one",
    )
    _add_setup(serve, has_defaults=False)
    return parser


def _add_setup(parser: argparse.ArgumentParser, *, has_defaults: bool) -> None:
    """Add what a server is made of; `moldau sql` has one inside, so both have these."""
    # Else the defaults of the action would win over what was said before it.
    unset = None if has_defaults else argparse.SUPPRESS
    group = parser.add_argument_group("the cluster, and where queries run")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        "--bootstrap",
        dest="bootstrap",
        metavar="HOST:PORT",
        default=unset,
        help=f"a broker, or several with commas between (${SERVER_VARIABLE}, {DEFAULT_SERVER})",
    )
    group.add_argument(
        "--service",
        metavar="NAME",
        default="default" if has_defaults else unset,
        help="whose definitions and queries (default): each service has one server",
    )
    group.add_argument(
        "--data", metavar="DIR", default=unset, help="views and checkpoints (default: ./data/sql)"
    )
    group.add_argument(
        "--checkpoints",
        metavar="DIR",
        default=unset,
        help="where queries keep how far they are, if not in --data; a URI for a cluster",
    )
    group.add_argument(
        "--master", metavar="URL", default=unset, help="Spark's master (default: local[*])"
    )
    add_verbose_option(group)


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int | None:
    from moldau.cli.sql_parts import check_installed

    if options.action == "server":
        if options.execute is not None or options.file is not None or options.server is not None:
            raise UsageError("a server takes no statements: leave -e, -f and --server out")
        check_installed()
        from moldau.cli.sql_server import run_server

        return run_server(options)
    check_installed()
    from moldau.cli.sql_session import run_session

    return run_session(options)

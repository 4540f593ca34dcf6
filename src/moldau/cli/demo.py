"""`moldau demo`: a broker, a shop and a pipeline on Spark, for a minute."""

import argparse
from collections.abc import Sequence

from moldau.cli.frame import Parser, run
from moldau.cli.target import add_verbose_option

EXAMPLES = """examples:
  moldau demo
  moldau demo --seconds 20
  moldau demo --seconds 900      and then, in another terminal, `moldau sql -b HOST:PORT`

The shop begins with its last ten minutes, and goes on with what happens now. Everything is in
memory or in a temporary folder, and gone afterwards."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau demo",
        description="See a pipeline on Spark at work: windows and a join, from topic to topic.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="how long, from the first results on (60)"
    )
    add_verbose_option(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.pipelines.spark_version import check_pyspark

    check_pyspark()
    from moldau.cli.demo_run import run_demo

    run_demo(options.seconds)

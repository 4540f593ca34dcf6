"""`moldau pipeline`: run an app on Spark, see how it is doing, stop it, have it begin anew."""

import argparse
from collections.abc import Sequence

from moldau.cli.frame import Parser, UsageError, run
from moldau.cli.target import (
    SERVER_VARIABLE,
    add_json_option,
    add_target_options,
    add_verbose_option,
)

EXAMPLES = """examples:
  moldau pipeline run orders.py                      until Ctrl-C; failed queries start again
  moldau pipeline run orders.py --once               what is there now, then end
  moldau pipeline run orders.py --master spark://h:7077 --checkpoints s3a://bucket/pipelines
  moldau pipeline status shop                        in another terminal; `list` for all
  moldau pipeline stop shop
  moldau pipeline reset shop --query totals --to 2026-11-16T08:00
  moldau pipeline run orders.py --once --from 7d --until 1d --into '{query}-again'
  moldau pipeline retry-dead-letters shop --topic orders
  moldau pipeline get users ann                      a table's row, while an app or a server runs"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau pipeline",
        description="Apps on Spark: their queries lead from topic to topic, exactly once.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")

    def add(name: str, about: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name,
            prog=f"moldau pipeline {name}",
            description=f"{about[0].upper()}{about[1:]}.",
            help=about,
        )

    _add_run(add("run", "run an app, and start its queries again when they fail"))
    listing = add("list", "list the apps that have run here, and their queries")
    listing.add_argument("--names", action="store_true", help="print the names only")
    add_json_option(listing)
    status = add("status", "show how the queries of an app are doing")
    add_json_option(status)
    stop = add("stop", "stop an app, and wait for that")
    stop.add_argument(
        "--timeout", type=float, default=60, metavar="SECONDS", help="wait for so long (60)"
    )
    reset = add("reset", "have an app that does not run forget how far it has come")
    reset.add_argument(
        "--to",
        default="earliest",
        metavar="PLACE",
        help="begin at earliest (default), latest, or a time: 2h (ago), 2026-11-16T08:00",
    )
    reset.add_argument(
        "--query", action="append", metavar="QUERY", help="only this one; may be repeated"
    )
    reset.add_argument("--yes", action="store_true", help="do not ask")
    for action in (status, stop, reset):
        action.add_argument("app", metavar="APP", help="which")
    for action in (listing, status, stop, reset):
        action.add_argument(
            "--checkpoints", metavar="DIR", help="where it runs (default: ./data/pipelines)"
        )
        add_verbose_option(action)
    retry = add("retry-dead-letters", "send dead letters back to where they come from, each once")
    retry.add_argument("app", metavar="APP", help="whose")
    retry.add_argument("--topic", metavar="TOPIC", help="only those of this topic (default: all)")
    add_json_option(retry)
    add_target_options(retry)
    _add_get(add("get", "print the row of a key, from a view or from the topic"))
    return parser


def _add_get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", metavar="TABLE", help="a table of a SQL server or of an app, or a topic"
    )
    parser.add_argument("key", metavar="KEY", help="a text or a number; JSON for several columns")
    parser.add_argument("--from", dest="begin", metavar="TIME", help="windows that begin then")
    parser.add_argument("--until", metavar="TIME", help="or later, and before then; in UTC")
    parser.add_argument(
        "--server",
        metavar="URL",
        help="who keeps the view: a SQL server or an app that runs (default: who has it)",
    )
    parser.add_argument(
        "--service", metavar="NAME", default="default", help="the SQL server's service (default)"
    )
    add_json_option(parser)
    add_target_options(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.py", help="where the app is made")
    parser.add_argument("--app", metavar="NAME", help="which app, if the file has several")
    parser.add_argument(
        "--query", action="append", metavar="QUERY", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--master", metavar="URL", help="Spark's master, or sc://HOST:PORT (default: local[*])"
    )
    parser.add_argument(
        "--checkpoints",
        metavar="DIR",
        help="where queries keep how far they are; a URI for a cluster (default: ./data/pipelines)",
    )
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        "--bootstrap",
        dest="bootstrap",
        metavar="HOST:PORT",
        help=f"a broker, instead of what the file says (${SERVER_VARIABLE})",
    )
    parser.add_argument("--once", action="store_true", help="read what is there, then end")
    backfill = parser.add_argument_group("backfill, beside the app that runs")
    backfill.add_argument(
        "--from",
        dest="begin",
        metavar="TIME",
        help="records since then: 7d (ago), 2026-11-16T08:00",
    )
    backfill.add_argument("--until", metavar="TIME", help="records before then (default: all)")
    backfill.add_argument(
        "--into",
        metavar="TOPIC",
        help="where to write, instead of the query's; {query} in it stands for the query's name",
    )
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--json", action="store_true", help="a JSON object per query and batch")
    shown.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve metrics for Prometheus on 127.0.0.1; 0 chooses a port",
    )
    views = shown.add_mutually_exclusive_group()
    views.add_argument(
        "--views-port",
        type=int,
        metavar="PORT",
        help="where `moldau pipeline get` is answered, on 127.0.0.1 (default: any port)",
    )
    views.add_argument("--no-views", action="store_true", help="do not answer `get`")
    shown.add_argument(
        "--verbose", action="store_true", help="show all that Spark says when something fails"
    )


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int | None:
    if options.action == "run":
        _check_backfill(options)
        if options.once and options.views_port is not None:
            raise UsageError("--views-port: a run that ends has no views: leave --once out")
        from moldau.cli.pipeline_run import run_file

        return run_file(options)
    if options.action == "get":
        from moldau.cli.pipeline_get import get_row

        return get_row(options)
    from moldau.cli import pipeline_actions

    work = {
        "list": pipeline_actions.list_apps,
        "status": pipeline_actions.show_status,
        "stop": pipeline_actions.stop,
        "reset": pipeline_actions.reset,
        "retry-dead-letters": pipeline_actions.retry,
    }[options.action]
    return work(options)


def _check_backfill(options: argparse.Namespace) -> None:
    if options.begin is None and options.until is None and options.into is None:
        return
    if options.begin is None and options.until is None:
        raise UsageError("--into is for a backfill: say --from TIME, --until TIME or both, too")
    if options.into is None or not options.once:
        raise UsageError("a backfill ends, and writes elsewhere: say --once and --into TOPIC, too")

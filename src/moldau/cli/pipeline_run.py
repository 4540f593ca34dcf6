"""What `moldau pipeline run` does, once the command line is read."""

import argparse
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from moldau.cli.frame import FAILED, FINE, CommandError
from moldau.cli.moments import parse_moment
from moldau.cli.pipeline_metrics import PipelineMetrics
from moldau.cli.pipeline_show import ExplainedAudience, JsonLines, StatusTable
from moldau.cli.target import SERVER_VARIABLE
from moldau.pipelines.spark_version import check_pyspark
from moldau.pipelines.streams.run_options import RunOptions, run_with

if TYPE_CHECKING:
    from moldau.pipelines.supervision.supervisor import Audience


def run_file(options: argparse.Namespace) -> int:
    """Run the app of a file until its queries end; return the exit code."""
    check_pyspark()
    from moldau.pipelines.supervision.app_file import load_app, load_app_again
    from moldau.pipelines.supervision.run import run_app

    with ExitStack() as stack:
        stack.enter_context(run_with(_run_options(options)))
        app = load_app(options.file, options.app)
        shown = JsonLines() if options.json else StatusTable()
        audience: Audience = ExplainedAudience(shown, is_verbose=options.verbose)
        if not (options.once or options.no_views):
            from moldau.cli.pipeline_views import serve_views

            stack.enter_context(serve_views(app, options.views_port))
        if options.metrics_port is not None:
            metrics = stack.enter_context(PipelineMetrics(app.name, audience))
            port = metrics.listen(options.metrics_port)
            print(f"metrics: http://127.0.0.1:{port}/metrics", file=sys.stderr)
            audience = metrics
        is_fine = run_app(
            app,
            audience,
            once=options.once,
            queries=options.query or (),
            declare=lambda: load_app_again(options.file, options.app),
        )
        shown.close()
    return FINE if is_fine else FAILED


def _run_options(options: argparse.Namespace) -> RunOptions:
    begin_ms = None if options.begin is None else parse_moment(options.begin)
    end_ms = None if options.until is None else parse_moment(options.until)
    if begin_ms is not None and end_ms is not None and begin_ms >= end_ms:
        raise CommandError(f"--from {options.begin} --until {options.until}: nothing is between")
    return RunOptions(
        bootstrap=options.bootstrap or os.environ.get(SERVER_VARIABLE),
        master=options.master,
        checkpoints=options.checkpoints,
        begin_ms=begin_ms,
        end_ms=end_ms,
        into=options.into,
        asks_first=True,
        is_quiet=not options.verbose,
    )

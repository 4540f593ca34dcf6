"""Views beside a pipeline: what is missing for them stops it only where somebody has asked."""

from typing import Any, cast

import pytest

from moldau.cli import pipeline_views
from moldau.cli.frame import CommandError
from moldau.cli.pipeline_views import serve_views

APP = cast("Any", None)


def refuse() -> None:
    raise CommandError("uvicorn is not installed: pip install 'moldau[sql]'")


def test_without_the_packages_a_pipeline_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline_views, "check_installed", refuse)
    with serve_views(APP, None):
        said = capsys.readouterr().err
    assert said == "views: none, as uvicorn is not installed: pip install 'moldau[sql]'\n"
    with pytest.raises(CommandError, match="uvicorn"), serve_views(APP, 0):
        pass


def test_what_goes_wrong_in_the_pipeline_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_views, "check_installed", refuse)
    with pytest.raises(OSError, match="disk"), serve_views(APP, None):
        raise OSError("disk")

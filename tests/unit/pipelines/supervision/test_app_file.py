"""An app's file is run, and run again for another session, without Spark."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.app import App
from moldau.pipelines.supervision.app_file import declare_again, load_app, load_app_again

APP = """
from moldau.pipelines.streams.app import App

import parts_of_a_shop

app = App("shop")
app.run()
raise AssertionError("nothing behind app.run() belongs to the app")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "parts_of_a_shop.py").write_text("made = object()")
    yield tmp_path
    sys.modules.pop("parts_of_a_shop", None)


def test_a_file_is_run_up_to_where_it_runs_its_app(folder: Path) -> None:
    app = load_app(str(folder / "shop.py"))
    assert (app.name, app.made_in) == ("shop", str(folder / "shop.py"))


def test_made_again_it_has_nothing_of_the_session_before(folder: Path) -> None:
    app = load_app(str(folder / "shop.py"))
    before = sys.modules["parts_of_a_shop"].made
    ours = sys.modules["moldau.pipelines.streams.app"]
    again = declare_again(app)
    assert (again.name, again is app) == ("shop", False)
    assert sys.modules["parts_of_a_shop"].made is not before
    assert sys.modules["moldau.pipelines.streams.app"] is ours


def test_what_is_installed_in_the_apps_folder_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = folder / ".venv/lib/site-packages"
    installed.mkdir(parents=True)
    (installed / "installed_for_a_shop.py").write_text("")
    monkeypatch.syspath_prepend(str(installed))
    (folder / "shop.py").write_text(f"import installed_for_a_shop\n{APP}")
    load_app(str(folder / "shop.py"))
    before = sys.modules["installed_for_a_shop"]
    load_app_again(str(folder / "shop.py"))
    assert sys.modules.pop("installed_for_a_shop") is before


def test_what_no_file_has_made_is_not_made_again() -> None:
    with pytest.raises(PipelineError, match=r"shop was made by a function.*start the program"):
        declare_again(App("shop"))

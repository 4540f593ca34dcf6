"""Runs an app's file, and finds the app in it."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from moldau.client.errors import ClientError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.app import App
from moldau.pipelines.supervision.failures import failure_of

RUN_NAME: Final = "moldau_pipeline"
"""What `__name__` is in the file: it is not the program, so that its `app.run()` waits for us.

No module has this name. Functions of the file travel to Spark's workers as they are therefore, as
those of a program do; of a module they would only be the names, which workers cannot import.
"""

_OURS: Final = ("moldau", "pyspark_moldau", "pyspark", "py4j")
_INSTALLED: Final = ("site-packages", "dist-packages")

_is_loading: ContextVar[bool] = ContextVar("is_loading", default=False)


class DeclaredAppError(BaseException):
    """Ends the run of a file at its `app.run()`: everything is declared, and another runs it."""


def stop_if_loading() -> None:
    """End the run of the file that is being loaded, if one is."""
    if _is_loading.get():
        raise DeclaredAppError


def load_app(file: str, name: str | None = None) -> App:
    """Run a file, and return the app that it makes; `PipelineError` says what is wrong with it.

    Of a file with SQL (`.sql`), the queries that run for ever are the app, named as the file is.
    """
    if file.endswith(".sql"):
        # It stands on apps, and not the other way round but here.
        from moldau.pipelines.sql.spark.file_app import load_sql_app  # noqa: PLC0415

        return load_sql_app(file, name)
    found = {id(each): each for each in _run(file).values() if isinstance(each, App)}
    apps = [app for app in found.values() if name in (None, app.name)]
    if len(apps) == 1:
        return apps[0]
    names = ", ".join(sorted(app.name for app in found.values()))
    if not found:
        raise PipelineError(f'{file}: there is no app in it: make one with app = App("name")')
    if name is None:
        raise PipelineError(f"{file} has several apps: say which with --app ({names})")
    raise PipelineError(f"{file} has no app {name}: it has {names}")


def declare_again(app: App) -> App:
    """Make an app again, as its file does; `PipelineError` if no file has made it."""
    if app.made_in is None or not Path(app.made_in).exists():
        raise PipelineError(
            f"app {app.name} was made by a function, and cannot be made again: "
            "start the program again"
        )
    return load_app_again(app.made_in, app.name)


def load_app_again(file: str, name: str | None = None) -> App:
    """Run a file as `load_app` does, for another session than before."""
    forget_modules(Path(file).resolve().parent)
    return load_app(file, name)


def forget_modules(folder: Path) -> None:
    """Have a folder's modules run again when they are imported.

    They may hold columns and functions of a session that is gone.
    """
    for name, module in list(sys.modules.items()):
        if name == "__main__" or name.partition(".")[0] in _OURS:
            continue
        path = getattr(module, "__file__", None)
        if path is None or not Path(path).is_relative_to(folder):
            continue
        if not set(_INSTALLED).intersection(Path(path).parts):
            del sys.modules[name]


@contextmanager
def _loading() -> Iterator[None]:
    token = _is_loading.set(True)
    try:
        with suppress(DeclaredAppError):
            yield
    finally:
        _is_loading.reset(token)


def _run(file: str) -> dict[str, object]:
    source = Path(file).read_bytes()
    # As `python FILE.py` has it: modules beside the file can be imported.
    folder = str(Path(file).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    names: dict[str, object] = {"__name__": RUN_NAME, "__file__": file}
    try:
        with _loading():
            exec(compile(source, file, "exec"), names)  # the user's own file, which is to be run
    except Exception as error:
        raise PipelineError(f"{_place(file, error)}: {_line(error)}") from error
    return names


def _place(file: str, error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def _line(error: Exception) -> str:
    if isinstance(error, PipelineError | ClientError) or hasattr(error, "getCondition"):
        return failure_of(error).line
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(f"{type(error).__name__}: {text}".split())

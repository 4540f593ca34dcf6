"""What the demo says in the end: where to look, and what to type."""

import sys
from pathlib import Path
from shutil import which
from typing import Final

from moldau.cli.frame import CommandError
from moldau.cli.sql_parts import check_installed
from moldau.pipelines import examples

INSTALL_SQL: Final = "pip install 'moldau[sql]'"
FILE: Final = Path(examples.__file__).with_name("shop.py")
SQL_FILE: Final = FILE.with_suffix(".sql")
NEXT: Final = """
That was {file}: copy it, and change it.
What to open next:
  docs/streams.md              what an app can do
  docs/sql.md                  the same in SQL, as in {sql} beside it
  docs/testing-pipelines.md    tests of such a file
  docs/from-kafka-streams.md   what is called how, if you know Kafka Streams
What to type next:
{path}  moldau start                 a broker that stays
{sql_first}  moldau sql                   a shell that asks its topics
  moldau pipeline run FILE.py  an app that is supervised"""


def next_steps() -> str:
    """Return it, with what has to come first: the place of the command, what SQL needs."""
    path = "" if _is_found() else f'  export PATH="{_folder()}:$PATH"\n'
    sql_first = "" if _has_sql() else f"  {INSTALL_SQL}\n"
    return NEXT.format(file=FILE, sql=SQL_FILE.name, path=path, sql_first=sql_first)


def sql_command(servers: str) -> str:
    """Return how to start `moldau sql` in another terminal, as it can be typed there."""
    command = "moldau" if _is_found() else str(_folder() / "moldau")
    install = "" if _has_sql() else f"{INSTALL_SQL} && "
    return f"{install}{command} sql -b {servers}"


def _folder() -> Path:
    return Path(sys.executable).parent


def _is_found() -> bool:
    """Whether `moldau` is on the path, or nowhere that it could be told of."""
    return which("moldau") is not None or not (_folder() / "moldau").exists()


def _has_sql() -> bool:
    try:
        check_installed()
    except CommandError:
        return False
    return True

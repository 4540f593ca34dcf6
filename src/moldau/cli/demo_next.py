"""What the demo says in the end: where to look, and what to type."""

import sys
from pathlib import Path
from shutil import which
from typing import Final

from moldau.pipelines import examples

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
  moldau sql                   a shell that asks its topics
  moldau pipeline run FILE.py  an app that is supervised"""


def next_steps() -> str:
    """Return it; whoever has not activated the environment is told how to find the command."""
    folder = Path(sys.executable).parent
    has_path = which("moldau") is not None or not (folder / "moldau").exists()
    path = "" if has_path else f'  export PATH="{folder}:$PATH"\n'
    return NEXT.format(file=FILE, sql=SQL_FILE.name, path=path)

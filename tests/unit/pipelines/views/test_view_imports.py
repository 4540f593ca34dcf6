"""A view is for any process: it takes neither Spark nor Arrow with it."""

import subprocess
import sys

QUESTION = """
import sys
import moldau.pipelines.views.view
print(sorted({"numpy", "pandas", "pyarrow", "pyspark"} & set(sys.modules)))
"""


def test_a_view_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUESTION], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

"""What a JVM prints: lines that are logged are shown, the rest is kept for its last words."""

import subprocess
import sys

from moldau.pipelines.jvm_output import LINES_KEPT_MAX, JvmOutput


def print_to(output: JvmOutput, program: str) -> None:
    subprocess.run([sys.executable, "-c", program], stderr=output.writing, check=False)
    output.close_writing()


def test_only_what_is_logged_is_shown() -> None:
    shown: list[bytes] = []
    output = JvmOutput(shown.append)
    print_to(
        output,
        (
            "import sys; sys.stderr.write('WARNING: Java\\nspark: 12:00 lost\\n');"
            "sys.stderr.write('x' * 200_000 + '\\n')"
        ),
    )
    assert output.last_words().startswith("WARNING: Java xxx")
    assert shown == [b"spark: 12:00 lost\n"]


def test_the_last_words_are_few() -> None:
    output = JvmOutput(lambda _: None)
    print_to(output, "import sys; [print(n, file=sys.stderr) for n in range(1000)]")
    assert output.last_words().split() == [str(n) for n in range(1000 - LINES_KEPT_MAX, 1000)]

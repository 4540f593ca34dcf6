"""The house rules are noticed when they are broken."""

from pathlib import Path

import pytest

from tools.tidy import violations

FINE = '"""A fine module."""\n'


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("log/utils.py", FINE, "name it after what it holds"),
        ("log/segment.py", "x = 1\n", "one-sentence docstring"),
        ("log/segment.py", FINE + "x = 1\n" * 500, "split it"),
        ("log/segment.py", FINE + "async def f(): ...\n", "only shells wait"),
        ("log/segment.py", FINE + "x = open('f')\n", "the Disk port"),
        ("log/segment.py", FINE + "for x in set(y): pass\n", "sort a set"),
        ("log/segment.py", FINE + "def f():\n" + "    x = 1\n" * 60, "f is 61 lines"),
        ("log/segment.py", FINE + "x = '/home" + "/somebody'\n", "path of one machine"),
    ],
)
def test_a_broken_rule_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert any(complaint in line for line in violations(path, package=tmp_path))


def test_the_shell_may_do_what_the_core_may_not(tmp_path: Path) -> None:
    path = tmp_path / "runtime/disk.py"
    path.parent.mkdir()
    path.write_text(FINE + "async def f(): open('f')\n")
    assert list(violations(path, package=tmp_path)) == []

"""Texts as somebody has read them: MOLDAU_UPDATE_GOLDEN=1 writes them anew, for a diff."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str, folder: str = "cli") -> None:
    """Compare a text with the stored one."""
    path = FOLDER / folder / f"{name}.txt"
    if "MOLDAU_UPDATE_GOLDEN" in os.environ:
        path.write_text(text)
    assert text == path.read_text(), f"{path.name}: see MOLDAU_UPDATE_GOLDEN"

import shutil
import subprocess

import pytest

from moldau.cli.completion import main

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([shell]) == 0
    return capsys.readouterr().out


@needs_bash
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("to",), {"topics"}),
        (("topics", ""), {"list", "describe", "create", "delete", "alter", "--help"}),
        (("topics", "list", "--na"), {"--names"}),
        (("topics", "list", "-b", "host:1", "--na"), {"--names"}),
        (("topics", "describe", "cl"), {"clicks"}),
        (("consume", "--from"), {"--from-beginning"}),
        (("configs", "show", "to"), {"topic"}),
        (("groups", "re"), {"reset", "remove-members"}),
        (("groups", "describe", "cl"), {"clicks"}),
        (("transactions", "abort", "--st"), {"--start-offset"}),
        (("completion", "z"), {"zsh"}),
    ],
)
def test_bash(
    typed: tuple[str, ...], offered: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = " ".join(f"'{word}'" for word in ("moldau", *typed))
    program = (
        f"{script('bash', capsys)}\n"
        "moldau() { echo clicks; }\n"  # what asks a broker for its topics
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _moldau\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert set(done.stdout.split()) == offered


def test_the_other_shells(capsys: pytest.CaptureFixture[str]) -> None:
    assert "bashcompinit" in script("zsh", capsys)
    fish = script("fish", capsys)
    assert "-a topics -d 'list, describe, create, delete and alter topics'" in fish
    assert "__fish_seen_subcommand_from topics; and __fish_seen_subcommand_from list" in fish


def test_another_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["csh"])
    assert capsys.readouterr().err.startswith("moldau: completion: argument SHELL: invalid choice")

"""`moldau completion`: completion for the shell, made from the commands' own parsers."""

import argparse
import importlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.cli import COMMANDS
from moldau.cli.frame import Parser, run
from moldau.cli.target import add_verbose_option

NAMES = {"TOPIC": "topics", "TOPIC[:N,N]": "topics", "GROUP": "groups", "APP": "pipeline"}
"""Which command lists the names that are wanted, by the metavar."""

EXAMPLES = """examples:
  source <(moldau completion bash)               in this shell; in ~/.bashrc for all
  source <(moldau completion zsh)
  moldau completion fish > ~/.config/fish/completions/moldau.fish

The names of topics and groups are asked of the broker at localhost:9092."""


class Level(NamedTuple):
    """What can follow some words: the names of actions or options, and what a broker has."""

    path: tuple[str, ...]
    words: tuple[str, ...]
    about: dict[str, str]
    names: str = ""
    """The command that lists names which may follow, too."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau completion", description="Print completion for a shell.", epilog=EXAMPLES
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="which")
    add_verbose_option(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> None:
    levels = list(_levels())
    if options.shell == "fish":
        print(_fish(levels))
    elif options.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
        print(_bash(levels))
    else:
        print(_bash(levels))


def _levels() -> Iterator[Level]:
    yield Level((), tuple(COMMANDS), dict(COMMANDS))
    for name in COMMANDS:
        parser: Parser = importlib.import_module(f"moldau.cli.{name}").make_parser()
        yield from _levels_of((name,), parser)


def _levels_of(path: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[Level]:
    about: dict[str, str] = {}
    names = ""
    below: list[tuple[tuple[str, ...], argparse.ArgumentParser]] = []
    for action in parser._actions:  # noqa: SLF001 - argparse shows them nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in action._choices_actions:  # noqa: SLF001
                about[choice.dest] = choice.help or ""
            below += [((*path, name), each) for name, each in action.choices.items()]
        elif action.option_strings:
            if action.help != argparse.SUPPRESS:
                about[action.option_strings[-1]] = action.help or ""
        elif action.metavar in NAMES:
            names = NAMES[str(action.metavar)]
        elif action.choices:
            about |= dict.fromkeys(map(str, action.choices), action.dest)
    yield Level(path, tuple(about), about, names)
    for deeper, each in below:
        yield from _levels_of(deeper, each)


def _bash(levels: Sequence[Level]) -> str:
    cases = "\n".join(
        f'    "{" ".join(level.path)}") words="{" ".join(level.words)}" names={level.names};;'
        for level in levels
    )
    deepest = max(len(level.path) for level in levels)
    return f"""\
_moldau() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" path="" words="" names="" each
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $each" in
      *" -"*) ;;
      *) [ "$(wc -w <<< "$path")" -lt {deepest} ] && _moldau_knows "${{path:+$path }}$each" \\
           && path="${{path:+$path }}$each";;
    esac
  done
  _moldau_words "$path"
  [ -n "$names" ] && [[ "$word" != -* ]] \\
    && words="$words $(moldau $names list --names 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
_moldau_words() {{
  case "$1" in
{cases}
    *) return 1;;
  esac
}}
_moldau_knows() {{
  local words names
  _moldau_words "$1"
}}
complete -o default -F _moldau moldau"""


def _fish(levels: Sequence[Level]) -> str:
    lines = ["complete -c moldau -f"]
    for level in levels:
        condition = _fish_condition(level, levels)
        for word in level.words:
            about = level.about[word].replace("'", "\\'")
            what = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c moldau -n '{condition}' {what} -d '{about}'")
        if level.names:
            names = f"-a '(moldau {level.names} list --names 2>/dev/null)'"
            about = level.names.removesuffix("s")
            lines.append(f"complete -c moldau -n '{condition}' {names} -d {about}")
    return "\n".join(lines)


def _fish_condition(level: Level, levels: Sequence[Level]) -> str:
    if not level.path:
        return "__fish_use_subcommand"
    seen = [f"__fish_seen_subcommand_from {word}" for word in level.path]
    deeper = [each.path[-1] for each in levels if each.path[:-1] == level.path]
    if deeper:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(deeper)}")
    return "; and ".join(seen)

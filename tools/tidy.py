"""Check the house rules that no off-the-shelf linter knows."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
VAGUE = {"base", "common", "helper", "helpers", "impl", "manager", "misc", "util", "utils"}
CORE = {
    "_native", "broker", "consensus", "controller", "groups", "kernel", "log", "metadata",
    "protocol", "records", "replication", "security", "transactions",
}  # fmt: skip
BANNED_IN_CORE = {
    "open": "the Disk port",
    "print": "an effect",
    "input": "nothing",
    "hash": "a stable digest",
    "id": "an explicit identifier",
}
# One file per API: a few of Kafka's messages are long, and splitting them would hide them.
LONG_BY_NATURE = re.compile(r"protocol/(messages|stored)/")
MACHINE_PATH = re.compile(r"/(root|work|home)/\w")


def violations(path: Path, *, package: Path) -> Iterator[str]:
    """Yield a line for each rule that `path` breaks."""
    text = path.read_text()
    lines = text.count("\n")
    if lines > FILE_LINES_MAX and not LONG_BY_NATURE.search(path.as_posix()):
        yield f"{path}: {lines} lines; split it (at most {FILE_LINES_MAX})"
    if path.stem in VAGUE:
        yield f"{path}: name it after what it holds, not '{path.stem}'"
    if match := MACHINE_PATH.search(text):
        yield f"{path}: names a path of one machine: {match.group()}"
    if path.suffix != ".py":
        return
    tree = ast.parse(text)
    if not (ast.get_docstring(tree) or "").split("\n")[0].endswith((".", ":")):
        yield f"{path}: open with a one-sentence docstring"
    in_core = path.is_relative_to(package) and path.relative_to(package).parts[0] in CORE
    for node in ast.walk(tree):
        yield from _node_violations(path, node, in_core=in_core)


def _node_violations(path: Path, node: ast.AST, *, in_core: bool) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: {name} is {length} lines; split it"
            if in_core and isinstance(node, ast.AsyncFunctionDef):
                yield f"{path}:{node.lineno}: {name} is async; only shells wait"
        case ast.Call(func=ast.Name(id=name)) if in_core and name in BANNED_IN_CORE:
            yield f"{path}:{node.lineno}: use {BANNED_IN_CORE[name]} instead of {name}()"
        case ast.For(iter=ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set"))) if in_core:
            yield f"{path}:{node.lineno}: sort a set before walking it"
        case _:
            pass


def main() -> int:
    """Check the whole tree; the exit code says whether anything was found."""
    package = Path("src/moldau")
    paths = [path for folder in ("src", "tools", "bench") for path in Path(folder).rglob("*.py")]
    paths += package.rglob("*.pyx")
    found = [line for path in sorted(paths) for line in violations(path, package=package)]
    print("\n".join(found) or f"tidy: {len(paths)} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

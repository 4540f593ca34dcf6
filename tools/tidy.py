"""Check the house rules that no off-the-shelf linter knows."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import grimp

FILE_LINES_MAX: Final = 500
FUNCTION_LINES_MAX: Final = 60
VAGUE: Final = {"base", "common", "helper", "helpers", "impl", "manager", "misc", "util", "utils"}
LAYERS_CONTRACT: Final = "Layers point down"
CORE_TOP: Final = "broker"
CORE_CONTRACT: Final = "The core is sans-I/O and deterministic"
BANNED_IN_CORE: Final = {
    "open": "the Disk port",
    "print": "an effect",
    "input": "nothing",
    "hash": "a stable digest",
    "id": "an explicit identifier",
}
# One file per API: a few of Kafka's messages are long, and splitting them would hide them.
# And Kafka's structs have the same names in several of them.
WIRE: Final = re.compile(r"protocol/(messages|stored)/")
NATIVE_CLASS: Final = re.compile(r"^(?:cdef |cpdef )?class ([A-Za-z]\w*)", re.MULTILINE)
ALIAS: Final = re.compile(r"[A-Z]\w*[a-z]\w*")
MACHINE_PATH: Final = re.compile(r"/(root|work|home)/\w")
SHARED_CLOCK: Final = re.compile(
    r"""setattr\(\s*"?[\w.]*\btime(?:\.|"?,\s*")(?:monotonic|perf_counter|sleep|time)"""
)

NOUNS_IN: Final = {
    "kernel", "log", "coordination", "replication", "groups", "transactions", "sharing", "broker",
}  # fmt: skip
"""Packages whose files are named by what they hold, not by what is done with it."""


GERUNDS: Final = {"groups/listing.py": "a listing is a list of groups"}
"""Files of these packages that are named by a verb all the same, and why."""

BOTH_ENDS: Final = "Kafka's enumeration at both ends of the wire: the client knows only the wire"
USERS: Final = "users of the client have it by this name, and so does the core, of its own"

SHARED_NAMES: Final = {
    "ResourceType": BOTH_ENDS,
    "LogDirectory": USERS,
    "Node": USERS,
    "Partition": USERS,
    "Follower": "the quorum's role has Kafka's name; a view follows a topic",
    "Topic": USERS,
    "Broker": "tests have one by this name, with a whole broker behind it",
    "Buffer": "the same three types: declared messages take it from where they take their fields",
    "Record": "users have the one that is fetched; the other is opened from a batch, or built",
}
"""Public classes and type aliases of which there are several all the same, and why."""

MACHINE_MODULES: Final = {
    "_thread", "concurrent", "fcntl", "multiprocessing", "queue", "random", "resource", "secrets",
    "select", "selectors", "signal", "socket", "subprocess", "threading", "time", "uuid", "uvloop",
}  # fmt: skip
"""What sockets, threads, clocks and chance are imported from."""

MACHINE_CALLS: Final = {
    "add_reader", "add_writer", "getaddrinfo", "getrandom", "run_in_executor", "to_thread",
    "urandom",
}  # fmt: skip
"""What an event loop, or `os`, has of them."""

REPLAYED: Final = {"runtime", "client"}
"""Packages beside the core that take time, chance, threads and sockets from an environment."""

SYNCHRONOUS: Final = "the synchronous face, whose users have threads"

MACHINE_FILES: Final = {
    "client/background.py": SYNCHRONOUS,
    "client/clock.py": "the client's clocks and chance, where its loop has none",
    "client/connection.py": "an option of the sockets that the loop makes, and their errors",
    "client/producer.py": SYNCHRONOUS,
    "client/user_thread.py": SYNCHRONOUS,
    "client/waiting.py": SYNCHRONOUS,
    "runtime/directory_lock.py": "the machine's locks of directories",
    "runtime/disk.py": "how macOS syncs",
    "runtime/event_loop.py": "the machine's event loop",
    "runtime/file_sender.py": "sendfile",
    "runtime/file_syncs.py": "the way back from native threads",
    "runtime/listening_sockets.py": "the machine's sockets",
    "runtime/machine.py": "the machine as an environment",
    "runtime/machine_threads.py": "the machine's threads",
    "runtime/open_files.py": "the machine's open files, which its threads share",
    "runtime/process_limits.py": "the machine's limits",
}
"""Files that use the machine itself, and why: nothing that happens in them can be replayed."""

CYCLES: Final[Mapping[str, str]] = {}
"""Packages of the core with modules that import each other in a circle, and why."""


def core_packages(pyproject: str) -> frozenset[str]:
    """Return the packages below the shells, by import-linter's layers.

    The contract that forbids the core what shells do has to name the same ones.
    """
    contracts = {
        each["name"]: each for each in tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    }
    layers = contracts[LAYERS_CONTRACT]["layers"]
    below = layers[layers.index(CORE_TOP) :]
    core = frozenset(package for layer in below for package in layer.split(" | "))
    bound = {each.removeprefix("moldau.") for each in contracts[CORE_CONTRACT]["source_modules"]}
    assert core == bound, f"only one of two contracts has {sorted(core ^ bound)}"
    return core


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


# One file.


def violations(path: Path, *, package: Path, core: Collection[str]) -> Iterator[str]:
    """Yield a line for each rule that `path` breaks by itself."""
    text = path.read_text()
    lines = text.count("\n")
    if lines > FILE_LINES_MAX and not WIRE.search(path.as_posix()):
        yield f"{path}: {lines} lines; split it (at most {FILE_LINES_MAX})"
    if path.stem in VAGUE:
        yield f"{path}: name it after what it holds, not '{path.stem}'"
    if match := MACHINE_PATH.search(text):
        yield f"{path}: names a path of one machine: {match.group()}"
    if path.suffix != ".py":
        return
    tree = _parsed(path)
    if not (ast.get_docstring(tree) or "").split("\n")[0].endswith((".", ":")):
        yield f"{path}: open with a one-sentence docstring"
    in_core = path.is_relative_to(package) and path.relative_to(package).parts[0] in core
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


# All files together. A list of exceptions must not be longer than what it excuses.


def find_shared(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the names that more than one file declares, with these files."""
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for path in paths:
        if not WIRE.search(path.as_posix()):
            for name in _declared(path):
                places[name].append(path)
    return {name: found for name, found in places.items() if len(found) > 1}


def _declared(path: Path) -> Iterator[str]:
    if path.suffix == ".pyx":
        yield from NATIVE_CLASS.findall(path.read_text())
        return
    tree = _parsed(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
    yield from filter(None, map(_alias, tree.body))


def _alias(node: ast.stmt) -> str | None:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            # A type variable, and whatever else a call makes, means nothing outside of its file.
            is_alias = ALIAS.fullmatch(name) and not isinstance(value, ast.Call)
            return name if is_alias else None
        case _:
            return None


def name_violations(shared: Mapping[str, list[Path]], allowed: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each name that is shared and not allowed, or allowed and not shared."""
    for name, paths in sorted(shared.items()):
        if name not in allowed:
            where = ", ".join(map(str, paths))
            yield f"{name} is declared {len(paths)} times: {where}; a name means one thing"
    for name in sorted(allowed.keys() - shared.keys()):
        yield f"{name} is not shared any more: take it off SHARED_NAMES"


def gerund_violations(
    paths: Iterable[Path], *, package: Path, allowed: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each file that is named by a verb, and for each that is not any more."""
    inside = (path.relative_to(package) for path in paths if path.is_relative_to(package))
    gerunds = {
        path.as_posix()
        for path in inside
        if path.parts[0] in NOUNS_IN and path.stem.endswith("ing")
    }
    for name in sorted(gerunds - allowed.keys()):
        yield f"{package / name}: name it after what it holds, by a noun"
    for name in sorted(allowed.keys() - gerunds):
        yield f"{name} is not there any more: take it off GERUNDS"


def machine_violations(
    paths: Iterable[Path], *, package: Path, core: Collection[str], allowed: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each direct use of sockets, threads, clocks and chance, and for each file
    that is allowed to and does not.
    """
    excused = set()
    for path in paths:
        if path.suffix != ".py" or not path.is_relative_to(package):
            continue
        inside = path.relative_to(package)
        if inside.parts[0] not in REPLAYED and inside.parts[0] not in core:
            continue
        uses = list(_machine_uses(_parsed(path)))
        if inside.as_posix() in allowed:
            excused.update([inside.as_posix()] if uses else [])
            continue
        for line, name in uses:
            yield f"{path}:{line}: {name}: take it from the environment, or a run is not replayed"
    for name in sorted(allowed.keys() - excused):
        yield f"{name} does not use the machine itself any more: take it off MACHINE_FILES"


def _machine_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [each.name for each in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                modules = [module]
                yield from (
                    (node.lineno, each.name) for each in names if each.name in MACHINE_CALLS
                )
            case ast.Attribute(attr=attribute) if attribute in MACHINE_CALLS:
                yield node.lineno, attribute
                continue
            case _:
                continue
        for module in modules:
            if module.split(".")[0] in MACHINE_MODULES:
                yield node.lineno, module


def clock_violations(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a line for each test that patches the clock of the whole process.

    A broker in the same process sets its timers by that clock, and never wakes again.
    """
    for path in paths:
        if match := SHARED_CLOCK.search(path.read_text()):
            yield f"{path}: {match.group()}: patch the name `time` of one module instead"


def core_imports(packages: Collection[str]) -> dict[str, set[str]]:
    """Return what each module of these packages of `moldau` imports of them, wherever it does."""
    graph = grimp.build_graph("moldau", cache_dir=None)
    modules = {
        name for name in graph.modules if name.split(".")[1:2] and _package(name) in packages
    }
    return {name: graph.find_modules_directly_imported_by(name) & modules for name in modules}


def _package(module: str) -> str:
    return module.split(".")[1]


def find_cycles(imports: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Yield each set of modules that all reach each other, sorted."""
    reached = {module: _reachable(module, imports) for module in imports}
    seen: set[str] = set()
    for module in sorted(imports):
        if module in reached[module] and module not in seen:
            cycle = sorted(other for other in reached[module] if module in reached[other])
            seen.update(cycle)
            yield cycle


def _reachable(module: str, imports: Mapping[str, Collection[str]]) -> set[str]:
    found: set[str] = set()
    left = [*imports[module]]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += imports[name]
    return found


def cycle_violations(
    imports: Mapping[str, Collection[str]], allowed: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each circle of imports, and for each package that has none any more."""
    excused = set()
    for cycle in find_cycles(imports):
        package = ".".join(cycle[0].split(".")[:2])
        if package in allowed:
            excused.add(package)
        else:
            yield f"{len(cycle)} modules import each other: {', '.join(cycle)}"
    for package in sorted(allowed.keys() - excused):
        yield f"{package} has no circle of imports any more: take it off CYCLES"


def main() -> int:
    """Check the whole tree; the exit code says whether anything was found."""
    package = Path("src/moldau")
    core = core_packages(Path("pyproject.toml").read_text())
    paths = [path for folder in ("src", "tools", "bench") for path in Path(folder).rglob("*.py")]
    paths += package.rglob("*.pyx")
    paths.sort()
    found = [line for path in paths for line in violations(path, package=package, core=core)]
    shared = find_shared(path for path in paths if path.is_relative_to(package))
    found += name_violations(shared, SHARED_NAMES)
    found += gerund_violations(paths, package=package, allowed=GERUNDS)
    found += cycle_violations(core_imports(core), CYCLES)
    found += machine_violations(paths, package=package, core=core, allowed=MACHINE_FILES)
    found += clock_violations(sorted(Path("tests").rglob("*.py")))
    print("\n".join(found) or f"tidy: {len(paths)} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tools.test_ids REVISION`: no test vanishes.

Every test that the revision has in `make test` or `make soak` is in one of them here as well; and
of a run of `make test`, every test is in one stage, and in no other.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STAGE_LISTS = Path(".cache/test-lists")
ROOT = Path(__file__).resolve().parent.parent

RENAMED: dict[str, str] = {}
"""Tests that have another name now: the old id, and the new one."""

# Each proof of a tree with its tests and environment, whatever that tree's own tool can say.
_PROOFS = (
    "import json; from tools.soak import PROOFS;"
    "print(json.dumps([[p.tests, p.environment] for p in PROOFS]))"
)


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of a tree's tests."""

    test: frozenset[str]
    soak: frozenset[str]


def vanished(before: Ids, after: Ids, files: Mapping[str, str]) -> list[str]:
    """Return the tests that were run by `make test` or `make soak`, and are by neither now.

    `files` has the new names of files that have been renamed.
    """
    known = after.test | after.soak

    def is_known(each: str) -> bool:
        file, _, name = each.partition("::")
        moved = f"{files.get(file, file)}::{name}"
        return moved in known or RENAMED.get(each) in known

    return sorted(each for each in before.test | before.soak if not is_known(each))


def astray(stages: Mapping[str, Iterable[str]], everything: Iterable[str]) -> list[str]:
    """Return a line for each test that is in no stage, or in more than one."""
    counts = Counter(each for ids in stages.values() for each in ids)
    twice = [f"in more than one stage: {each}" for each, n in sorted(counts.items()) if n > 1]
    return [*(f"in no stage: {each}" for each in sorted(set(everything) - set(counts))), *twice]


def check_stages(names: Iterable[str], folder: Path = STAGE_LISTS) -> list[str]:
    """Compare what the stages of a run chose with all that the last of them saw, once it ran."""
    paths = {name: folder / f"{name}.json" for name in names}
    if not all(path.exists() for path in paths.values()):
        return []
    lists = {name: json.loads(path.read_text()) for name, path in paths.items()}
    *_, last = lists.values()
    chosen = {name: each["chosen"] for name, each in lists.items()}
    return astray(chosen, [*last["chosen"], *last["left_out"]])


def collect(tree: Path) -> Ids:
    """Collect a tree's tests, without running any."""
    proofs = json.loads(_python(tree, "-c", _PROOFS))
    soak: set[str] = set()
    for tests, environment in proofs:
        soak |= _collected(tree, tests, environment)
    # A revision may be from before this mark.
    has_mark = '"soak: ' in (tree / "pyproject.toml").read_text()
    chosen = ("-m", "not soak") if has_mark else ()
    return Ids(_collected(tree, [*chosen, "tests"], {}), frozenset(soak))


def main(arguments: list[str]) -> int:
    """Compare, say what is wrong; the exit code says whether anything is."""
    [revision] = arguments
    with _tree_of(revision) as tree:
        before = collect(tree)
    after = collect(ROOT)
    found = vanished(before, after, _renamed_files(revision))
    print("\n".join(f"vanished: {each}" for each in found))
    print(
        f"test: {len(before.test)} before, {len(after.test)} now; soak: {len(before.soak)} before, "
        f"{len(after.soak)} now; only in soak now: {len((before.test - after.test) & after.soak)}; "
        f"vanished: {len(found)}"
    )
    return bool(found)


def _renamed_files(revision: str) -> dict[str, str]:
    command = ("git", "-C", str(ROOT), "diff", "-M", "--diff-filter=R", "--name-status", revision)
    done = subprocess.run([*command, "--", "tests"], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {before: after for _, before, after in rows}


@contextmanager
def _tree_of(revision: str) -> Iterator[Path]:
    """Lay out a revision, with its kernels: collecting imports them."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ("git", "-C", str(ROOT), "worktree")
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
            _have_kernels(tree, revision)
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _have_kernels(tree: Path, revision: str) -> None:
    """Take this tree's kernels if they are the same; build others."""
    same = ("git", "-C", str(ROOT), "diff", "--quiet", revision, "--", "src/moldau/_native")
    if subprocess.run(same, check=False).returncode:
        jobs = f"-j{os.cpu_count() or 1}"
        _python(tree, "setup.py", "-q", "build_ext", "--inplace", jobs)
        return
    for kernel in ROOT.glob("src/moldau/_native/*.so"):
        (tree / kernel.relative_to(ROOT)).symlink_to(kernel)


def _collected(tree: Path, tests: Iterable[str], environment: Mapping[str, str]) -> frozenset[str]:
    options = ("-q", "--collect-only", "-p", "no:cacheprovider")
    output = _python(tree, "-m", "pytest", *options, *tests, **environment)
    return frozenset(line for line in output.splitlines() if line.startswith("tests/"))


def _python(tree: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=os.environ | environment | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"test ids: {' '.join(arguments)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

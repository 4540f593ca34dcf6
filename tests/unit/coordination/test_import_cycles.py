"""The parts of coordinators import downwards: a part never needs the machine that it is in."""

from collections.abc import Mapping

import grimp

PACKAGES = ("moldau.coordination", "moldau.groups", "moldau.sharing", "moldau.transactions")


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("moldau", cache_dir=None)
    modules = {each for package in PACKAGES for each in graph.find_descendants(package)}
    imported = {module: graph.find_modules_directly_imported_by(module) for module in modules}
    assert "moldau.groups.shelf" in imported["moldau.groups.machine"]
    assert _leftover(imported) == set()


def test_a_cycle_is_found() -> None:
    assert _leftover({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}


def _leftover(imported: Mapping[str, set[str]]) -> set[str]:
    """Remove modules that import nothing, again and again; return those of cycles or above one."""
    left = dict(imported)
    while leaves := {module for module in left if not imported[module] & left.keys()}:
        left = {module: of for module, of in left.items() if module not in leaves}
    return set(left)

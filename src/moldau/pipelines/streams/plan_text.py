"""What a query does, as Spark explains it: the same text from a session and from Spark Connect."""

import re
from dataclasses import dataclass
from typing import Final

_ANALYSED: Final = re.compile(r"^== Analyzed Logical Plan ==\n(.*?)(?=^== |\Z)", re.M | re.S)
# A node behind the lines of its tree; `~` marks what is streaming.
_NODE: Final = re.compile(
    r"^(?P<indent>[ :]*(?:[:+]- )?)(?P<stream>~?)(?P<name>[A-Z]\w*)\b(?P<rest>.*)"
)
_TOPIC: Final = re.compile(r"[\[ ]subscribe=([^,\]\s]+)")
_GROUPING: Final = re.compile(r"\s*\[(.*?)\](?:, \[|$)")
_WATERMARK: Final = re.compile(r"-T\d+ms")
# Names that Spark makes up, delays and the names of results: state does not depend on them.
_PASSING: Final = re.compile(r"#\d+L?|-T\d+ms| AS [\w`]+|@[0-9a-f]+")

KEYED: Final = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Join")
CUSTOM: Final = ("TransformWithState", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState")
KEPT: Final = "kept by app.aggregate: "
"""What the name of an operator of our own begins with: behind it is what it keeps."""
GROUPS: Final = "groups of a table: "
"""What the name of an aggregate over a table begins with."""
SLIDING: Final = "sliding windows: "
"""What the name of an aggregate in sliding windows begins with."""
NAMED: Final = (KEPT, GROUPS, SLIDING)


@dataclass(frozen=True, slots=True)
class SparkPlan:
    """What of a query's plan decides how it can run, and what its checkpoint is good for."""

    topics: tuple[str, ...]
    """What is read, in the order of the sources in a checkpoint."""
    state: tuple[str, ...]
    """Each operator that keeps state, and what by."""
    groupings: tuple[str, ...]
    """What each aggregate groups by."""
    updates: bool
    """Whether an operator was told to give updates."""
    kept: tuple[str, ...] = ()
    """Those of `state` that are aggregates of ours, which forget."""
    goes_by_clock: bool = False
    """Whether an operator goes by the time of the machine."""
    unique_by: tuple[str, ...] = ()
    """What rows are told apart by where duplicates are dropped, without an end of their own."""

    @property
    def is_windowed(self) -> bool:
        """Whether every aggregate groups by a time that has a watermark, and so ends."""
        return all(map(_WATERMARK.search, self.groupings))

    @property
    def forgets_duplicates(self) -> bool:
        """Whether what was seen is forgotten when the watermark has passed it."""
        return all(map(_WATERMARK.search, self.unique_by))

    @property
    def has_sessions(self) -> bool:
        """Whether an aggregate groups by windows of activity."""
        return any("session_window#" in grouping for grouping in self.groupings)


@dataclass(frozen=True, slots=True)
class _Node:
    depth: int
    is_streaming: bool
    name: str
    rest: str


def read_plan(explained: str) -> SparkPlan:
    """Read the text of `DataFrame.explain(extended=True)`."""
    found = _ANALYSED.search(explained)
    nodes = list(filter(None, map(_read_node, found[1].splitlines()))) if found else []
    places = [place for place in range(len(nodes)) if _has_state(nodes, place)]
    stateful = [nodes[place] for place in places]
    custom = [node.rest for node in stateful if node.name.startswith(CUSTOM)]
    return SparkPlan(
        topics=tuple(topic for node in nodes for topic in _topics(node)),
        state=tuple(_signature(nodes, place) for place in places),
        groupings=tuple(_grouping(node) for node in stateful if node.name == "Aggregate"),
        updates=any(", Update" in rest for rest in custom),
        kept=tuple(filter(None, (_find_kept(nodes, place) for place in places))),
        unique_by=tuple(_grouping(node) for node in stateful if node.name == "Deduplicate"),
        goes_by_clock=any(", ProcessingTime" in rest for rest in custom),
    )


def _read_node(line: str) -> _Node | None:
    match = _NODE.match(line)
    if match is None:
        return None
    return _Node(len(match["indent"]), bool(match["stream"]), match["name"], match["rest"])


def _topics(node: _Node) -> list[str]:
    return _TOPIC.findall(node.rest) if node.name.startswith("StreamingRelation") else []


def _has_state(nodes: list[_Node], place: int) -> bool:
    node = nodes[place]
    if not node.is_streaming:
        return False
    if node.name == "Join":
        return all(child.is_streaming for child in _children(nodes, place))
    return node.name in KEYED or node.name.startswith(CUSTOM)


def _children(nodes: list[_Node], place: int) -> list[_Node]:
    children: list[_Node] = []
    for node in nodes[place + 1 :]:
        if node.depth <= nodes[place].depth:
            break
        if not children or node.depth == children[0].depth:
            children.append(node)
    return children


def _grouping(node: _Node) -> str:
    match = _GROUPING.match(node.rest)
    return match[1] if match else ""


def _find_kept(nodes: list[_Node], place: int) -> str | None:
    """Return what an operator of ours says that it keeps: in the name that is given to it."""
    name = _name(nodes, place)
    return name.removeprefix(KEPT) if name.startswith(KEPT) else None


def _name(nodes: list[_Node], place: int) -> str:
    above = nodes[place - 1] if place else None
    return above.rest.strip(" `") if above and above.name == "SubqueryAlias" else ""


def _signature(nodes: list[_Node], place: int) -> str:
    """Return what must stay the same for the state to be of use."""
    node = nodes[place]
    # What an operator of the user's own keeps, Spark compares by itself.
    rest = _PASSING.sub("", node.rest) if node.name in KEYED else ""
    name = _name(nodes, place)
    return name.removeprefix(KEPT) if name.startswith(NAMED) else f"{node.name}{rest}"

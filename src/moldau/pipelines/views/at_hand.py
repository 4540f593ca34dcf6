"""The views that this process keeps: who asks for a key's row need not read a topic for it."""

import threading
from collections.abc import Mapping

from moldau.pipelines.views.key_shape import KeyShape
from moldau.pipelines.views.view import View

_LOCK = threading.Lock()
_KEPT: dict[tuple[str, str], View] = {}


def put_at_hand(servers: str, view: View) -> None:
    """Let others in this process find a view; of several, the first is found."""
    with _LOCK:
        _KEPT.setdefault((servers, view.topic), view)


def take_away(view: View) -> None:
    """Let nobody find it any more: it is about to be closed."""
    with _LOCK:
        for place in [place for place, each in _KEPT.items() if each is view]:
            del _KEPT[place]


def find_at_hand(servers: str, topic: str, key: Mapping[str, str]) -> View | None:
    """Return the view of a topic by the same key, if there is one."""
    with _LOCK:
        view = _KEPT.get((servers, topic))
    return view if view is not None and view.shape.types == KeyShape(key).types else None

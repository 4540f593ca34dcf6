"""A chart for each line of the races: its ratio over the commits of bench/results, as one SVG.

Ratios are drawn on a logarithmic scale; the legend says what the dots mean.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path

from bench.row import SPREAD_MAX

SUITES = ("broker", "coordination")
COLUMNS = 3
WIDTH, HEIGHT = 380, 150
LEFT, TOP, RIGHT, BOTTOM = 42, 34, 16, 24
LEGEND_HEIGHT = 24
LEGEND = (
    "Ratio to Apache Kafka 4.3.1 (more is better), by commit. Filled: warm. Thick ring: unsteady. "
    "Grey ring: cold, from before both brokers were warmed. Dashed: the goal."
)
STYLE = """text{font:10px sans-serif;fill:#333}.title{font-weight:bold}
.axis{stroke:#ddd}.goal{stroke:#b33;stroke-dasharray:4 3}.path{fill:none;stroke:#27c}
.warm{fill:#27c}.unsteady{fill:#fff;stroke:#27c;stroke-width:2}.cold{fill:none;stroke:#999}"""


@dataclass(frozen=True, slots=True)
class Dot:
    """One stored row of a line."""

    commit: str
    ratio: float
    goal: float
    kind: str
    """`warm`, `unsteady` or `cold`."""


def chart(results: Path) -> str:
    """Return the page."""
    lines = read_lines(results)
    panels = [_panel(what, dots) for what, dots in lines.items()]
    height = LEGEND_HEIGHT + ceil(len(panels) / COLUMNS) * HEIGHT
    placed = (
        f'<g transform="translate({number % COLUMNS * WIDTH},'
        f'{LEGEND_HEIGHT + number // COLUMNS * HEIGHT})">'
        f"{panel}</g>"
        for number, panel in enumerate(panels)
    )
    size = f'width="{COLUMNS * WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>'
    legend = f'<text x="{LEFT}" y="16">{escape(LEGEND)}</text>'
    return "\n".join((head, legend, *placed, "</svg>\n"))


def read_lines(results: Path) -> dict[str, list[Dot]]:
    """Return the dots of each line, in the order in which they were stored."""
    lines: dict[str, list[Dot]] = {}
    for suite in SUITES:
        path = results / f"{suite}.jsonl"
        for text in path.read_text().splitlines() if path.exists() else ():
            run = json.loads(text)
            for row in run["rows"]:
                dot = Dot(run["commit"], row["ratio"], row["goal"], kind_of(row))
                lines.setdefault(row["what"], []).append(dot)
    return lines


def kind_of(row: Mapping[str, object]) -> str:
    """Return how a stored row was measured; rows from before the field was there are cold."""
    if not row.get("warm"):
        return "cold"
    spread = row.get("spread")
    return "unsteady" if isinstance(spread, float) and spread > SPREAD_MAX else "warm"


def _panel(what: str, dots: list[Dot]) -> str:
    goal = dots[-1].goal
    low, high = _bounds([dot.ratio for dot in dots] + ([goal] if goal else []))

    def y(ratio: float) -> float:
        part = (log10(max(ratio, 1e-3)) - low) / (high - low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    step = (WIDTH - LEFT - RIGHT) / max(len(dots) - 1, 1)
    places = [(LEFT + number * step, y(dot.ratio)) for number, dot in enumerate(dots)]
    right = WIDTH - RIGHT
    parts = [f'<text class="title" x="{LEFT}" y="14">{escape(what)}</text>']
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="4" y="{at + 3:.1f}">{10.0**power:g}</text>')
    if goal:
        at = y(goal)
        parts.append(f'<line class="goal" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
    parts.append(f'<polyline class="path" points="{_points(places, dots)}"/>')
    for (across, down), dot in zip(places, dots, strict=True):
        told = f"{dot.commit}: {dot.ratio:.2f}, {dot.kind}"
        parts.append(
            f'<circle class="{dot.kind}" cx="{across:.1f}" cy="{down:.1f}" r="4">'
            f"<title>{escape(told)}</title></circle>"
        )
    last = dots[-1]
    parts.append(f'<text x="{LEFT}" y="28">{last.ratio:.2f}, goal {goal:g}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">{escape(dots[0].commit)}</text>')
    if len(dots) > 1:
        end = f'x="{right}" y="{HEIGHT - 8}" text-anchor="end"'
        parts.append(f"<text {end}>{escape(last.commit)}</text>")
    return "".join(parts)


def _points(places: Iterable[tuple[float, float]], dots: Iterable[Dot]) -> str:
    """Join the rows that can be compared: cold ones are apart."""
    joined = zip(places, dots, strict=True)
    return " ".join(f"{x:.1f},{y:.1f}" for (x, y), dot in joined if dot.kind != "cold")


def _bounds(ratios: list[float]) -> tuple[int, int]:
    """Return the powers of ten around all ratios, and around 1."""
    powers = [log10(max(ratio, 1e-3)) for ratio in (*ratios, 1.0)]
    low, high = floor(min(powers)), ceil(max(powers))
    return (low, high) if high > low else (low - 1, high + 1)

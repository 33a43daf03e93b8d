"""A picture as SVG text: the few shapes that a map needs, written the same to the last byte for the same values."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from attrs import frozen

FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, FAINT = "#222222", "#bbbbbb"


@frozen
class Box:
    """A rectangle in pixels, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float


def document(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return a whole picture on white; `title` is what a screen reader says."""
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {number(width)} {number(height)}' role='img' {FONT}>"
    ground = f"<rect width='{number(width)}' height='{number(height)}' fill='#ffffff'/>"
    return "\n".join((head, f"<title>{escape(title)}</title>", ground, *parts, "</svg>", ""))


def area(boxes: Iterable[Box], fill: str) -> str:
    """Return boxes of one colour as one path, without seams between neighbours."""
    steps = "".join(
        f"M{number(b.x)} {number(b.y)}h{number(b.width)}v{number(b.height)}h{number(-b.width)}z" for b in boxes
    )
    return f"<path fill='{fill}' shape-rendering='crispEdges' d='{steps}'/>"


def frame(box: Box) -> str:
    """Return an outline."""
    sides = f"x='{number(box.x)}' y='{number(box.y)}' width='{number(box.width)}' height='{number(box.height)}'"
    return f"<rect {sides} fill='none' stroke='{INK}' stroke-width='0.8'/>"


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a faint line."""
    ends = f"x1='{number(x1)}' y1='{number(y1)}' x2='{number(x2)}' y2='{number(y2)}'"
    return f"<line {ends} stroke='{FAINT}' stroke-width='0.5'/>"


def dot(x: float, y: float, radius: float, fill: str, told: str) -> str:
    """Return a dot that says what it is when it is pointed at."""
    place = f"cx='{number(x)}' cy='{number(y)}' r='{number(radius)}'"
    return f"<circle {place} fill='{fill}' stroke='{INK}' stroke-width='0.7'><title>{escape(told)}</title></circle>"


def text(x: float, y: float, said: str, *, size: float = 11, anchor: str = "start", turned: bool = False) -> str:
    """Return text whose baseline starts, or is centred or ends, at a point; `turned` reads upwards."""
    turn = f" transform='rotate(-90 {number(x)} {number(y)})'" if turned else ""
    place = f"x='{number(x)}' y='{number(y)}' font-size='{number(size)}' text-anchor={quoteattr(anchor)} fill='{INK}'"
    return f"<text {place}{turn}>{escape(said)}</text>"


def number(value: float) -> str:
    """Return a coordinate to a hundredth of a pixel, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"

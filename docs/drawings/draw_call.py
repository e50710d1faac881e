"""Draw call.svg, the picture of "How a call becomes GPU work": python docs/drawings/draw_call.py."""

from pathlib import Path

PATH = Path(__file__).parents[1] / "reference" / "architecture" / "call.svg"
WIDTH = 980
BOX_WIDTH, BOX_HEIGHT = 188, 78
LEFT, GAP = 24, 60
LANE_HEIGHT, LANE_GAP, TOP = 138, 30, 10

# Each lane: when it happens, colour, and its boxes: title, what it is, where it lives in the repository.
LANES = [
    (
        "once, where the kernel is defined: pure Python, no device",
        "#e8f1fb",
        [
            ("@vd.shader", "reads the signature", "shader/decorator.py"),
            ("rewrite", "if, while, for: GPU or not", "control_flow/statements.py"),
            ("trace", "the body runs once", "codegen/variables.py"),
            ("typed IR", "statements, dtypes, lines", "compiler/ir/program.py"),
        ],
    ),
    (
        "at the first call: compiled for the device",
        "#eef7ea",
        [
            ("GLSL", "one writer, readable text", "compiler/glsl/writer.py"),
            ("SPIR-V", "glslang, in process", "libs/glslang.cpp"),
            ("pipeline", "layout and VkPipeline", "objects/plan.cpp"),
            ("launcher", "a slot for each argument", "shader/building.py"),
        ],
    ),
    (
        "at every call: the calling thread returns at once",
        "#fdf3e1",
        [
            ("your call", "scale(buf, 2.0)", "shader/shader_function.py"),
            ("launcher", "packs the arguments", "launching.pxi: Launcher"),
            ("batch", "numbered; others join it", "stages/command.hpp"),
        ],
    ),
    (
        "behind it, on the queue's own thread, or on a thread that waits",
        "#f6ecf7",
        [
            ("queue thread", "drains the batch", "queue/queue.cpp"),
            ("record", "barriers where needed", "stages/recorder.cpp"),
            ("submit", "one vkQueueSubmit", "queue/queue.cpp"),
            ("timeline", "reaches the batch number", "queue/timeline.cpp"),
        ],
    ),
    (
        "when you look",
        "#f0f0f0",
        [
            ("buf.read()", "knows its last writer", "base/buffer.py"),
            ("wait", "for that number, no more", "queue/queue.cpp"),
            ("copy", "mapped, or staged", "libs/copy.cpp"),
            ("NumPy array", "yours to change", ""),
        ],
    ),
]

OPENING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
    'aria-label="The stages from the decorator to the array that is read">'
)
STYLE = """<style>
text { font-family: system-ui, Helvetica, Arial, DejaVu Sans, sans-serif; text-anchor: middle; fill: #1d2733 }
.title { font-size: 17px; font-weight: 600 }
.caption { font-size: 13px }
.place { font-size: 11.5px; font-family: ui-monospace, Menlo, DejaVu Sans Mono, monospace; fill: #5b6775 }
.when { font-size: 14px; font-style: italic; text-anchor: end; fill: #3c4856 }
.box { fill: #fff; stroke: #8b98a6; stroke-width: 1.2 }
.arrow { fill: none; stroke: #3c4856; stroke-width: 1.6 }
</style>"""
MARKER = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#3c4856"/></marker></defs>'
)


def text(x: float, y: float, content: str, style: str) -> str:
    """Return one centred line of text."""
    escaped = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}" class="{style}">{escaped}</text>'


def box_left(column: int) -> int:
    """Return the left edge of a column of boxes."""
    return LEFT + 16 + column * (BOX_WIDTH + GAP - 16)


def box(column: int, top: int, title: str, caption: str, place: str) -> list[str]:
    """Return a box with its three lines."""
    left = box_left(column)
    middle = left + BOX_WIDTH / 2
    return [
        f'<rect x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7" class="box"/>',
        text(middle, top + 26, title, "title"),
        text(middle, top + 46, caption, "caption"),
        text(middle, top + 65, place, "place"),
    ]


def arrow(points: list[tuple[float, float]]) -> str:
    """Return a line through the points with a head at its end."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" class="arrow" marker-end="url(#head)"/>'


def down_arrow(from_column: int, to_column: int, lane: int) -> str:
    """Return the arrow from a box of a lane to a box of the next one."""
    start = TOP + lane * (LANE_HEIGHT + LANE_GAP) + 42 + BOX_HEIGHT
    end = TOP + (lane + 1) * (LANE_HEIGHT + LANE_GAP) + 42
    x0 = box_left(from_column) + BOX_WIDTH / 2
    x1 = box_left(to_column) + BOX_WIDTH / 2
    bend = start + 18 + LANE_GAP / 2
    return arrow([(x0, start), (x0, bend), (x1, bend), (x1, end - 3)])


def lane(index: int) -> list[str]:
    """Return a lane with its boxes and the arrows between them."""
    when, colour, boxes = LANES[index]
    top = TOP + index * (LANE_HEIGHT + LANE_GAP)
    size = f'width="{WIDTH - 2 * LEFT + 28}" height="{LANE_HEIGHT}"'
    parts = [
        f'<rect x="{LEFT - 14}" y="{top}" {size} rx="10" fill="{colour}"/>',
        f'<text x="{WIDTH - LEFT - 2}" y="{top + 25}" class="when">{when}</text>',
    ]
    for column, (title, caption, place) in enumerate(boxes):
        parts += box(column, top + 42, title, caption, place)
        if column:
            y = top + 42 + BOX_HEIGHT / 2
            parts.append(arrow([(box_left(column - 1) + BOX_WIDTH, y), (box_left(column) - 3, y)]))
    return parts


def picture() -> str:
    """Return the whole SVG."""
    height = TOP * 2 + len(LANES) * (LANE_HEIGHT + LANE_GAP) - LANE_GAP
    background = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    parts = [OPENING.format(width=WIDTH, height=height), STYLE, MARKER, background]
    for index in range(len(LANES)):
        parts += lane(index)
    # The IR is written out; calls use the finished launcher; a batch goes to the thread; reading waits.
    parts += [down_arrow(3, 0, 0), down_arrow(3, 1, 1), down_arrow(2, 0, 2), down_arrow(3, 1, 3)]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PATH.write_text(picture())

"""Six pictures of the gallery as one, the picture of the README.

Run as a program it writes pictures.png (or what `--output` names).
"""

import argparse
import io
import runpy
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

OUTPUT = Path("pictures.png")  # in the current folder
GALLERY = Path(__file__).with_name("gallery")
NAMES = (
    ("physics/galaxies", "graphics/mandelbulb", "physics/gray_scott"),
    ("graphics/ray_tracer", "physics/attractor", "graphics/newton"),
)
HEIGHT, WIDTH, GAP = 260, 400, 6  # pixels of a picture, and between two


def draw(name: str) -> Image.Image:
    """Run an example of the gallery; return its picture, cut to the common size."""
    from matplotlib import pyplot

    runpy.run_path(str(GALLERY / f"{name}.py"))
    file = io.BytesIO()
    pyplot.gcf().savefig(file, dpi=120, bbox_inches="tight", pad_inches=0)
    pyplot.close("all")
    picture = Image.open(file).convert("RGB")
    dark = np.asarray(picture).min(2) < 250  # without a white margin
    rows, columns = np.flatnonzero(dark.any(1)), np.flatnonzero(dark.any(0))
    picture = picture.crop((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
    scale = max(HEIGHT / picture.height, WIDTH / picture.width)
    picture = picture.resize(
        (round(picture.width * scale), round(picture.height * scale)), Image.Resampling.LANCZOS
    )
    left, top = (picture.width - WIDTH) // 2, (picture.height - HEIGHT) // 2
    return picture.crop((left, top, left + WIDTH, top + HEIGHT))


def main(output: Path) -> None:
    """Write the picture."""
    matplotlib.use("agg")
    columns = len(NAMES[0])
    whole = Image.new(
        "RGB", (columns * (WIDTH + GAP) - GAP, len(NAMES) * (HEIGHT + GAP) - GAP), (255, 255, 255)
    )
    for row, names in enumerate(NAMES):
        for column, name in enumerate(names):
            whole.paste(draw(name), (column * (WIDTH + GAP), row * (HEIGHT + GAP)))
    output.parent.mkdir(parents=True, exist_ok=True)
    whole.save(output)
    print(f"Wrote {output}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    main(parser.parse_args().output)

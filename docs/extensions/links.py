"""Sphinx extension: after a build in HTML, every link to a page, a file or a place of this site has a target.

Sphinx checks references when it reads pages. It does not see links in raw HTML, in the output of notebooks,
and to parts of pages that the theme or the gallery writes.
"""

import html
import re
from pathlib import Path
from urllib.parse import unquote

from sphinx.application import Sphinx
from sphinx.util import logging

_LINK = re.compile(r"<(?:a|link|img|script|iframe)\b[^>]*?\s(?:href|src)=\"([^\"]*)\"")
_ID = re.compile(r"<[^>]+?\s(?:id|name)=\"([^\"]+)\"")
# examples of HTML in pages are no links
_CODE = re.compile(r"<(pre|textarea)\b.*?</\1>", re.DOTALL)
_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)")


def find_broken(folder: Path, pages: list[Path]) -> list[str]:
    """Return "page: link" for each link that leads nowhere, in pages of a folder."""
    texts = {path.resolve(): path.read_text() for path in sorted(pages)}
    places = {path: set(map(html.unescape, _ID.findall(text))) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        for link in sorted(set(_LINK.findall(_CODE.sub("", text)))):
            target, _, place = unquote(html.unescape(link)).partition("#")
            if _ELSEWHERE.match(target):
                continue
            file = (path.parent / target.partition("?")[0]).resolve() if target else path
            if not file.exists() or (place and file in places and place not in places[file]):
                broken.append(f"{path.relative_to(folder.resolve())}: {link}")
    return broken


def _check(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        # a folder may still have pages that are no longer part of the site
        names = [*app.env.found_docs, "genindex", "search"]
        pages = [path for name in names if (path := Path(app.builder.get_outfilename(name))).exists()]
        for found in find_broken(Path(app.outdir), pages):
            logging.getLogger(__name__).warning("broken link in %s", found)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check the links after all extensions have written their files."""
    app.connect("build-finished", _check, priority=900)
    return {"parallel_read_safe": True}

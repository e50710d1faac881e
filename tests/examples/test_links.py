"""The build of the documentation finds links that lead nowhere."""

from __future__ import annotations

from pathlib import Path

from tests.examples.docs_modules import load_module

PAGE = """
<h1 id="top">Title</h1> <a href="#top">a</a> <a href="#nowhere">b</a> <a href="other.html#here">c</a>
<a class="x" href="other.html#there">d</a> <a href="https://example.org/#e">e</a> <img alt="" src="lost.png">
<a href="file%20name.txt">f</a> <pre>&lt;a href="g.html"&gt; <a href="g.html"></a></pre>
<a href="h.html?q=1#i">h</a>
"""


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    (tmp_path / "other.html").write_text('<p id="here"></p>')
    (tmp_path / "file name.txt").write_text("")
    pages = [tmp_path / "page.html", tmp_path / "other.html"]
    found = load_module("links").find_broken(tmp_path, pages)
    assert found == [
        f"page.html: {link}" for link in ("#nowhere", "h.html?q=1#i", "lost.png", "other.html#there")
    ]

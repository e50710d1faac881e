"""The playground in headless Chromium: needs Selenium, ChromeDriver, and a copy of Pyodide (PYODIDE)."""

import functools
import http.server
import linecache
import os
import re
import shutil
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import vkdispatch as vd
from tests.examples.docs_modules import DOCS, load_module

webdriver = pytest.importorskip("selenium.webdriver")
if not (shutil.which("chromedriver") and os.environ.get("PYODIDE")):
    pytest.skip("needs ChromeDriver and a copy of Pyodide", allow_module_level=True)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: Any) -> None:
        """Do nothing."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS / "_static", folder / "_static")
    load_module("playground").write_beside(folder / "_static")
    block = re.search(r"^\.\. raw:: html\n\n((?:   .*\n|\n)+)", (DOCS / "playground.rst").read_text(), re.M)
    assert block is not None
    (folder / "playground.html").write_text(f"<!doctype html>{textwrap.dedent(block[1])}")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = webdriver.ChromeOptions()
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(option)
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        chrome.get(f"http://127.0.0.1:{server.server_port}/playground.html")
        yield chrome
    finally:
        chrome.quit()
        server.shutdown()


def wait_for(browser: Any, holds: Callable[[str], bool]) -> str:
    from selenium.webdriver.support.ui import WebDriverWait

    def look(_: Any) -> str | None:
        text = str(browser.find_element("id", "playground-glsl").text)
        return text if holds(text) else None

    found: str = WebDriverWait(browser, 120).until(look)
    return found


def write_source(browser: Any, source: str) -> None:
    browser.execute_script(
        "const s = document.getElementById('playground-source'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'));",
        source,
    )


def test_the_page_shows_what_python_shows(browser: Any) -> None:
    from selenium.webdriver.support.ui import Select

    for name in [option.text for option in Select(browser.find_element("id", "playground-choice")).options]:
        Select(browser.find_element("id", "playground-choice")).select_by_visible_text(name)
        source = str(browser.find_element("id", "playground-source").get_attribute("value"))
        variables: dict[str, Any] = {"__name__": "kernel"}
        try:
            linecache.cache["kernel.py"] = (len(source), None, source.splitlines(True), "kernel.py")
            exec(compile(source, "kernel.py", "exec", dont_inherit=True), variables)
            (kernel,) = (value for value in variables.values() if isinstance(value, vd.ShaderFunction))
            expected = str(kernel.get_src(build=False)).strip()
        except vd.VkDispatchError as error:
            expected = f"{type(error).__name__}: {error}"
        assert wait_for(browser, lambda text, expected=expected: text == expected.strip())  # type: ignore[misc]


def test_errors_of_syntax_and_programs_without_kernels(browser: Any) -> None:
    write_source(browser, "def f(:")
    assert "line 1" in wait_for(browser, lambda text: "SyntaxError" in text)
    write_source(browser, "x = 1")
    wait_for(browser, lambda text: "defines no kernel" in text)

"""One Chromium for the tests of the page, and what each page of it must not do."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

WIDE, NARROW = 1440, 400
GRAVE = ["critical", "serious"]
PATIENCE_MS = 120_000
PROGRAMS = ("chromium-headless-shell", "chromium")
"""Both have the same engine. The first one has no profiles and no extensions: to open a page takes
it less than half of what it takes the second one."""

expect.set_options(timeout=PATIENCE_MS)  # its own five seconds are few for a busy machine


@contextmanager
def chromium() -> Generator[Browser]:
    """Start a browser; skips where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no chromium: tests/servers/install-chromium installs it")
    with sync_playwright() as playwright:
        # As root it has no sandbox of its own; it looks at nothing but the node under test.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, url: str, *, scheme: Literal["dark", "light"] = "light", width: int = WIDE
) -> Generator[Page]:
    """Open a page; at its end it must have raised no error."""
    page = browser.new_page(
        viewport={"width": width, "height": 1000}, color_scheme=scheme, bypass_csp=True
    )
    page.set_default_timeout(PATIENCE_MS)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    page.wait_for_selector("h1")
    yield page
    page.close()
    assert errors == []


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def grave_findings(page: Page) -> list[str]:
    """Return what axe finds that keeps somebody from using a page."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"][:3]
    ]


@contextmanager
def visited(
    browser: Browser, url: str, *, script: str = "", expected: str = "", **options: Any
) -> Generator[Page]:
    """Open a page as a person does, with its security policy; its console must stay empty.

    `script` runs before those of the page. Errors with the `expected` text are none. `options` are
    those of a browser's context.
    """
    size = {"width": WIDE, "height": 1000}
    context = browser.new_context(**{"viewport": size, "color_scheme": "light", **options})
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(script or ";")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(f"{line.type}: {line.text} {line.location}"))
    page.goto(url)
    yield page
    context.close()
    assert [each for each in errors if each.startswith("error") and expected not in each] == []

"""The page in a browser: list, one series, live updates, restarts, hostile ids, 10,000 series, no outside request."""

import contextlib
import os
import shutil
from pathlib import Path

import httpx
import pytest

from logcde.artefact.files import model_digest
from logcde.serve import Group, Service, SqliteStore
from logcde.serve.store import SeriesRecord
from tests.cli.streaming import GOOD, a_model, history
from tests.serve.serving import Server, post, served, wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: the page is not tested")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium: the page is not tested in a browser")
HOSTILE = "<img src=x onerror=document.title='hacked'>"
SHOTS = "LOGCDE_SCREENSHOTS"
"""Environment variable with a folder for pictures of the page."""
ALERT = ("--alert", "1:0.000001:-1000", "--alert", "1:-0.000001:1000")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model."""
    path = tmp_path_factory.mktemp("saved") / "model"
    a_model().save(path)
    return path


@pytest.fixture
def opened():
    """Open a page in Chromium; in the end it has said nothing wrong and asked no other host."""
    wrong, asked = [], set()
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def open(url, **options):
            page = browser.new_page(viewport={"width": 1200, "height": 800}, **options)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
            page.on("request", lambda request: asked.add(request.url.split("/")[2]))
            page.goto(url)
            page.wait_for_selector("#health.good")
            return page

        yield open
        browser.close()
    assert [one for one in wrong if "ERR_CONNECTION" not in one and "ERR_INCOMPLETE" not in one] == []
    assert all(host.startswith("127.0.0.1:") for host in asked)


def test_the_page_follows_a_service(folder, tmp_path, opened):
    path = tmp_path / "state.db"
    lines = [*history(24), GOOD | {"series": HOSTILE}]
    with Server(folder, path, *ALERT) as server:
        httpx.post(f"{server.url}observations", json=lines[:12] + lines[-1:])
        page = opened(server.url)
        wait_until(lambda: page.evaluate("document.querySelectorAll('.row').length == 4"))
        page.fill("#search", "img")
        wait_until(lambda: page.evaluate("document.querySelectorAll('.row').length == 1"))
        page.click(".row")
        page.wait_for_selector("#one:not([hidden])")
        assert page.inner_text("#name") == HOSTILE
        page.keyboard.press("Escape")
        page.fill("#search", "")
        wait_until(lambda: page.evaluate("document.querySelectorAll('.row').length == 4"))
        page.select_option("#sort", "name")
        wait_until(lambda: page.evaluate("document.querySelector('.row .name').textContent.startsWith('<img')"))
        page.focus("#list")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")  # p1
        wait_until(lambda: page.evaluate("document.getElementById('name').textContent == 'p1'"))
        httpx.post(f"{server.url}observations", json=lines[12:24])
        wait_until(lambda: page.evaluate("document.getElementById('facts').textContent.includes('Observations8')"))
        assert page.evaluate(
            "document.getElementById('raster').getContext('2d').getImageData(0, 0, 999, 40).data.some(x => x)"
        )
        if SHOTS in os.environ:
            page.screenshot(path=Path(os.environ[SHOTS], "serving.png"))
        assert page.title() == "logcde serve"
        port = server.url.rstrip("/").rpartition(":")[2]
        server.process.terminate()
        server.process.wait(60)
        page.wait_for_selector("#health.bad")
    with Server(folder, path, *ALERT, "--http", f"127.0.0.1:{port}") as server:
        page.wait_for_selector("#health.good")
        httpx.post(f"{server.url}observations", json=GOOD | {"series": "after", "time": 0.2})
        wait_until(lambda: page.evaluate("document.getElementById('total').textContent == '5 series'"))


def test_ten_thousand_series_and_a_narrow_screen(folder, tmp_path, opened):
    path, model = tmp_path / "state.db", served(a_model(), model_digest(folder))
    with contextlib.closing(SqliteStore(path, {"model": model.digest, "reordering": "no"})) as store:
        service = Service(model, store)
        post(service, GOOD)
        state = store.load("p1").state
        records = [
            SeriesRecord(n, f"s{n:05}", state, 0.0, 1e9 + n, 1, 0.1, 0.1, 0.1, [0.0, float(n)], float(n), ())
            for n in range(2, 10_001)
        ]
        store.commit(Group("http", series=records))
    with Server(folder, path) as server:
        page = opened(server.url, color_scheme="dark")
        wait_until(lambda: page.evaluate("document.getElementById('total').textContent.replace(/\\D/g, '') == '10000'"))
        assert page.evaluate("document.querySelectorAll('.row').length") < 60
        page.focus("#list")
        page.keyboard.press("End")
        wait_until(
            lambda: page.evaluate("[...document.querySelectorAll('.row .name')].some(x => x.textContent == 's00002')")
        )
        assert page.evaluate("document.querySelectorAll('.row').length") < 60
        page.set_viewport_size({"width": 375, "height": 667})
        page.keyboard.press("Home")
        wait_until(
            lambda: page.evaluate("[...document.querySelectorAll('.row .name')].some(x => x.textContent == 's10000')")
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        if SHOTS in os.environ:
            page.screenshot(path=Path(os.environ[SHOTS], "narrow.png"))

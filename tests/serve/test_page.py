"""The page in a browser: list, one series, live updates, restarts, hostile ids, 10,000 series, no outside request."""

import asyncio
import contextlib
import dataclasses
import json
import re
import shutil
import socket
import threading

import httpx
import pytest
import uvicorn

from logcde.serve import Group, ServiceOptions
from logcde.serve.alerts import Alert
from logcde.serve.feed import PostFeed
from logcde.serve.http import Limits, application
from logcde.serve.worker import Worker
from logcde.streams import DatetimeClock
from tests.cli.streaming import GOOD, a_model, history
from tests.serve.serving import lease_of, post, served, service_on, wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: the page is not tested")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium: the page is not tested in a browser")
HOSTILE = "<img src=x onerror=document.title='hacked'>\u202e"
ALERTS = ServiceOptions(alerts=(Alert("1", -1.1, -1.2),))
HUGE = 2**53 + 1
KNOWN = ("ERR_CONNECTION", "ERR_INCOMPLETE", "401 (Unauthorized)", "404 (Not Found)")
"""What Chromium itself writes to the console of a service that stops, asks for its token, or lacks a series."""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as browsers:
        one = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture
def opened(browser):
    """Open a page in Chromium; in the end it has said nothing wrong and asked no other host."""
    wrong, asked, contexts = [], set(), []

    def open(url, ready="#health.good", **options):
        contexts.append(browser.new_context(**({"viewport": {"width": 1200, "height": 800}} | options)))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: asked.add(request.url.split("/")[2]))
        page.goto(url)
        page.wait_for_selector(ready)
        return page

    yield open
    for context in contexts:
        context.close()
    assert [one for one in wrong if not any(known in one for known in KNOWN)] == []
    assert asked
    assert all(host.startswith("127.0.0.1:") for host in asked)


@contextlib.contextmanager
def serving(service, token=None, port=0):
    """Serve in a thread of this process; gives the address."""
    worker = Worker(service, PostFeed())
    app = application(worker, Limits(), token, ("127.0.0.1",))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))

    async def run():
        async with worker.running():
            await server.serve([connection])

    with socket.create_server(("127.0.0.1", port)) as connection:
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield f"http://127.0.0.1:{connection.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """The address of a service with alerts, a series with an id beyond 2^53, hostile ids, and refused observations."""
    with service_on(tmp_path_factory.mktemp("ward") / "state.db", options=ALERTS) as service:
        post(service, *history(60))
        post(service, GOOD | {"series": HUGE, "values": {"pulse": HUGE}}, GOOD | {"series": HOSTILE})
        post(service, GOOD | {"series": "7"}, GOOD | {"time": "soon"}, GOOD | {"values": {HOSTILE: 1.0}}, b"{")
        with serving(service) as url:
            yield url


def rows(page):
    """Ids in the list, from top to bottom."""
    return page.evaluate(
        "[...document.querySelectorAll('#list .row')].sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))"
        ".map(row => row.querySelector('.name').textContent)"
    )


def holds(page, expression):
    """Wait until JavaScript says so. The page itself evaluates no text: its policy forbids that."""
    wait_until(lambda: page.evaluate(expression), 20.0)


def pictures(page):
    """What is drawn in the two plots."""
    return page.evaluate("[...document.querySelectorAll('.plot canvas')].map(one => one.toDataURL())")


def painted(page, plot, expression, least=255):
    """The largest value of an expression in colors over what is drawn in a plot, with at least this alpha."""
    return page.evaluate(
        f"""() => {{
            const canvas = document.querySelector("{plot} canvas"), found = new Set();
            const {{data}} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            for (let at = 0; at < data.length; at += 4) {{
                const [red, green, blue, alpha] = data.subarray(at, at + 4);
                if (alpha >= {least}) found.add({expression});
            }}
            return Math.max(...found);
        }}"""
    )


def test_the_page_follows_a_service_over_a_restart(tmp_path, opened):
    lines, path = history(24), tmp_path / "state.db"
    with service_on(path, options=ALERTS) as service, serving(service) as url:
        httpx.post(f"{url}observations", json=lines[:12], timeout=60.0)
        page = opened(url + "#%22p1%22")
        wait_until(lambda: len(rows(page)) == 3)
        holds(page, "document.getElementById('facts').textContent.includes('observations4')")
        httpx.post(f"{url}observations", json=lines[12:24], timeout=60.0)
        holds(page, "document.getElementById('facts').textContent.includes('observations8')")
        told = httpx.get(f"{url}alerts?series=p1").json()["alerts"]
        assert page.locator("#alerts li").count() == len(told) > 0
    page.wait_for_selector("#health.bad")
    with service_on(path, options=ALERTS) as service, serving(service, port=int(url.rstrip("/").rpartition(":")[2])):
        page.wait_for_selector("#health.good")
        httpx.post(f"{url}observations", json=[GOOD | {"series": "after"}, GOOD | {"time": 100.0}], timeout=60.0)
        holds(page, "document.getElementById('facts').textContent.includes('observations9')")
        wait_until(lambda: len(rows(page)) == 4)


def test_hostile_ids_numbers_and_texts(ward, opened):
    page = opened(ward)
    wait_until(lambda: len(rows(page)) == 6)
    shown = HOSTILE[:-1] + "\\u{202e}"
    assert set(rows(page)) == {"p1", "p2", "7", shown, str(HUGE)}
    page.fill("#search", "img")
    wait_until(lambda: rows(page) == [shown])
    page.click("#list .row")
    page.wait_for_selector("#facts .large")
    assert page.inner_text("#name") == shown
    page.fill("#search", str(HUGE))
    wait_until(lambda: rows(page) == [str(HUGE)])
    page.click("#list .row")
    holds(page, f"document.querySelector('.lane').textContent == 'pulse{HUGE}'")
    page.click("#last summary")
    wait_until(lambda: f"pulse {HUGE}" in page.inner_text("#table"))
    page.fill("#search", "7")
    wait_until(lambda: rows(page).count("7") == 2)
    counts = []
    for row in page.locator("#list .row", has_text=re.compile("^7")).all():
        row.click()
        holds(page, "document.querySelector('#name').textContent == '7' && !document.querySelector('#one.loading')")
        counts.append(page.inner_text("#facts"))
    assert counts[0] != counts[1]
    page.goto(ward + "#%22no%20such%22")
    page.wait_for_selector("#gone:not([hidden])")
    assert "There is no series 'no such'" in page.inner_text("#gone")
    assert not page.is_visible("#facts")  # those of the series before
    page.fill("#search", "no such")
    page.wait_for_selector("#none:not([hidden])")
    assert page.title().endswith("logcde serve")


def test_one_series_is_zoomed_and_read(ward, opened):
    page = opened(ward + "#%22p1%22")
    page.wait_for_selector(".plot canvas")
    page.wait_for_selector("#alerts .bad")  # raised before the page was opened
    assert page.locator(".lane").count() == 2
    assert "every other query interval (0.5)" in page.inner_text("#key")
    for plot in ("#predicted", "#raster"):  # shaded
        assert painted(page, plot, "red === 238 && green === 242 && blue === 247")
    whole, box = pictures(page), page.locator("#raster .u-over").bounding_box()
    assert page.is_disabled("#whole")
    page.mouse.move(box["x"] + 40, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 140, box["y"] + 20, steps=4)
    page.mouse.up()
    page.wait_for_selector("#whole:not([disabled])")
    assert all(one != other for one, other in zip(whole, pictures(page), strict=True))  # both are zoomed
    assert page.inner_text("#readout")
    page.click("#whole")
    page.mouse.move(1, 1)
    wait_until(lambda: pictures(page) == whole)
    page.focus("#plots")
    page.keyboard.press("Home")
    seen = httpx.get(f"{ward}series/p1").json()["history"]
    assert page.inner_text("#readout") == f"observed at {seen[0]['time']:g}"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#readout") == f"observed at {seen[1]['time']:g}"
    page.keyboard.press("+")
    page.wait_for_selector("#whole:not([disabled])")
    page.keyboard.press("0")
    page.wait_for_selector("#whole[disabled]", state="attached")
    pressed = page.locator("#legend [aria-pressed='true']").all_inner_texts()
    assert [text.split()[0] for text in pressed] == ["1"]  # the output that an alert is about
    page.click("#legend button >> nth=0")
    holds(page, "document.querySelectorAll(\"#legend [aria-pressed='true']\").length == 2")
    assert pictures(page)[0] != whole[0]
    page.reload()  # the address says what is open
    holds(page, "document.getElementById('name').textContent == 'p1'")


def test_keyboard(ward, opened):
    page = opened(ward)
    page.select_option("#sort", "name")
    wait_until(lambda: [one[:4] for one in rows(page)[:2]] == ["7", "<img"])
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("p")
    wait_until(lambda: rows(page) == ["p1", "p2"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#list", "aria-activedescendant") == "row-1"
    page.keyboard.press("Enter")
    holds(page, "document.getElementById('name').textContent == 'p2'")
    page.wait_for_selector("#row-1[aria-selected='true']")
    page.keyboard.press("Escape")
    page.wait_for_selector("#service", state="visible")
    assert page.evaluate("document.activeElement.id") == "list"
    page.go_back()
    page.wait_for_selector("#one", state="visible")


def test_the_service_pane(ward, opened):
    page = opened(ward)
    page.wait_for_selector("#feeds td")
    assert page.locator("#feeds td").all_inner_texts()[:3] == ["http", "0", "taking"]
    page.wait_for_selector("#letters .letter")
    assert page.locator("#letters .letter").count() == 3
    assert HOSTILE[:-1] in page.inner_text("#letters")
    assert "malformed" in page.inner_text("#reasons")
    assert "output" in page.inner_text("#model")
    page.locator("#raised button").first.click()
    page.wait_for_selector("#facts .large")
    page.click("#overview")
    page.locator("#past button").first.click()
    page.wait_for_selector("#facts .large")


def test_attribution_intervals_and_a_model_beside(ward, opened):
    """With what a model that has bounds, and another one beside it, would add to answers."""
    page = opened(ward)

    def add(route):
        answer = route.fetch()
        content = answer.json()
        beside = {"model": "ab" * 32, "prediction": [0.0, -1.0], "risk": -1.0}
        for one in content.get("series", [content]) if isinstance(content.get("series"), list) else [content]:
            one["beside"] = beside
        for one in content.get("history", []):
            one["beside"] = -1.0
            one["prediction"] = {"1": {"value": one["prediction"][1], "lower": -2.0, "upper": 0.0}}
        route.fulfill(json=content)

    page.route(re.compile("/series"), add)
    page.goto(ward + "#%22p1%22")
    page.wait_for_selector(".plot canvas")
    holds(page, "document.getElementById('facts').textContent.includes('beside it, abababababab-1.000')")
    assert "Grey and dashed: the model beside this one." in page.inner_text("#key")
    page.select_option("#sort", "updated")
    wait_until(lambda: "beside it" in (page.get_attribute("#row-0", "title") or ""))
    page.click("#attribute")
    page.wait_for_selector("#parts li")
    told = httpx.get(f"{ward}series/p1?attribution=1", timeout=60.0).json()["attribution"]
    ranked = sorted(told["parts"], key=lambda one: -abs(one["amount"]))
    shown = page.locator("#parts li").all_inner_texts()
    assert [one.split("\n")[0] for one in shown] == [one["channel"] for one in ranked[: len(shown)]]
    assert {"+", "−"} == {one.split("\n")[1][0] for one in shown}
    colour = "red - blue" if ranked[0]["amount"] > 0 else "blue - red"
    wait_until(lambda: painted(page, "#raster", colour, least=30) > 60, 20.0)


def test_datetimes_are_on_an_axis_of_time(tmp_path, opened):
    model = served(a_model(DatetimeClock(zone="Europe/Berlin")))
    stamps = [f"2026-03-29T0{hour}:30:00+0{1 + (hour > 1)}:00" for hour in (0, 1, 3, 4)]  # a clock goes forward
    with service_on(tmp_path / "state.db", model) as service:
        post(service, *[GOOD | {"time": stamp} for stamp in stamps])
        with serving(service) as url:
            page = opened(url + "#%22p1%22")
            page.wait_for_selector(".plot canvas")
            page.focus("#plots")
            page.keyboard.press("End")
            shown = f"observed at {stamps[-1].replace('T', ' ')}"
            assert page.inner_text("#readout") == shown
            httpx.post(f"{url}observations", json=GOOD | {"time": "2026-03-29T05:00:00+02:00"}, timeout=60.0)
            holds(page, "document.getElementById('facts').textContent.includes('observations5')")
            # The cursor stays where it is on the screen, where the newest observation is now.
            holds(page, "document.getElementById('readout').textContent == 'observed at 2026-03-29 05:00:00+02:00'")
            assert "(0.5 hours)" in page.inner_text("#key")


def test_ten_thousand_series_on_a_phone_in_the_dark(tmp_path, opened):
    with service_on(tmp_path / "state.db") as service:
        post(service, GOOD)
        (known,) = service.store.load(["p1"])
        records = [
            dataclasses.replace(known, key=n, name=f"s{n:05}", prediction=[0.0, float(n)], risk=float(n))
            for n in range(2, 10_001)
        ]
        service.store.commit(Group(lease_of(service), series=records))
        with serving(service) as url:
            page = opened(url, color_scheme="dark")
            wait_until(lambda: page.inner_text("#total") == "10,000 series")
            assert len(rows(page)) < 60
            page.focus("#list")
            page.keyboard.press("End")
            wait_until(lambda: "s00002" in rows(page))
            assert len(rows(page)) < 60
            page.set_viewport_size({"width": 375, "height": 667})
            page.keyboard.press("Home")
            wait_until(lambda: "s10000" in rows(page))
            assert page.evaluate("document.documentElement.scrollWidth") <= 375
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 27)"
            page.locator("#list .row").first.click()
            page.wait_for_selector("#facts .large")
            box = page.locator("#one").bounding_box()
            assert (box["width"], box["height"]) == (375, 667)
            assert page.evaluate("document.activeElement.className") == "close"
            page.click("#one .close")
            page.wait_for_selector("#list", state="visible")
            assert not page.is_visible("#service")
            page.click("#overview")
            page.wait_for_selector("#raised li")


def test_the_page_asks_for_the_token(tmp_path, opened):
    token = "0123456789abcdef"
    with service_on(tmp_path / "state.db") as service:
        post(service, GOOD)
        with serving(service, token) as url:
            page = opened(url, ready="#asked:not([hidden])")
            for text in ("not it", token):
                page.fill("#token", text)
                page.click("#asked button")
                if text != token:
                    holds(page, "document.getElementById('wrong').textContent != ''")
            page.wait_for_selector("#health.good")
            wait_until(lambda: rows(page) == ["p1"])
            assert json.loads(page.evaluate("JSON.stringify(localStorage)")) == {}

"""Pictures of the page for the docs: a ward of simulated beds, on a screen and on a phone.

python -m tests.serve.pictures docs/howto
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import numpy as np

from logcde.cli.stream import predictor_and_output
from logcde.serve import ServedModel, ServiceOptions
from logcde.serve.alerts import Alert
from tests.serve.serving import post, service_on

# Mean gap in hours, mean, spread, and how far each channel drifts, in spreads, while a patient gets worse.
CHANNELS = {
    "heart rate": (0.25, 82, 7, 3.0),
    "oxygen": (0.3, 96.5, 1, -1.8),
    "pressure": (0.6, 118, 9, -2.2),
    "breath": (0.5, 16, 2, 2.2),
    "temp": (3.0, 37, 0.25, 1.2),
    "lactate": (6.0, 1.3, 0.3, 3.0),
}
START = datetime(2026, 3, 1, 8)
WORSE = Alert("worse", 0.75, 0.5)


def stay(rng, worse, hours):
    """Observations of one bed, (stamp, channel, value), which drift from a moment on if the patient gets worse."""
    onset, rows = rng.uniform(2, 14), []
    for name, (gap, mean, spread, far) in CHANNELS.items():
        own, time = rng.normal(0, 0.6), rng.exponential(gap)
        while time < hours:
            drift = far * min(1.0, max(0.0, (time - onset) / 8)) if worse else 0.0
            stamp = (START + timedelta(hours=round(time, 2))).isoformat()
            rows.append((stamp, name, round(mean + spread * (own + drift + rng.normal(0, 0.7)), 1)))
            time += rng.exponential(gap) + 0.02
    return sorted(rows)


def trained(rng, folder):
    """A model that was trained on other beds."""
    rows = [
        (f"t{bed}", *row, ("stable", "worse")[bed % 2])
        for bed in range(160)
        for row in stay(rng, bed % 2, rng.uniform(6, 24))
    ]
    with (folder / "stays.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("series", "time", "channel", "value", "state"), *rows])
    options = ["--target", "state", "--every", "1h", "--steps", "300", "--sort", "--duplicates", "last"]
    command = [sys.executable, "-m", "logcde", "train", folder / "stays.csv", *options, "-o", folder / "model"]
    subprocess.run(command, check=True)
    predictor, statics, to_json = predictor_and_output(folder / "model")
    return ServedModel(predictor, "f3a9c07be2d14458", statics, to_json)


def observations(rng):
    """Beds of a ward, by time."""
    found = {}
    for bed in range(1, 43):
        for stamp, name, value in stay(rng, rng.random() < 0.35, rng.uniform(5, 22)):
            found.setdefault((stamp, f"bed {bed:02}"), {})[name] = value
    return [{"series": bed, "time": stamp, "values": values} for (stamp, bed), values in sorted(found.items())]


def shown(browser, url, **options):
    """A picture of a page."""
    from PIL import Image

    page = browser.new_page(**options)
    page.goto(url)
    page.wait_for_selector("#health.good")
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot()))
    page.close()
    return picture


def main(docs):
    """Write the pictures into a folder."""
    # Here, so that the module can be imported without a browser.
    from PIL import Image
    from playwright import sync_api as playwright

    from tests.serve.test_page import CHROMIUM, serving

    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as name, playwright.sync_playwright() as browsers:
        folder, browser = Path(name), browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with service_on(folder / "state.db", trained(rng, folder), ServiceOptions(alerts=(WORSE,))) as service:
            lines = observations(rng)
            for first in range(0, len(lines), 500):
                post(service, *lines[first : first + 500])
            raised = [one.content for one in service.store.outgoing(0, 100_000) if one.kind == "alert"]
            active = [one for one in raised if service.store.find(one["series"]).alerts]
            bed = max(active, key=lambda one: one["time"])["series"]
            with serving(service) as url:
                one = f"{url}#{quote(json.dumps(bed))}"
                screen = shown(browser, one, viewport={"width": 1280, "height": 760})
                narrow = {"viewport": {"width": 390, "height": 780}, "has_touch": True}
                phones = [
                    shown(browser, url, color_scheme="light", **narrow),
                    shown(browser, one, color_scheme="dark", **narrow),
                ]
    both = Image.new("RGB", (2 * 390 + 20, 780), "white")
    for place, phone in enumerate(phones):
        both.paste(phone, (place * 410, 0))
    for picture, file in ((screen, "serving.png"), (both, "serving-phone.png")):
        few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(Path(docs, file), optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""Names that pages use for a reader's own data, and data sets that pages read."""

PATIENTS = """
import numpy as np
import polars

rng = np.random.default_rng(0)


def table(ids):
    rows = []
    for patient in ids:
        for hours in np.cumsum(rng.exponential(0.7, 8)).tolist():
            for vital in ("heart_rate", "temp")[: rng.integers(1, 3)]:
                rows.append((patient, hours, vital, rng.normal(70.0 if vital == "heart_rate" else 37.0)))
    return polars.DataFrame(rows, schema=["patient", "hours", "vital", "x"], orient="row")


df, new = table([f"p{n}" for n in range(20)]), table(["q1", "q2"])
died = {f"p{n}": n % 2 == 0 for n in range(20)}
"""

PREPARED = {
    "docs/howto/overview.md": PATIENTS,
    "docs/synthetic.md": "import numpy as np\ntimes = np.linspace(0.0, 1.0, 5)",
}
"""Code to run before the blocks of a page. Other pages are self-contained."""

DATA = {"docs/datasets.md": "SelfRegulationSCP1", "docs/physionet.md": "PhysioNet2012"}
"""Pages that read a data set, which does not come with the package."""

"""In-hospital mortality from 48 hours of intensive care records, where every variable is measured at its own times.

    LOGCDE_DATA=FOLDER python -m examples.intensive_care

FOLDER holds the PhysioNet/CinC Challenge 2012 (https://physionet.org/content/challenge-2012). Without it the example
says so and runs on generated stays instead.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

import logcde as lc
from logcde.errors import DatasetError
from logcde.estimators import LogCDEClassifier, LogSLiCE


def stays(count: int) -> tuple[lc.Streams, np.ndarray]:
    """Records of stays, and whether each patient died."""
    try:
        found = lc.datasets.physionet2012()
    except DatasetError as error:
        print(f"{error}\nGenerated stays are used instead.")
        return generated(count)
    return found.streams[:count], found.died[:count].astype(int)


def generated(count: int) -> tuple[lc.Streams, np.ndarray]:
    """Stays in which the heart rate of those who die is higher, and measured more often."""
    rng = np.random.default_rng(0)
    died = (rng.random(count) < 0.3).astype(int)
    rows = [
        (stay, hour, {variable: level + spread * (rng.normal() + died[stay])})
        for stay in range(count)
        for variable, level, spread, often in (("HR", 85.0, 15.0, 12), ("Temp", 37.0, 0.6, 5), ("Lactate", 2.0, 1.0, 1))
        for hour in rng.uniform(0, 48, often + 6 * died[stay] * (variable == "HR"))
    ]
    return lc.Streams.from_events(rows, horizon=48.0, sort=True), died


def main(count: int = 2000, steps: int | None = None) -> float:
    """Train on 80 % of the stays, test on the others, and explain one prediction. Returns the AUROC."""
    streams, died = stays(count)
    print(streams)
    train, test = np.split(np.random.default_rng(0).permutation(len(streams)), [int(0.8 * len(streams))])
    classifier = LogCDEClassifier(random_state=0).fit(streams[train], died[train])
    probability = classifier.predict_proba(streams[test])[:, 1]
    area = float(roc_auc_score(died[test], probability))
    print(f"AUROC on {len(test)} test stays: {area:.3f}")
    network = LogCDEClassifier(learner=LogSLiCE(steps=steps), random_state=0).fit(streams[train], died[train])
    alone = roc_auc_score(died[test], network.predict_proba(streams[test])[:, 1])
    print(f"A Log-SLiCE alone, whose predictions can be attributed to single observations: {alone:.3f}")

    # By how much each observation moves the log odds of the stay with the highest probability.
    one = streams[[test[np.argmax(probability)]]]
    found = lc.attribute(network.model_, one)
    hours = np.repeat(one.times, np.diff(one.obs_offsets))
    print(
        f"Stay {one.ids[0]}: log odds {found.prediction:+.2f}, with ordinary values {found.ordinary:+.2f}; mostly from"
    )
    for place in np.argsort(-np.abs(found.amounts))[:3]:
        channel = one.schema.channels[one.channel[place]]
        print(f"  {channel} {one.value[place]:g} after {hours[place]:.1f} hours: {found.amounts[place]:+.2f}")
    return area


if __name__ == "__main__":
    main()

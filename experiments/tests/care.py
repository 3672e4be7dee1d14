"""Small intensive care records, written as the files that the readers read."""

import numpy as np

VARIABLES = ("HR", "Lactate", "Temp", "Weight")
STAYS = 150


def write_stays(folder):
    """Stays over 48 hours, with a slow pulse of their own that is faster and measured more often for those who die.

    Splits have 90 / 30 / 30 stays.
    """
    rng = np.random.default_rng(0)
    died = np.arange(STAYS) % 3 == 0
    level = rng.normal(80, 15, STAYS) + 25 * died
    rows = []
    for stay in range(STAYS):
        for _ in range(rng.integers(10, 16) + 6 * died[stay]):
            minute = rng.integers(0, 2881)
            rows.append((stay, minute, 0, level[stay] + 5 * np.sin(minute / 400) + rng.normal(0, 2)))
        rows += [(stay, rng.integers(0, 2881), v, rng.normal((0, 2, 37)[v], 0.3)) for v in (1, 2, 2, 2)]
        rows.append((stay, 0, 3, rng.choice([-1.0, 70.0, 80.0])))
        rows.append((stay, 1500, 3, 75.0))
    stay, minute, variable, value = np.array(sorted(rows)).T
    known = rng.uniform(20, 90, STAYS), rng.integers(0, 2, STAYS), rng.choice([-1.0, 170.0], STAYS)
    ids = np.arange(1000, 1000 + STAYS)
    np.savez(
        folder / "PhysioNet2012.npz",
        variables=np.array(VARIABLES),
        static_names=np.array(["Age", "Gender", "Height", "ICUType"]),
        ids_a=ids,
        offsets_a=np.searchsorted(stay, np.arange(STAYS + 1)),
        t_min_a=minute,
        var_a=variable.astype(np.uint8),
        value_a=value,
        static_a=np.stack([*known, rng.integers(1, 5, STAYS)], axis=1),
        y_a=died.astype(np.int8),
    )
    order = rng.permutation(ids)
    np.savez(folder / "PhysioNet2012_splits.npz", train_1=order[:90], validation_1=order[90:120], test_1=order[120:])


def write_hospitals(folder):
    """Two hospitals with 40 stays each; in every fourth stay the pulse rises before sepsis."""
    rng = np.random.default_rng(0)
    stored = {"variables": np.array(["HR", "Lactate"]), "static_names": np.array(["Age", "ICULOS"])}
    for name in "AB":
        lengths = rng.integers(12, 30, 40)
        labels, hours, variables, values, counts = [], [], [], [], []
        for stay, length in enumerate(lengths):
            onset = length - 5 if stay % 4 == 0 else length
            labels.append((np.arange(length) >= onset).astype(np.int8))
            seen = np.flatnonzero(rng.random(length) < 0.8) if stay else np.empty(0, int)
            pulse = 80 + 3.0 * np.maximum(0, seen - onset + 8) * (onset < length) + rng.normal(0, 2, len(seen))
            lactate = np.flatnonzero(rng.random(length) < 0.1)[: len(seen)]
            hour, variable = np.append(seen, lactate), np.append(np.zeros(len(seen)), np.ones(len(lactate)))
            order = np.lexsort((variable, hour))
            hours.append(hour[order])
            variables.append(variable[order])
            values.append(np.append(pulse, rng.normal(2, 0.5, len(lactate)))[order])
            counts.append(len(hour))
        stored |= {
            f"ids_{name}": np.array([f"{name}{stay:03d}" for stay in range(40)]),
            f"offsets_{name}": np.concatenate([[0], np.cumsum(counts)]),
            f"row_offsets_{name}": np.concatenate([[0], np.cumsum(lengths)]),
            f"hour_{name}": np.concatenate(hours).astype(np.uint16),
            f"var_{name}": np.concatenate(variables).astype(np.uint8),
            f"value_{name}": np.concatenate(values).astype(np.float32),
            f"label_hourly_{name}": np.concatenate(labels),
            f"static_{name}": np.stack([rng.uniform(20, 90, 40), np.ones(40)], axis=1).astype(np.float32),
        }
    np.savez(folder / "PhysioNet2019.npz", **stored)

"""Writers of small data sets in the formats of the archive."""

import numpy as np


def small(seed=0, lengths=(6, 6, 4, 6), channels=3):
    """Values (channel, step) of four series, two for each part, and their labels."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(channels, length)).astype(np.float32) for length in lengths]
    return values, ["b", "a", "b", "a"]


def write_ts(folder, name, values, labels, head=""):
    folder.mkdir(parents=True, exist_ok=True)
    for part, chosen in (("TRAIN", slice(0, 2)), ("TEST", slice(2, 4))):
        lines = [":".join([*map(_numbers, one), label]) for one, label in _both(values, labels, chosen)]
        head_lines = f"# a comment\n@problemName {name}\n@timeStamps false\n{head}@classLabel true a b\n\n@data\n"
        (folder / f"{name}_{part}.ts").write_text(head_lines + "\n".join(lines) + "\n")


def write_arff(folder, name, values, labels):
    folder.mkdir(parents=True, exist_ok=True)
    steps = max(one.shape[1] for one in values)
    padded = [np.pad(one, ((0, 0), (0, steps - one.shape[1])), constant_values=np.nan) for one in values]
    inner = "".join(f"  @attribute att{step} numeric\n" for step in range(steps))
    head = (
        f"% a comment\n@relation {name}\n@attribute all relational\n{inner}@end all\n@attribute class {{a,b}}\n@data\n"
    )
    for part, chosen in (("TRAIN", slice(0, 2)), ("TEST", slice(2, 4))):
        lines = ["'" + r"\n".join(map(_numbers, one)) + f"',{label}" for one, label in _both(padded, labels, chosen)]
        (folder / f"{name}_{part}.arff").write_text(head + "\n".join(lines) + "\n")


def write_npz(folder, name, values, labels, **more):
    folder.mkdir(parents=True, exist_ok=True)
    steps = max(one.shape[1] for one in values)
    padded = np.stack([np.pad(one, ((0, 0), (0, steps - one.shape[1])), constant_values=np.nan) for one in values])
    arrays = {"X_train": padded[:2], "X_test": padded[2:], "y_train": labels[:2], "y_test": labels[2:]}
    np.savez(folder / f"{name}.npz", **(arrays | more))


def _both(values, labels, chosen):
    return zip(values[chosen], labels[chosen], strict=True)


def _numbers(row):
    return ",".join("?" if np.isnan(value) else repr(float(value)) for value in row)

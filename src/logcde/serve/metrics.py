"""What a service counts, in the text format of Prometheus."""

import bisect
import collections
import itertools
from collections.abc import Iterator, Mapping

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the classes of durations."""
HELP = {
    "observations": "Observations taken.",
    "repeated": "Observations with an event id that had been taken already.",
    "refused": "Observations refused, by reason.",
    "predictions": "Predictions made, by what asked for them.",
    "not_finite": "Predictions that were not finite.",
    "outside": "Warnings that a series is far outside of what the model was trained on.",
    "unfollowed": "Times that the other model could not take an observation, and no longer follows the series.",
    "published": "Entries that were sent to where others read them.",
    "unrefreshed": "Series that the clock could not refresh.",
    "alerts": "Alerts raised and cleared.",
    "groups": "Groups of observations that were committed together.",
    "failures": "Groups that could not be committed or applied.",
    "requests": "Answers to requests, by status.",
}
LABELS = {"refused": "reason", "predictions": "by", "alerts": "change", "requests": "status"}
"""Names of labels, whose values are few and chosen by this package."""


class Histogram:
    """Durations by class.

    >>> durations = Histogram((0.5, 1.0))
    >>> durations.add(0.7)
    >>> list(durations.lines("wait"))[1:3]
    ['wait_bucket{le="0.5"} 0', 'wait_bucket{le="1"} 1']
    """

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect.bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """The lines of this histogram."""
        yield f"# TYPE {name} histogram"
        totals = list(itertools.accumulate(self._counts))
        for bound, total in zip(self._bounds, totals, strict=False):
            yield f'{name}_bucket{{le="{bound:g}"}} {total}'
        yield f'{name}_bucket{{le="+Inf"}} {totals[-1]}'
        yield f"{name}_sum {self._sum:.9g}"
        yield f"{name}_count {totals[-1]}"


class Metrics:
    """Counters by name and label, and durations.

    >>> metrics = Metrics()
    >>> metrics.add("refused", "late")
    >>> "logcde_refused_total{reason=\\"late\\"} 1" in metrics.text({"series": 2}).splitlines()
    True
    """

    def __init__(self) -> None:
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.commit, self.answer = Histogram(), Histogram()

    def add(self, name: str, label: str = "", count: int = 1) -> None:
        """Count something."""
        assert name in HELP
        self.counts[name, label] += count

    def add_all(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Count what a group has done, and the group."""
        for (name, label), count in counts.items():
            self.add(name, label, count)
        self.add("groups")

    def text(self, gauges: dict[str, float]) -> str:
        """All numbers; `gauges` are those that go up and down."""
        lines, counts = [], sorted(dict(self.counts).items())  # a copy: another thread counts
        for name, help in HELP.items():
            lines += [f"# HELP logcde_{name}_total {help}", f"# TYPE logcde_{name}_total counter"]
            found = {label: count for (one, label), count in counts if one == name}
            if name not in LABELS:
                lines.append(f"logcde_{name}_total {found.get('', 0)}")
            lines += [
                f'logcde_{name}_total{{{LABELS[name]}="{label}"}} {count}' for label, count in found.items() if label
            ]
        for name, value in gauges.items():
            lines += [f"# TYPE logcde_{name} gauge", f"logcde_{name} {value:.9g}"]
        lines += self.commit.lines("logcde_commit_seconds")
        lines += self.answer.lines("logcde_answer_seconds")
        return "\n".join(lines) + "\n"

"""Predictions of a service: of one model or two, together for many series, one beside the other; and alerts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from logcde.online.predictors import predict_together
from logcde.serve.alerts import Alert, check_outputs, numbers_of, risk_of
from logcde.serve.live import LiveSeries, ServedModel
from logcde.serve.metrics import Metrics
from logcde.serve.store import Outgoing
from logcde.serve.work import Due, Work
from logcde.streams.clock import Time


class Predicting:
    """Predicts series that are live.

    Args:
        models: The models of the service. The first one that follows a series predicts it.
        alerts: Thresholds of outputs.
        risk: The output by which series are sorted; None for the last one.
        rate: Units of time of the models in a second, where stamps are not datetimes.
        metrics: Counts what is not finite.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        alerts: Sequence[Alert],
        risk: str | None,
        rate: float | None,
        metrics: Metrics,
    ) -> None:
        self._models, self._alerts, self._risk, self._rate, self._metrics = models, alerts, risk, rate, metrics
        for model in models:  # compiles what predicts, before anybody waits
            known = numbers_of(model.to_json(predict_together([model.predictor.copy()], [None])[0]))
            check_outputs(alerts, risk, tuple(known))

    def one(self, live: LiveSeries, at: Time) -> Any:
        """The prediction for a series at a time, in JSON.

        Raises:
            StreamError: The series is known beyond that time.
        """
        outputs = live.series.predictor.predict(at)
        self._check_finite([outputs])
        return self._models[live.model].to_json(outputs)

    def due(self, work: Work) -> None:
        """Make all predictions that are due, together."""
        due, work.due = list(work.due.values()), {}
        times = [one.live.time_at(work.now, self._rate) if one.by == "tick" else Time(one.live.time) for one in due]
        found = [self._outputs(place, due, times) for place in range(len(self._models))]
        for number, (one, at) in enumerate(zip(due, times, strict=True)):
            live = one.live
            live.predicted = live.stamp if at == live.time else live.series.stamp(at)
            live.prediction = found[live.model][number]
            live.beside = self._beside(live, [outputs[number] for outputs in found])
            work.changed[live.name] = live
            work.counts["predictions", one.by] += 1
            one.answer.update(series=live.name, time=live.predicted, prediction=live.prediction)
            work.outgoing.append(Outgoing("prediction", live.name, dict(one.answer)))
            if one.observation is not None:
                one.observation.predicted, one.observation.prediction = live.predicted, live.prediction
                one.observation.beside = None if live.beside is None else live.beside["risk"]
            self._alert(live, work)

    def _outputs(self, place: int, due: Sequence[Due], times: Sequence[Time]) -> list[Any]:
        """What a model predicts for each of the series, None for those that it does not follow."""
        found: list[Any] = [None] * len(due)
        followers = {n: one for n, due_ in enumerate(due) if (one := due_.live.followers[place]) is not None}
        outputs = predict_together([one.predictor for one in followers.values()], [times[n] for n in followers])
        self._check_finite(outputs)
        for number, output in zip(followers, outputs, strict=True):
            found[number] = self._models[place].to_json(output)
        return found

    def _beside(self, live: LiveSeries, found: Sequence[Any]) -> dict[str, Any] | None:
        """What another model says of a series, if one does."""
        for place, prediction in enumerate(found):
            if place != live.model and prediction is not None:
                risk = risk_of(numbers_of(prediction), self._risk)
                return {"model": self._models[place].digest, "prediction": prediction, "risk": risk}
        return None

    def _alert(self, live: LiveSeries, work: Work) -> None:
        """Sort the series anew, and raise or clear its alerts."""
        numbers = numbers_of(live.prediction)
        live.risk = risk_of(numbers, self._risk)
        names = []
        for alert in self._alerts:
            name, value = str(alert), numbers[alert.output]
            active = alert.after(name in live.alerts, value)
            if active:
                names.append(name)
            if active != (name in live.alerts):
                change = "raised" if active else "cleared"
                content = {"series": live.name, "time": live.predicted, "alert": name, "output": alert.output}
                work.outgoing.append(Outgoing("alert", live.name, {**content, "value": value, "change": change}))
                work.counts["alerts", change] += 1
        live.alerts = tuple(names)

    def _check_finite(self, outputs: Sequence[np.ndarray]) -> None:
        lost = int(np.sum(~np.isfinite(outputs).all(axis=1))) if len(outputs) else 0
        self._metrics.add("not_finite", count=lost)

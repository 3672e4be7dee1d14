"""Online equals offline through the whole service, with stays in intensive care over HTTP and over NATS."""

import os
from pathlib import Path

import pytest

from benchmarks.care_replay import Options, replayed
from examples.serving.servers import missing


@pytest.mark.skipif(missing() is not None, reason=f"NO STAY IS REPLAYED: {missing()}")
@pytest.mark.skipif("LOGCDE_DATA" not in os.environ, reason="NO STAY IS REPLAYED: needs the folder of data sets")
def test_services_predict_as_the_model_does_offline():
    if not (Path(os.environ["LOGCDE_DATA"]) / "PhysioNet2012.npz").is_file():
        pytest.skip("NO STAY IS REPLAYED: PhysioNet 2012 is not in LOGCDE_DATA")
    http, nats = replayed(Options(stays=12, training=32))
    for one in (http, nats):
        assert one.stays == 12
        assert one.predictions == one.events > 500
        assert one.observations > one.events
        assert one.refused == 0
        assert one.largest_prediction > 0.01
        assert max(one.difference_during, one.difference_end) < 1e-5 * max(1.0, one.largest_prediction)

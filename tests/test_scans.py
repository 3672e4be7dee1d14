"""Scans as an extension point: a scan of a user's own runs flows, signatures and recurrences."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde.baselines import LRU, ssm
from logcde.errors import ScanError
from logcde.scans import AbstractScan, Auto, MatrixFree, Sequential
from logcde.testing.examples import example_inputs


class Backwards(AbstractScan):
    """All products by a loop from the last step to the first: slow, and the same to rounding."""

    parallel: ClassVar[bool] = True

    def __call__(self, composition, steps, state):
        prepared = composition.prepare(steps)
        elements = composition.lift(prepared, state)
        count = len(jax.tree.leaves(steps)[0])
        products = []
        for last in range(count):
            product = jax.tree.map(lambda leaf, last=last: leaf[last], elements)
            for place in range(last - 1, -1, -1):
                product = composition.combine(jax.tree.map(lambda leaf, place=place: leaf[place], elements), product)
            products.append(product)
        states = composition.act(jax.tree.map(lambda *leaves: jnp.stack(leaves), *products), state)
        return jax.vmap(composition.read)(states, prepared)


def model_of(scan):
    return lc.log_slice(lc.Basis.of_width(2, 2), 4, 2, block=2, scan=scan, key=jax.random.key(0))


def test_custom_scan_runs_flows():
    inputs = example_inputs(model_of(Auto()))
    found = lc.predict(model_of(Backwards()), inputs)
    np.testing.assert_allclose(found, lc.predict(model_of(Sequential()), inputs), rtol=1e-5)


def test_custom_scan_runs_recurrences():
    options = {"hidden": 3, "outputs": 1, "unit": LRU(state=2), "layers": 1, "key": jax.random.key(0)}
    models = [ssm(lc.Basis.of_width(2, 1), scan=scan, **options) for scan in (Backwards(), Auto())]
    inputs = example_inputs(models[0])
    np.testing.assert_allclose(lc.predict(models[0], inputs), lc.predict(models[1], inputs), rtol=1e-4)


def signatures(scan):
    streams = lc.Streams.from_arrays([[0.5, 1.0, 2.5]], [[[3.0], [4.0], [1.0]]], horizon=3.0)
    return lc.Embedding(depth=2).on_device(streams, lc.Partition.uniform(2), scan=scan).values


@pytest.mark.parametrize("scan", [Backwards(), Auto()], ids=lambda scan: type(scan).__name__)
def test_any_scan_runs_signatures(scan):
    np.testing.assert_allclose(signatures(scan), signatures(Sequential()), rtol=1e-12)


def test_matrix_free_scan_of_signatures_is_refused():
    with pytest.raises(ScanError, match=r"no matrix-free form. Use Auto\(\)"):
        signatures(MatrixFree())

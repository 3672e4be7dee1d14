"""The compiled program that measures how well a model does on many series."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Int

from logcde.train.batches import batched, buckets_of
from logcde.train.examples import Examples
from logcde.train.losses import AbstractMeasure, Share, totals
from logcde.train.parallel import AXIS, place, whole
from logcde.train.steps import Parameters, gather


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """Examples on all devices, and what to measure on them. `rest` is the model without parameters."""

    rest: Parameters
    measures: tuple[AbstractMeasure, ...]
    buckets: tuple[Examples, ...]
    rows: tuple[Int[Array, "_ row"], ...]
    mesh: Mesh

    @staticmethod
    def of(
        rest: Parameters, measures: tuple[AbstractMeasure, ...], examples: Examples, batch: int, most: int, mesh: Mesh
    ) -> "Evaluator":
        """In batches, in at most so many shapes."""
        buckets = buckets_of(examples, batch, most)
        rows = tuple(batched(np.arange(len(bucket)), batch, whole(batch, mesh)) for bucket in buckets)
        return Evaluator(rest, measures, place(mesh, buckets), place(mesh, rows, None, AXIS), mesh)

    def __call__(self, parameters: Parameters) -> dict[str, float]:
        """The measures by their names."""
        shares = _totals(self.rest, self.measures, self.mesh, parameters, self.buckets, self.rows)
        return {
            measure.name: float(value) / (float(weight) or 1.0)
            for measure, (value, weight) in zip(self.measures, shares, strict=True)
        }


@eqx.filter_jit
def _totals(
    rest: Parameters,
    measures: tuple[AbstractMeasure, ...],
    mesh: Mesh,
    parameters: Parameters,
    buckets: tuple[Examples, ...],
    rows: tuple[Int[Array, "_ row"], ...],
) -> tuple[Share, ...]:
    """Sums of values and of weights over all series, for each measure."""

    def on_each(parameters: Parameters, buckets: tuple[Examples, ...], rows: tuple[Array, ...]) -> tuple[Share, ...]:
        model = eqx.combine(parameters, rest)

        def measure(bucket: Examples, rows: Int[Array, "row"]) -> tuple[Share, ...]:
            batch = gather(bucket, rows)
            predictions = jax.vmap(lambda one: model(one))(batch.inputs)
            return tuple(totals(m, predictions, batch.targets, batch.predicted, rows >= 0) for m in measures)

        parts = [
            jax.lax.map(lambda one, bucket=bucket: measure(bucket, one), many)
            for bucket, many in zip(buckets, rows, strict=True)
        ]
        here = jax.tree.map(lambda *leaves: sum(leaf.sum() for leaf in leaves), *parts)
        return jax.lax.psum(here, AXIS)

    mapped = jax.shard_map(on_each, mesh=mesh, in_specs=(P(), P(), P(None, AXIS)), out_specs=P(), check_vma=False)
    return mapped(parameters, buckets, rows)

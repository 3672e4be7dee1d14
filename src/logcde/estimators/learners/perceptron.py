"""`Perceptron`: trains one network on the questions about all targets."""

import dataclasses
from collections.abc import Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float32, Float64, Int, Int64, PRNGKeyArray

from logcde.errors import ModelError, check_positive, check_whole
from logcde.estimators.learners.questions import AbstractForecastLoss
from logcde.estimators.learners.shrinking import fit_shrunk
from logcde.models.forecast_network import ForecastNetwork, Standardised
from logcde.models.last_value import ShrunkLast, last_and_age

EMBEDDED = 24
"""Numbers by which a target is told from others."""
BATCHES, STEPS = (64, 1024), 400
"""Fewest and most questions in a training step, and how many steps there are with a number between them."""
RARE = 0.25
"""Questions about a target count as the power of their number of which this is the exponent, with a minus sign."""
WARMING = 0.05
"""Share of the steps in which the rate rises."""
TINY = 1e-9
"""Changes that are this much smaller than values are rounding."""
OPTIMISER = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(1e-2))
"""Its updates are multiplied by the rate of the step, so that one compiled step serves any number of them."""


@dataclasses.dataclass(frozen=True)
class Perceptron:
    """One network for all targets of `DirectForecast`.

    Args:
        width: Units of its layers.
        passes: How often each question is shown.
        rate: Peak learning rate of AdamW.
        dropout: Share of the units that are left out in a training step.
        fewest: Fewest training questions, about all targets, from which on it is trained.

    >>> Perceptron(width=64).passes
    5
    """

    width: int = 128
    passes: int = 5
    rate: float = 2e-3
    dropout: float = 0.3
    fewest: int = 20_000

    def __post_init__(self) -> None:
        for name in ("width", "passes", "fewest"):
            check_whole("Perceptron", name, getattr(self, name), least=2 if name == "width" else 1)
        check_positive("Perceptron", "rate", self.rate)
        if not 0 <= self.dropout < 1:
            raise ModelError(
                f"Perceptron(dropout={self.dropout!r}) is not possible.", "Give a share of at least 0 and less than 1."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """Questions about all targets and what is read for them.

    Args:
        brief: Features of all channels, of each prefix.
        place: The prefix of each question.
        own: Features of each question; NaN for those that its target lacks.
        target: The target of each question.
        values: The answers.
        channels: For each target the channel that it is a value of; None if it is none of them.
    """

    brief: Float32[np.ndarray, "prefix common"]
    place: Int64[np.ndarray, "question"]
    own: Float32[np.ndarray, "question own"]
    target: Int64[np.ndarray, "question"]
    values: Float64[np.ndarray, "question"]
    channels: Sequence[int | None]

    def __len__(self) -> int:
        return len(self.place)

    def __getitem__(self, chosen: np.ndarray) -> "Known":
        own, target, values = self.own[chosen], self.target[chosen], self.values[chosen]
        return Known(self.brief, self.place[chosen], own, target, values, self.channels)

    def answered(self, network: ForecastNetwork) -> Float64[np.ndarray, "question"]:
        """What a network forecasts."""
        out, used, place = np.empty(len(self)), *np.unique(self.place, return_inverse=True)
        encoded = network.encode(self.brief[used])
        for number, channel in enumerate(self.channels):
            mine = np.flatnonzero(self.target == number)
            out[mine] = network.values(encoded, place[mine], self.own[mine], number, channel)
        return out


def trained(
    options: Perceptron,
    known: Known,
    losses: Sequence[AbstractForecastLoss],
    seed: int,
) -> ForecastNetwork:
    """Train a network on questions.

    Args:
        options: Its size and how it is trained.
        known: The questions.
        losses: How a miss of each target counts.
        seed: Seed of weights, order and dropout.
    """
    present = np.isfinite(known.brief)
    marked = np.unique(present, axis=1, return_index=True)[1]
    marked = np.sort(marked[present[:, marked].any(axis=0) & ~present[:, marked].all(axis=0)])
    common = Standardised.of(known.brief, marked)
    every, count = np.arange(known.own.shape[1]), len(known.channels)
    unit, heavy, light = np.zeros((3, count))
    read = np.empty((len(known), 2 * len(every)), np.float32)
    change = np.empty(len(known), np.float32)
    own, base = [], []
    for number, (channel, loss) in enumerate(zip(known.channels, losses, strict=True)):
        mine = np.flatnonzero(known.target == number)
        rows = known.own[mine]
        own.append(Standardised.of(rows, every))
        base.append(ShrunkLast(0.0, np.zeros(1), np.zeros(1)))
        if not len(mine):
            continue
        last, age = last_and_age(rows, channel)
        base[-1] = fit_shrunk(last, age, known.values[mine], loss)
        missed = known.values[mine] - base[-1](last, age)
        read[mine] = own[-1](rows)
        if (size := missed.std()) <= TINY * np.abs(known.values[mine]).max():
            change[mine] = 0.0  # always the same: nothing is to be learnt
            continue
        unit[number], change[mine] = size, missed / size
        share, (squared, absolute) = len(mine) ** -RARE / loss(missed).mean(), loss.counts
        heavy[number], light[number] = share * squared * size**2, share * absolute * size
    weight = np.stack([heavy, light], axis=1)[known.target].astype(np.float32)
    weight /= weight.sum(axis=1).mean() or 1.0
    network = _run(options, common(known.brief), read, known, change, weight, seed)
    return network.finished(common, tuple(own), tuple(base), unit)


def _run(
    options: Perceptron,
    brief: Float32[np.ndarray, "prefix input"],
    read: Float32[np.ndarray, "question given"],
    known: Known,
    change: Float32[np.ndarray, "question"],
    weight: Float32[np.ndarray, "question 2"],
    seed: int,
) -> "_Network":
    """Show every question `passes` times, in batches that grow with their number up to a limit."""
    key = jax.random.key(seed)
    network = _Network(brief.shape[1], read.shape[1], len(known.channels), options.width, key)
    shown = options.passes * len(known)
    size = int(np.clip(shown // STEPS, *BATCHES))
    batch = min(1 << size.bit_length() - 1, len(known))  # folds of similar size share a compiled program
    steps = -(-shown // batch)
    done = (np.arange(steps) + 0.5) / steps
    rates = options.rate * np.minimum(done / WARMING, 0.5 + 0.5 * np.cos(np.pi * np.maximum(done - WARMING, 0.0)))
    state, dropout = OPTIMISER.init(eqx.filter(network, eqx.is_array)), np.float32(options.dropout)
    for step, chosen in enumerate(_batches(len(known), batch, steps, np.random.default_rng(seed))):
        arrays = brief[known.place[chosen]], read[chosen], known.target[chosen], change[chosen], weight[chosen]
        each = jax.random.fold_in(key, step)
        network, state = _step(network, state, np.float32(rates[step]), dropout, each, *arrays)
    return network


def _batches(count: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[Int64[np.ndarray, "_"]]:
    """Places of all questions in a random order, again and again."""
    order = rng.permutation(count)
    for _ in range(steps):
        if len(order) < batch:
            order = np.concatenate([order, rng.permutation(count)])
        yield order[:batch]
        order = order[batch:]


class _Network(eqx.Module):
    """A network in training."""

    embedding: Float[Array, "target number"]
    first: Float[Array, "input unit"]
    question: Float[Array, "given unit"]
    film: Float[Array, "number film"]
    shift: Float[Array, "film"]
    second: Float[Array, "unit unit"]
    third: Float[Array, "unit outer"]
    bias: Float[Array, "outer"]
    last: Float[Array, "outer"]

    def __init__(self, common: int, own: int, targets: int, width: int, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, 7)
        outer = width // 2
        sizes = (common, width), (own, width), (width, width), (width, outer)
        self.first, self.question, self.second, self.third = (
            _normal(one, size) * (2 / size[0]) ** 0.5 for one, size in zip(keys, sizes, strict=False)
        )
        self.embedding = 0.3 * _normal(keys[4], (targets, EMBEDDED))
        self.film = 0.3 * (2 / EMBEDDED) ** 0.5 * _normal(keys[5], (EMBEDDED, 4 * width + outer))
        self.shift, self.bias = (jnp.zeros(count, jnp.float32) for count in (4 * width + outer, outer))
        self.last = 0.1 * (2 / outer) ** 0.5 * _normal(keys[6], (outer,))

    def films(self, target: Int[Array, "..."] | Int64[np.ndarray, "..."]) -> Sequence[Float[Array, "... unit"]]:
        """Factors and shifts of the units of two layers, and weights of those of the third."""
        width = self.second.shape[0]
        each = jnp.split(self.embedding[target] @ self.film + self.shift, width * np.arange(1, 5), axis=-1)
        return 1.0 + each[0], each[1], 1.0 + each[2], each[3], (1.0 + each[4]) * self.last

    def __call__(
        self, brief: Float[Array, "question input"], read: Float[Array, "question given"],
        target: Int[Array, "question"], dropout: Float[Array, ""], key: PRNGKeyArray,
    ) -> Float[Array, "question"]:  # fmt: skip
        """Changes in units of their targets."""
        scale, shift, second_scale, second_shift, last = self.films(target)
        keys = jax.random.split(key, 3)
        hidden = (brief @ self.first + read @ self.question) * scale + shift
        hidden = _dropped(jax.nn.silu(hidden), dropout, keys[0])
        inner = jax.nn.silu(hidden @ self.second * second_scale + second_shift)
        hidden = hidden + _dropped(inner, dropout, keys[1])
        outer = _dropped(jax.nn.silu(hidden @ self.third + self.bias), dropout, keys[2])
        return (outer * last).sum(axis=1)

    def finished(
        self, common: Standardised, own: tuple[Standardised, ...], base: tuple[ShrunkLast, ...], unit: np.ndarray
    ) -> ForecastNetwork:
        """The trained network on the host."""
        scale, shift, second_scale, second_shift, last = map(np.asarray, self.films(np.arange(len(unit))))
        first, question, second, third, bias = map(
            np.asarray, (self.first, self.question, self.second, self.third, self.bias)
        )
        return ForecastNetwork(
            common,
            own,
            base,
            unit,
            first,
            question,
            scale,
            shift,
            second,
            second_scale,
            second_shift,
            third,
            bias,
            last,
        )


def _normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    return jax.random.normal(key, shape, jnp.float32)


def _dropped(units: Float[Array, "..."], share: Float[Array, ""], key: PRNGKeyArray) -> Float[Array, "..."]:
    kept = jax.random.uniform(key, units.shape, units.dtype) >= share
    return jnp.where(kept, units / (1.0 - share), 0.0)


@jax.jit
def _step(network, state, rate, dropout, key, brief, read, target, change, weight):
    """One step of the optimiser."""

    def loss(network):
        missed = network(brief, read, target, dropout, key) - change
        return (weight[:, 0] * jnp.square(missed) + weight[:, 1] * jnp.abs(missed)).mean()

    with jax.numpy_dtype_promotion("standard"):  # which Optax relies on
        updates, state = OPTIMISER.update(jax.grad(loss)(network), state, network)
    return jax.tree.map(lambda number, update: number - rate * update, network, updates), state

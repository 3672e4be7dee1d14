"""What the options of an embedding identify, in words (`app:invariances`)."""

WITHOUT_COUNTS = (
    "Without counts, an observation that repeats the last value of its channel leaves no trace: adding or removing "
    "such observations anywhere does not change the path. Since every channel starts from the base point 0, a first "
    "value of 0 is such a repetition."
)
WITHOUT_TIME = (
    "Without time, stamps leave no trace: moving events in time, in the same order and each within its query interval, "
    "does not change any log-signature, nor does the length of a gap or of the horizon. Continuous channels, if there "
    "are any, must be moved in time along with the events."
)
CLIPPED = (
    "Values beyond the limits of their channel's scale are taken to be these limits: how far beyond they are leaves no "
    "trace."
)
NOTHING = (
    "With counts and time nothing is identified at the level of paths: stamps, observed sets, values, continuous "
    "channels and higher-order terms up to the depth can all be read off the realised path."
)


def invariances(*, depth: int, counts: bool, time: bool, clipped: bool = False) -> tuple[str, ...]:
    """Sentences that say which different data an embedding with these options cannot tell apart.

    >>> print(invariances(depth=2, counts=False, time=True)[0][:80])
    Without counts, an observation that repeats the last value of its channel leaves
    """
    kinds = ((WITHOUT_COUNTS, counts), (WITHOUT_TIME, time), (CLIPPED, not clipped))
    dropped = [sentence for sentence, kept in kinds if not kept]
    return (*dropped, _truncation(depth)) if dropped else (f"{NOTHING} {_truncation(depth)}",)


def _truncation(depth: int) -> str:
    levels = "the first level" if depth == 1 else f"the first {depth} levels"
    return (
        f"A log-signature keeps {levels} only, one element for each query interval. Different paths may therefore have "
        "the same log-signatures; a greater depth or shorter intervals tell more of them apart. Higher-order terms of "
        f"degree above {depth} that events carry are left out altogether."
    )

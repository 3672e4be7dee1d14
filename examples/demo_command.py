"""`logcde demo`: the whole library on generated streams, with a picture and a report at the end."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from logcde.errors import ArtefactError

if TYPE_CHECKING:
    from examples.demo import Size


@dataclasses.dataclass(frozen=True)
class Demo:
    """Train on generated asynchronous streams, compare with a model that fills gaps, predict online, and draw it.

    Two waves are observed each at times of its own, one of them sparsely, and predicted at times that have nothing to
    do with these. It takes about two minutes on two cores. Example: logcde demo --out out
    """

    out: Path = Path("out")
    """Folder to write to: demo.png, demo (the trained model with its report), and the two tables it was trained on."""
    quick: bool = False
    """A few series and steps, to see that all is in place; models learn next to nothing."""

    def run(self) -> int:
        """Do it."""
        from logcde.cli.train import check_place

        folder, picture = self.out / "demo", self.out / "demo.png"
        try:
            check_place(folder, overwrite=True)
            self._show(folder, picture)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped before the end, so there is no new report.\n")
            return 130
        except OSError as error:
            raise ArtefactError(
                f"{error.filename or self.out} cannot be written: {error.strerror or error}. Choose another folder "
                "with --out."
            ) from error
        return 0

    def _show(self, folder: Path, picture: Path) -> None:
        from logcde.cli.report import needing_figures, write_report
        from logcde.cli.trained import needing_estimators
        from logcde.plot import figure_of

        with needing_figures():
            figure_of(1, 1)  # Better now than after two minutes.
        with needing_estimators():
            from examples import demo as demo
            from logcde.cli.training import announce

        size: Size = demo.QUICK if self.quick else demo.FULL
        waves = demo.observe(size, folder)
        announce(f"\n1. The streams\n{waves.data.streams.describe()}")
        announce(f"\n2. What their embedding keeps\n{demo.kept(waves)}")
        announce("\n3. A Log-SLiCE, trained by logcde train")
        fitted = demo.learn(waves, size, folder)
        announce("\n4. A model that fills gaps: GRU-D, which holds every value until the next one comes")
        rival = demo.fill(waves, fitted, size)
        announce(demo.comparison(fitted, rival))
        announce(f"\n5. Online, event by event\n{demo.online(fitted)}")
        demo.draw(waves, fitted, rival, picture)
        report = write_report(folder)
        announce(f"\nPicture: {picture}   Report: {report}")

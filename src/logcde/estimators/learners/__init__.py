"""Learners: what an estimator trains, on windows of the observations or on log-signatures."""

from logcde.estimators.learners.abstract import AbstractLearner as AbstractLearner
from logcde.estimators.learners.abstract import Learnt as Learnt
from logcde.estimators.learners.abstract import Task as Task
from logcde.estimators.learners.blend import Auto as Auto
from logcde.estimators.learners.blend import Blend as Blend
from logcde.estimators.learners.boosting import WindowBoosting as WindowBoosting
from logcde.estimators.learners.deep import DeepSLiCE as DeepSLiCE
from logcde.estimators.learners.direct import DirectForecast as DirectForecast
from logcde.estimators.learners.gradients import AbstractGradientLearner as AbstractGradientLearner
from logcde.estimators.learners.networks import AbstractNetwork as AbstractNetwork
from logcde.estimators.learners.networks import LogNCDE as LogNCDE
from logcde.estimators.learners.networks import LogSLiCE as LogSLiCE
from logcde.estimators.learners.perceptron import Perceptron as Perceptron
from logcde.estimators.learners.questions import AbstractForecastLoss as AbstractForecastLoss
from logcde.estimators.learners.questions import BetweenLoss as BetweenLoss
from logcde.estimators.learners.questions import Cuts as Cuts
from logcde.estimators.learners.questions import MeanLoss as MeanLoss
from logcde.estimators.learners.questions import MedianLoss as MedianLoss
from logcde.estimators.learners.questions import Questions as Questions
from logcde.estimators.learners.ridge import WindowRidge as WindowRidge
from logcde.estimators.learners.trees import WindowTrees as WindowTrees

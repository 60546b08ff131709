"""Every setting, once: a dataclass field is the command-line flag, the YAML key and the Python argument.

Nothing here imports anything heavy, so that ``ssdvae --help`` answers at once.
"""

from __future__ import annotations

from ssdvae.config.analysis import (
    LOCAL,
    ExplainSettings,
    ExploreSettings,
    GenerateSettings,
    InferSettings,
    ReportSettings,
)
from ssdvae.config.asking import (
    EmbedSettings,
    FillSettings,
    NextSettings,
    ScoreSettings,
    SimilarSettings,
)
from ssdvae.config.data import (
    SPLITS,
    AnnotateSettings,
    ColumnSettings,
    EngineSettings,
    ExtractSettings,
    PrepareSettings,
    Split,
    StreamSettings,
    cores,
)
from ssdvae.config.evaluation import EvaluateSettings
from ssdvae.config.models import (
    MODEL_SETTINGS,
    ClassifierSettings,
    ExactSettings,
    HAQAESettings,
    LanguageModelSettings,
    ModelSettings,
    RNNLMClassifierSettings,
    RNNLMRoleClassifierSettings,
    RNNLMRoleSettings,
    RNNLMSettings,
    SSDVAESettings,
)
from ssdvae.config.paper import MEASURED_ALIKE, REPRODUCED, TRAINED_ALIKE, ReproduceSettings
from ssdvae.config.presets import PRESETS, Counts, preset
from ssdvae.config.settings import Bounds, Setting, Settings, setting
from ssdvae.config.slots import SLOTS, Slots, slots_of_text
from ssdvae.config.training import EVAL_BATCH, BenchmarkSettings, TrainSettings

__all__ = [
    "EVAL_BATCH",
    "LOCAL",
    "MEASURED_ALIKE",
    "MODEL_SETTINGS",
    "PRESETS",
    "REPRODUCED",
    "SLOTS",
    "SPLITS",
    "TRAINED_ALIKE",
    "AnnotateSettings",
    "BenchmarkSettings",
    "Bounds",
    "ClassifierSettings",
    "ColumnSettings",
    "Counts",
    "EmbedSettings",
    "EngineSettings",
    "EvaluateSettings",
    "ExactSettings",
    "ExplainSettings",
    "ExploreSettings",
    "ExtractSettings",
    "FillSettings",
    "GenerateSettings",
    "HAQAESettings",
    "InferSettings",
    "LanguageModelSettings",
    "ModelSettings",
    "NextSettings",
    "PrepareSettings",
    "RNNLMClassifierSettings",
    "RNNLMRoleClassifierSettings",
    "RNNLMRoleSettings",
    "RNNLMSettings",
    "ReportSettings",
    "ReproduceSettings",
    "SSDVAESettings",
    "ScoreSettings",
    "Setting",
    "Settings",
    "SimilarSettings",
    "Slots",
    "Split",
    "StreamSettings",
    "TrainSettings",
    "cores",
    "preset",
    "setting",
    "slots_of_text",
]

"""Saved models: one directory with `model.json` (readable) and `model.safetensors` (arrays). No pickle."""

from logcde.artefact.files import load as load
from logcde.artefact.files import save as save
from logcde.artefact.registry import register as register

"""Hugging Face's Trainer on the cluster: determined.transformers.DetCallback."""

from determined.transformers._hf_callback import DetCallback

__all__ = ["DetCallback"]

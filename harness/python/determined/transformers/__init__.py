"""Hugging Face's Trainer on the cluster: determined.transformers.DetCallback."""

from determined._absent import needs

with needs("transformers", __name__):
    from determined.transformers._hf_callback import DetCallback

__all__ = ["DetCallback"]

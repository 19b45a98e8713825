"""Hugging Face's Trainer on a cluster: it keeps its loop; reports, checkpoints, the searcher's length and pauses are the cluster's.

searcher: {name: single, metric: eval_loss, max_length: {batches: 100}}
entrypoint: python3 hf_trainer.py
"""
import logging

import determined as det
import torch
from determined.transformers import DetCallback
from transformers import Trainer, TrainingArguments


class Line(torch.nn.Module):
    """Any model of transformers will do: what counts is a loss in what it gives."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)

    def forward(self, x, labels):
        y = self.linear(x).squeeze(-1)
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}


def records(n):
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(n))
    return [{"x": row, "labels": row.sum()} for row in x]


def main():
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info else {}
    args = TrainingArguments(output_dir="out", max_steps=100, logging_steps=10, learning_rate=hparams.get("lr", 0.1), report_to=[])
    with det.core.init() as context:
        callback = DetCallback(context, args)
        trainer = Trainer(model=Line(), args=args, train_dataset=records(512), eval_dataset=records(64), callbacks=[callback])
        trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)


if __name__ == "__main__":
    main()

"""Hugging Face's Trainer (a stand-in of it), which is asked to make room after its third step."""
import logging
import time

import determined as det
from determined.transformers import DetCallback
from transformers import Trainer, TrainerCallback, TrainingArguments


class Hold(TrainerCallback):
    """In the trial's first run: at step 3 until it is asked to make room."""

    def on_step_end(self, args, state, control, **kwargs):
        while state.global_step == 3 and det.get_cluster_info().latest_checkpoint is None and not context.preempt.should_preempt():
            time.sleep(0.02)


logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
with det.core.init() as context:
    args = TrainingArguments("out", max_steps=7, logging_steps=2)
    trainer = Trainer(args=args, callbacks=[Hold(), DetCallback(context, args)])
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)

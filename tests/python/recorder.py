"""A trial and a callback that write down what the loop does with them."""

from determined import pytorch
from support import LineTrial


class Recorder(pytorch.PyTorchCallback):
    """Writes down every hook, with what can be compared."""

    def __init__(self, trace):
        self.trace, self.uuids = trace, []

    def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
        self.trace.append(f"startup {first_batch_idx} {checkpoint_uuid}")

    def on_training_start(self):
        self.trace.append("training_start")

    def on_training_epoch_start(self):
        self.trace.append("epoch_start")

    def on_training_epoch_end(self, epoch_idx):
        self.trace.append(f"epoch_end {epoch_idx}")

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.trace.append(f"workload_end {len(batch_metrics)}")

    def on_validation_start(self):
        self.trace.append("validation_start")

    def on_validation_epoch_start(self):
        self.trace.append("validation_epoch_start")

    def on_validation_epoch_end(self, outputs):
        self.trace.append(f"validation_epoch_end {len(outputs)}")

    def on_validation_end(self, metrics):
        self.trace.append(f"validation_end {sorted(metrics)}")

    def on_checkpoint_save_start(self, checkpoint):
        self.trace.append(f"save_start {list(checkpoint)}")
        checkpoint["mine"] = 1

    def on_checkpoint_load_start(self, checkpoint):
        self.trace.append(f"load_start {checkpoint['mine']}")

    def on_checkpoint_write_end(self, checkpoint_dir):
        self.trace.append("write_end")

    def on_checkpoint_upload_end(self, uuid):
        self.trace.append("upload_end")
        self.uuids.append(uuid)

    def on_trial_shutdown(self):
        self.trace.append("shutdown")

    def state_dict(self):
        return {"hooks": len(self.trace)}

    def load_state_dict(self, state_dict):
        self.trace.append(f"load_state_dict {sorted(state_dict)}")


class RecordingTrial(LineTrial):
    def build_callbacks(self):
        self.trace = []
        self.recorder = Recorder(self.trace)
        return {"recorder": self.recorder}

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.trace.append(f"b{batch_idx} e{epoch_idx}")
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch):
        self.trace.append("v")
        return super().evaluate_batch(batch, 0)

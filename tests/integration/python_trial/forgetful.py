"""The trial under a Trainer that is not told of the checkpoint to go on from."""
import determined as det
from determined import pytorch
from model_def import LineTrial


class Told(pytorch.PyTorchCallback):
    def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
        print(f"starts at {first_batch_idx} from {checkpoint_uuid}; the cluster has {det.get_cluster_info().latest_checkpoint}", flush=True)


class Forgetful(LineTrial):
    def build_callbacks(self):
        return {"told": Told()}


with pytorch.init(hparams=det.get_cluster_info().trial.hparams) as context:
    pytorch.Trainer(Forgetful(context), context).fit(checkpoint_period=pytorch.Batch(4))

"""Mixed precision: one network in float16 with a scaler, one in bfloat16; what draws and what cuDNN chooses is in both."""
import os
import time

import torch
from determined import pytorch

CUDA = torch.cuda.is_available()
HALF = torch.float16 if CUDA else torch.bfloat16  # which a CPU has not
# torch.cuda.amp's is deprecated since 2.4, and the other one is not there before 2.3.
GradScaler = getattr(torch.amp, "GradScaler", None) if hasattr(torch, "amp") else None
GradScaler = GradScaler or torch.cuda.amp.GradScaler
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False


class Patterns(torch.utils.data.Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(5)
        self.images, self.labels = torch.rand(96, 1, 8, 8, generator=g), torch.randint(0, 4, (96,), generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


def network():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(1024, 4))


class MixedTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.scaler = context.wrap_scaler(GradScaler(enabled=CUDA))
        self.half, self.brain = (context.wrap_model(network()) for _ in range(2))
        self.of_half, self.of_brain = (context.wrap_optimizer(torch.optim.Adam(m.parameters(), lr=1e-3)) for m in (self.half, self.brain))

    def build_training_data_loader(self):
        return pytorch.DataLoader(Patterns(), batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Patterns(), batch_size=32)

    def losses(self, batch):
        x, y = batch
        for model, dtype in ((self.half, HALF), (self.brain, torch.bfloat16)):
            with torch.autocast(x.device.type, dtype=dtype):
                out = model(x)
                assert out.dtype == dtype, out.dtype
            yield torch.nn.functional.cross_entropy(out.float(), y)

    def train_batch(self, batch, epoch_idx, batch_idx):
        while os.path.exists(os.path.join(os.environ.get("HOLD", "/nowhere"), str(batch_idx))):
            time.sleep(0.01)
        half, brain = self.losses(batch)
        self.context.backward(self.scaler.scale(half))
        self.context.step_optimizer(self.of_half, scaler=self.scaler)
        self.scaler.update()
        self.context.backward(brain)
        self.context.step_optimizer(self.of_brain)
        if batch_idx == 0:
            print(f"on {batch[0].device}: {HALF} by {self.scaler.get_scale()}, {torch.bfloat16}", flush=True)
        return {"half": half, "brain": brain}

    def evaluate_batch(self, batch):
        half, brain = self.losses(batch)
        return {"error": half + brain}

"""A GAN on MNIST: two models and two optimizers in one trial."""
import torch
from data import mnist
from determined import pytorch
from torch import nn
from torch.nn import functional as F

NOISE = 64


def generator():
    return nn.Sequential(
        nn.Linear(NOISE, 64 * 7 * 7),
        nn.Unflatten(1, (64, 7, 7)),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, 2, padding=1),
        nn.Tanh(),
    )


def discriminator():
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 1),
    )


def judged(verdicts, real):
    """How far the discriminator's verdicts are from calling them all real, or all drawn."""
    return F.binary_cross_entropy_with_logits(verdicts, torch.full_like(verdicts, float(real)))


class GanTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.path = context.get_data_config().get("path")
        self.generator = context.wrap_model(generator())
        self.discriminator = context.wrap_model(discriminator())
        options = {"lr": context.get_hparam("learning_rate"), "betas": (context.get_hparam("beta1"), 0.999)}
        self.draw = context.wrap_optimizer(torch.optim.Adam(self.generator.parameters(), **options))
        self.judge = context.wrap_optimizer(torch.optim.Adam(self.discriminator.parameters(), **options))
        # The same noise at every validation; of a generator of its own, so that training draws as without it.
        self.fixed_noise = torch.randn(256, NOISE, generator=torch.Generator().manual_seed(1))

    def build_training_data_loader(self):
        return pytorch.DataLoader(
            mnist(self.path, training=True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True
        )

    def build_validation_data_loader(self):
        return pytorch.DataLoader(mnist(self.path, training=False), batch_size=500)

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, _ = batch
        drawings = self.generator(torch.randn(len(images), NOISE, device=images.device))

        loss_generator = judged(self.discriminator(drawings), real=True)
        self.context.backward(loss_generator)
        self.context.step_optimizer(self.draw)

        self.judge.zero_grad()  # what the generator's loss left in the discriminator
        loss_real = judged(self.discriminator(images), real=True)
        loss_drawn = judged(self.discriminator(drawings.detach()), real=False)
        loss_discriminator = (loss_real + loss_drawn) / 2
        self.context.backward(loss_discriminator)
        self.context.step_optimizer(self.judge)
        return {"loss_generator": loss_generator, "loss_discriminator": loss_discriminator}

    def evaluate_full_dataset(self, data_loader):
        """The mean squared difference between the mean drawing and the mean image: blind to detail, but it falls."""
        mean_image = torch.cat([images for images, _ in data_loader]).mean(0)
        drawings = self.generator(self.fixed_noise.to(self.context.device)).cpu()
        writer, step = self.context.get_tensorboard_writer(), self.context.current_train_batch() + 1
        writer.add_image("drawings", (torch.cat(list(drawings[:8]), dim=2) + 1) / 2, step)
        writer.add_histogram("pixels", drawings, step)
        return {"mean_image_error": ((drawings.mean(0) - mean_image) ** 2).mean()}

"""What a trial sees of horovod.torch, over torch.distributed."""
import contextlib
import types

import torch
import torch.distributed as dist

Compression = types.SimpleNamespace(none="none", fp16="fp16")
made = []  # the options of each optimizer


def init():
    if not dist.is_initialized():
        dist.init_process_group("gloo")


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


local_rank, local_size = rank, size


def cross_rank():
    return 0


def cross_size():
    return 1


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1):
    class Distributed(type(optimizer)):
        synchronized = False

        def synchronize(self):
            for p in (p for group in self.param_groups for p in group["params"]):
                dist.all_reduce(p.grad)
                p.grad /= size()

        @contextlib.contextmanager
        def skip_synchronize(self):
            self.synchronized = True
            yield
            self.synchronized = False

        def step(self, closure=None):
            assert self.synchronized, "a second synchronize()"
            super().step(closure)

    made.append(([name for name, _ in named_parameters], backward_passes_per_step, compression))
    new = Distributed.__new__(Distributed)
    new.__dict__.update(optimizer.__dict__)
    return new


def broadcast_parameters(state, root_rank):
    for value in state.values():
        dist.broadcast(value, root_rank)


def broadcast_optimizer_state(optimizer, root_rank):
    for state in optimizer.state.values():
        broadcast_parameters({k: v for k, v in state.items() if isinstance(v, torch.Tensor)}, root_rank)

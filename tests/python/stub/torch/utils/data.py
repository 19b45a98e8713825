"""Loaders of one process: a batch is a list of tensors."""
import torch


class Dataset:
    pass


class IterableDataset(Dataset):
    pass


class Sampler:
    pass


class SequentialSampler(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __len__(self):
        return len(self.data_source)

    def __iter__(self):
        return iter(range(len(self.data_source)))


class RandomSampler(SequentialSampler):
    generator = None

    def __iter__(self):  # not the one in order, which the package knows by this function
        return super().__iter__()


class SubsetRandomSampler(RandomSampler):
    pass


class WeightedRandomSampler(RandomSampler):
    pass


class BatchSampler(Sampler):
    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __len__(self):
        return (len(self.sampler) + self.batch_size - 1) // self.batch_size

    def __iter__(self):
        items = list(self.sampler)
        return (items[i:i + self.batch_size] for i in range(0, len(items), self.batch_size))


class dataloader:
    @staticmethod
    def default_collate(records):
        return [torch.Tensor() for _ in records[0]]


class DataLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, **options):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn

    def __iter__(self):
        return (self.collate_fn([self.dataset[i] for i in batch]) for batch in self.batch_sampler)

"""Samplers, loaders and batches."""
import collections
import itertools
import unittest

import numpy as np
import torch
from determined import pytorch
from determined.pytorch import samplers
from determined.pytorch._data import Feed
from determined.pytorch._passes import Passes, resumable
from support import Numbers
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler


def take(iterable, n):
    return list(itertools.islice(iter(iterable), n))


class Samplers(unittest.TestCase):
    def test_check_values(self):
        """The values of the contract."""
        nineteen = SequentialSampler(range(19))
        shards = [list(samplers.DistributedSampler(nineteen, 4, r)) for r in range(4)]
        self.assertEqual(shards, [[0, 4, 8, 12, 16], [1, 5, 9, 13, 17], [2, 6, 10, 14, 18], [3, 7, 11, 15]])
        self.assertEqual([len(samplers.DistributedSampler(nineteen, 4, r)) for r in range(4)], [5, 5, 5, 4])
        batches = BatchSampler(nineteen, 2, drop_last=False)
        self.assertEqual(list(samplers.DistributedBatchSampler(batches, 4, 1)), [[2, 3], [10, 11], [18]])
        shuffle = samplers.ReproducibleShuffleSampler(SequentialSampler(range(5)), 777)
        self.assertEqual([list(shuffle), list(shuffle)], [[0, 4, 1, 2, 3], [2, 0, 1, 3, 4]])
        pairs = BatchSampler(SequentialSampler(range(10)), 2, drop_last=False)
        self.assertEqual(list(samplers.ReproducibleShuffleBatchSampler(pairs, 777)), [[0, 1], [8, 9], [2, 3], [4, 5], [6, 7]])

    def test_dealing_goes_on_across_repeats(self):
        three = BatchSampler(SequentialSampler(range(3)), 1, drop_last=False)
        adapted = pytorch.adapt_batch_sampler(three, repeat=True, skip=1, num_replicas=2, rank=1)
        self.assertEqual(take(adapted, 5), [[0], [2], [1], [0], [2]])
        self.assertEqual(len(adapted), 1)

    def test_wrong_ranks(self):
        batches = BatchSampler(SequentialSampler(range(4)), 1, drop_last=False)
        for workers, rank in ((2, -1), (0, 0), (2, 2)):
            self.assertRaises(ValueError, samplers.DistributedBatchSampler, batches, workers, rank)

    def test_skip_past_the_end(self):
        self.assertEqual(list(samplers.SkipSampler(SequentialSampler(range(3)), 5)), [])


class Loader(unittest.TestCase):
    def test_order_is_torchs(self):
        """With and without a generator of one's own, and however the sampler was given."""
        def three(n, **options):
            return [
                lambda g: pytorch.DataLoader(Numbers(n), shuffle=True, generator=g, **options),
                lambda g: pytorch.DataLoader(Numbers(n), sampler=SubsetRandomSampler(list(range(n)), g), **options),
                lambda g: pytorch.DataLoader(Numbers(n), sampler=WeightedRandomSampler([1.0] * n, n, generator=g), **options),
                lambda g: pytorch.DataLoader(Numbers(n), batch_sampler=BatchSampler(RandomSampler(range(n), True, 50, g), 1, False), **options),
            ]

        for n in (1, 2, 7, 100):
            for make, own in itertools.product(three(n), (False, True)):
                torch.manual_seed(n)
                theirs = make(torch.Generator().manual_seed(3) if own else None).batch_sampler
                theirs = [list(theirs) for _ in range(3)]
                torch.manual_seed(n)
                ours, passes = resumable(make(torch.Generator().manual_seed(3) if own else None).batch_sampler)
                self.assertEqual([list(ours) for _ in range(3)], theirs)
                self.assertIsInstance(passes, Passes)

    def test_one_loader_of_two_feeds(self):
        """A validation with the loader of training leaves training's passes alone: they go into checkpoints."""
        loader = pytorch.DataLoader(Numbers(8), batch_size=2, shuffle=True)
        training, validation = Feed(loader, lambda b: b), Feed(loader, lambda b: b)
        training.start(True, 1, 0, 0)
        next(training._iterator)
        before = training.state_dict()["passes"]
        validation.start(False, 1, 0, 0)
        next(validation._iterator)
        after = training.state_dict()["passes"]
        self.assertTrue(before and before.keys() == after.keys(), (before, after))
        self.assertTrue(all(torch.equal(before[k], after[k]) for k in before))

    def test_samples_without_end(self):
        """A sampler that draws as it goes is not made a list of."""
        endless = BatchSampler(RandomSampler(range(10), True, 10**12), 2, False)
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            batches, passes = resumable(endless)
        self.assertEqual((batches, passes), (endless, None))
        self.assertIn("Make num_samples at most", logs.output[0])
        self.assertEqual(len(take(batches, 3)), 3)

    def test_order_of_an_earlier_version(self):
        """Seeds by pass, as checkpoints once had them, cannot be taken: this is said."""
        feed = Feed(pytorch.DataLoader(Numbers(8), shuffle=True), lambda b: b)
        for seed in (5, torch.get_rng_state()):
            with self.assertLogs("determined.pytorch", "WARNING") as logs:
                feed.load_state_dict({0: seed})
            self.assertIn("of an earlier version", logs.output[0])
        feed.start(True, 1, 0, 3)
        self.assertEqual(feed.next()[0].shape, (1, 1))

    def test_generator_of_a_validation(self):
        """Given to a loader in order: its workers are seeded by it, so that it goes on where it was."""
        def feed():
            return Feed(pytorch.DataLoader(Numbers(8), generator=torch.Generator().manual_seed(3)), lambda b: b)

        first, second = feed(), feed()
        first.start(False, 1, 0, 0)
        second.set_generators(first.generator_states())
        first.start(False, 1, 0, 0)
        second.start(False, 1, 0, 0)
        self.assertTrue(torch.equal(first._loader.generator.get_state(), second._loader.generator.get_state()))

    def test_wrong_arguments(self):
        data = Numbers()
        batches = BatchSampler(SequentialSampler(data), 2, drop_last=False)
        wrong = [
            dict(num_workers=-1), dict(timeout=-1), dict(prefetch_factor=2), dict(persistent_workers=True),
            dict(prefetch_factor=-1, num_workers=1), dict(sampler=SequentialSampler(data), shuffle=True),
            dict(batch_sampler=batches, batch_size=2), dict(batch_sampler=batches, shuffle=True),
            dict(batch_sampler=batches, sampler=SequentialSampler(data)), dict(batch_sampler=batches, drop_last=True),
            dict(batch_size=None), dict(batch_size=None, shuffle=True), dict(batch_size=None, drop_last=True),
        ]
        for options in wrong:
            with self.subTest(options), self.assertRaises(ValueError):
                pytorch.DataLoader(data, **options)

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(())

        self.assertRaises(ValueError, pytorch.DataLoader, Stream())

    def test_plain_iteration(self):
        loader = pytorch.DataLoader(Numbers(5), batch_size=2)
        self.assertEqual(len(loader), 3)
        self.assertEqual([x.flatten().tolist() for x, _ in loader], [[0, 1], [2, 3], [4]])


class Batches(unittest.TestCase):
    def test_length(self):
        self.assertEqual(pytorch.data_length({"a": torch.zeros(3, 2), "b": torch.zeros(1)}), 3)
        self.assertEqual(pytorch.data_length([np.zeros(4), 1]), 4)
        self.assertRaises(ValueError, pytorch.data_length, [])
        self.assertRaises(TypeError, pytorch.data_length, 7)

    def test_to_device(self):
        Pair = collections.namedtuple("Pair", "x y")
        warned = set()
        data = {"a": np.arange(3), "b": [torch.zeros(1), (np.array(["s"]), "text")], "c": Pair(torch.ones(1), 2)}
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            moved = pytorch.to_device(data, "cpu", warned)
            pytorch.to_device(data, "cpu", warned)
        self.assertIsInstance(moved["a"], torch.Tensor)
        self.assertIs(type(moved["c"]), tuple)
        self.assertEqual(moved["b"][1][1], "text")
        self.assertEqual(len(logs.output), 3, "each type once")
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            pytorch.to_device(["a", "b", {"c": "d"}], "cpu")
        self.assertEqual(len(logs.output), 1, "without a set too: once a call")


if __name__ == "__main__":
    unittest.main()

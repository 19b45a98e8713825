"""Several processes: collectives, data parallelism, the same metrics everywhere."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from ports import free_port  # noqa: E402

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank.py")


def run_ranks(what, size=2, hosts=1, script=RANK):
    """Starts rank.py once for each rank, as a launcher does; what each printed as JSON."""
    ports, local = [str(free_port()) for _ in range(3)], size // hosts
    with tempfile.TemporaryDirectory() as top:
        processes = []
        for rank in range(size):
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank % local), "LOCAL_WORLD_SIZE": str(local),
                   "GROUP_RANK": str(rank // local), "GROUP_WORLD_SIZE": str(hosts), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": ports[0],
                   "INTER_TRAIN_PROCESS_COMM_PORT_1": ports[1], "INTER_TRAIN_PROCESS_COMM_PORT_2": ports[2], "DET_CHIEF_IP": "127.0.0.1",
                   "XDG_DATA_HOME": top, "OMP_NUM_THREADS": "1", "USE_LIBUV": "0"}  # Debian 13's torch has none
            processes.append(subprocess.Popen([sys.executable, script, what], env=env, cwd=top, stdout=subprocess.PIPE, text=True))
        outputs = [p.communicate(timeout=500)[0] for p in processes]
    assert all(p.returncode == 0 for p in processes), (what, [p.returncode for p in processes], outputs)
    return [json.loads(o.splitlines()[-1]) for o in outputs]


class Ranks(unittest.TestCase):
    def test_collectives(self):
        a, b = run_ranks("collectives")
        self.assertEqual(a, {"gather": [0, 1], "allgather": [[0, 0], [1, 1]], "broadcast": "of 0", "gather_local": [0, 1], "allgather_local": [0, 1],
                             "broadcast_local": "local of 0", "agents": 1})
        self.assertEqual((b["gather"], b["gather_local"], b["broadcast"], b["broadcast_local"]), (None, None, "of 0", "local of 0"))

    def test_two_hosts(self):
        """Local collectives meet on each host alone."""
        out = run_ranks("collectives", size=4, hosts=2)
        self.assertEqual([o["allgather_local"] for o in out], [[0, 1], [0, 1], [2, 3], [2, 3]])
        self.assertEqual([o["broadcast_local"] for o in out], ["local of 0", "local of 0", "local of 2", "local of 2"])
        self.assertEqual(out[3]["agents"], 2)

    def test_training(self):
        """Ranks end with equal weights and metrics; reducers see every record once; sharded as one process would read."""
        a, b = run_ranks("training")
        self.assertEqual(a["weights"], b["weights"])
        self.assertEqual(a["metrics"], b["metrics"])
        self.assertEqual(a["validation"], b["validation"])
        self.assertEqual(sorted(sum(a["seen"] + b["seen"], [])), sorted(float(i) for i in list(range(12)) * 2))
        self.assertEqual(a["count"], 24)

    def test_resumed_between_updates(self):
        """What each rank had summed up since the last update is in the checkpoint, and is again that rank's."""
        for out in run_ranks("resumed"):
            self.assertEqual(out["resumed"], out["whole"])

    def test_frozen_after_wrapping(self):
        """Of which torch says nothing, or something else: rank 0 says it once for each change."""
        said, silent = run_ranks("freezes")
        self.assertEqual(len(said), 3, said)
        self.assertIn("requires_grad was set for 0.bias and 1 other parameters after context.wrap_model()", said[0])
        self.assertIn("1.bias and 1 other parameters were frozen after context.wrap_model()", said[2])
        self.assertIn("requires_grad was set for bias and 1 other parameters", said[1])
        self.assertEqual(silent, [])

    def test_no_room_for_gradients(self):
        """A rank whose temporary files fail is heard of by all, at rank 0 by name, and the checkpoint goes without."""
        a, b = run_ranks("no_room")
        self.assertEqual(([n for n, _ in a], [n for n, _ in b]), ([0, 0, 0, 0, 2], [0] * 5))
        for (_, said), rank, text in zip(a, (0, 1, 0, 1), ("No such file", "No such file", "", "")):
            self.assertEqual(len(said), 1, a)
            self.assertRegex(said[0], f"of rank {rank}: .*{text}.*temporary files in /.*set TMPDIR")
        self.assertEqual([len(said) for _, said in b], [0, 1, 0, 1, 0])

    def test_ranks_seeded_apart(self):
        """Random numbers that differ between ranks go on on each of them, in its workers too."""
        a, b = run_ranks("own_seeds")
        self.assertEqual([a["resumed"], b["resumed"]], [a["whole"], b["whole"]])
        self.assertNotEqual(a["whole"][1], b["whole"][1])

    def test_sums_of_many_ranks(self):
        """Where more than two ranks add, the order counts: the first batch after a resume has that of all others."""
        for out in run_ranks("wide", size=4):
            self.assertEqual(out["resumed"], out["whole"])
        for out in run_ranks("mixture", size=3):
            self.assertEqual(out, {"free": [[None] * 6, [], True], "watched": [[None] * 6, [True], True]})

    def test_draws(self):
        """Ranks whose generators go apart deal out one order: each of 14 batches' four passes has every record once."""
        (a, a2), (b, b2) = run_ranks("draws")
        whole = [batch for pair in zip(a, b) for batch in pair]
        for number in range(4):
            rows = [x for batch in whole[7 * number : 7 * number + 7] for x in batch]
            self.assertEqual(sorted(rows), list(range(13)))
        self.assertEqual([a2, b2], [a[4:], b[4:]])

    def test_buffers(self):
        """No rank waits for another's forward pass in a validation; all have rank 0's running statistics there."""
        a, b = run_ranks("buffers")
        self.assertEqual(a, b)
        self.assertEqual([len(set(statistics)) for statistics in a], [5, 5])

    def test_horovod(self):
        """Where Horovod started the ranks it averages gradients: to the same weights as DistributedDataParallel."""
        for out in run_ranks("horovod"):
            self.assertEqual(out["weights"], out["wanted"])
            self.assertEqual(out["made"], [[["0.weight", "0.bias"], 2, "none"]])

    def test_invalid_hp(self):
        """Found by another rank than the chief: the chief, which waits for gradients, saves what there is; both exit 0."""
        self.assertEqual(run_ranks("refuses"), [{"code": 0, "steps": [3]}, {"code": 0, "steps": None}])

    def test_sharded_checkpoint(self):
        a, b = run_ranks("sharded")
        self.assertEqual(a, b)
        self.assertEqual(a, {"files": ["both", "metadata.json", "rank_0", "rank_1"], "metadata": {"steps_completed": 1, "of": {"0": 0, "1": 1}},
                             "conflict": "refusing to upload with files conflicts"})


if __name__ == "__main__":
    unittest.main()

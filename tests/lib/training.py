"""A trial that trains through a fault, and what must be true of it afterwards.

    t = Training(c, row)       # returns when it trains
    ... faults ...
    t.end()                    # trained on through them; checks, kills it, checks its rows
"""
import paced
from cluster import wait_until

EVERY = 15  # batches between two training rows


class Training:
    def __init__(self, c, row, epochs=4000):
        self.c, self.row = c, row
        self.exp = paced.create(c, "examples/digits/const.yaml", 5 if row.all else 0,
                                **{"epochs: 12": f"epochs: {epochs}", "scheduling_unit: 45": f"scheduling_unit: {EVERY}", "epochs: 2\n": "epochs: 50\n"})
        wait_until(lambda: self.steps() > 0, 90, "the trial to train")
        self.ranks = sorted(c.processes(self.exp))

    def trial(self):
        return self.c.trials(self.exp)[0]

    def steps(self):
        trials = self.c.trials(self.exp)
        return trials[0]["totalBatchesProcessed"] if trials else 0

    def same(self):
        """The same processes as at the start."""
        return sorted(self.c.processes(self.exp)) == self.ranks

    def goes_on(self, seconds=90):
        at = self.steps()
        wait_until(lambda: self.steps() > at, seconds, "the trial's reports to go on")

    def end(self, restarts=0, replaced=False):
        self.goes_on()
        t = self.trial()
        if not self.row.check(t["restarts"] == restarts, f"{t['restarts']} restarts, not {restarts}"):
            print(self.c.logs(t["id"])[-3000:], flush=True)
        self.row.check(t["state"] == "STATE_RUNNING", f"the trial is {t['state']}")
        self.row.check(replaced or self.same(), "the trial's processes were replaced")
        self.c.api_patiently("POST", f"/experiments/{self.exp}/kill")
        self.c.wait(self.exp, "STATE_CANCELED")
        at = [s for s, _ in self.c.metrics(t["id"])]
        self.row.check(at == list(range(EVERY, EVERY * len(at) + 1, EVERY)), f"training rows are missing or double: {self.holes(at)}")
        wait_until(lambda: not self.c.processes(self.exp), 20, "the trial's processes to be gone")
        wait_until(self.c.slots_free, 20, "free slots")

    @staticmethod
    def holes(at):
        return [(a, b) for a, b in zip(at, at[1:]) if b != a + EVERY][:10]

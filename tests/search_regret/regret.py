#!/usr/bin/env python3
"""Regret of our halving searchers beside Optuna's pruners, on the same learning curves.

    regret.py DRIVER [--first SEED] [--seeds N] [--correlation R...] [--rates] [--searcher NAME...]

A search returns the hyperparameters of the best metric it saw. Its regret is their noise-free loss at max_length less
the least that the space allows. What is compared, and why so:

Curves. There are two families. In that of the option --correlation trial i of a problem has the loss final + slope * g(n) + noise after n units. `final` is a quadratic bowl over
three uniform hyperparameters, its least, 0, inside the space. g is the power law n^-1/2, scaled to 1 at one unit and 0
at max_length, so `final` is the loss at max_length. `slope` is uniform and independent of `final`: early ranks mislead
because trials differ in how far they still have to fall. Its spread follows from one number, the correlation of the
losses at the first rung with the final ones. With 0.6 there, g makes it 0.87 at the second rung and 0.98 at the third;
the rank correlations that the curves really have are printed. The noise is a hundredth; the final losses spread over
about ten times as much.

In that of the option --rates curves cross for the reasons for which they do in practice. The first hyperparameter is the
logarithm of a learning rate: half of the way from 1 down to the bowl takes 4^(4 (1 - x)) units, so 1 to 256, and the
rest a power law, 1 / (1 + n / half). A third of the trials learn nothing at first, for 1 to 32 units (uniform in the
logarithm). The noise shrinks as 0.05 / sqrt(n). The best rate is in the middle of the space: the fastest trials of the
first rung are not the best of the last one. These numbers were set before anything was run on them.

Fairness. Both sides start the same trials: the i-th that either creates is point i of the problem, so they differ only
in which trials go on. Both have the rungs 4, 16, 64 and 256, the divisor 4 and 16 workers (our default), in virtual
time in which a unit of training takes a unit of time. Lengths are absolute: a trial goes on from where it stands and is
charged the difference. Ours runs to its end, 256 trials; Optuna starts as many trials as it likes until it was charged
as many units as ours, and what it had started by then still counts. So Optuna never has less.

What differs. Optuna decides when a trial arrives in a rung, and lets the first ones pass for want of others to compare;
ours waits until a rung holds enough, and may promote a trial later. stop_once decides as Optuna does. adaptive_asha
divides its trials over brackets of fewer rungs, a hedge against curves whose early ranks are worth nothing: only
its mode aggressive does the same as SuccessiveHalvingPruner, and the pruner that hedges as well is HyperbandPruner. With
--rates the exit status holds every searcher against SuccessiveHalvingPruner, with --correlation against the pruner that
does the same; the other ratio is printed too.
"""
import argparse
import ctypes
import heapq
import json
import sys
import warnings

import numpy

RUNGS, DIVISOR, WORKERS, MAX_TRIALS, POINTS = (4, 16, 64, 256), 4, 16, 256, 4096
MAX_LENGTH = RUNGS[-1]
NOISE = 0.01


def power_law(n):
    return (n ** -0.5 - MAX_LENGTH ** -0.5) / (1 - MAX_LENGTH ** -0.5)


class Curves:
    """loss: the metric at each rung; regret: of each trial's noise-free loss at max_length."""

    def __init__(self, seed):
        self.seed, self.random = seed, numpy.random.RandomState(seed)
        r = self.random
        self.x, self.best, self.weight = r.uniform(0, 1, (POINTS, 3)), r.uniform(0.2, 0.8, 3), r.uniform(0.5, 1, 3)
        self.bowl = (self.x - self.best) ** 2 @ self.weight

    def rank_correlations(self):
        def ranks(v):
            return v.argsort().argsort()
        return [float(numpy.corrcoef(ranks(self.loss[n]), ranks(self.regret))[0, 1]) for n in RUNGS]


class Correlated(Curves):
    def __init__(self, seed, correlation):
        super().__init__(seed)
        self.regret, r = self.bowl, self.random
        spread = self.bowl.std() * (correlation ** -2 - 1) ** 0.5 / power_law(RUNGS[0])
        slope = 1 + r.uniform(0, 12 ** 0.5 * spread, POINTS)
        self.loss = {n: self.bowl + slope * power_law(n) + r.normal(0, NOISE, POINTS) for n in RUNGS}


class Rates(Curves):
    def __init__(self, seed):
        super().__init__(seed)
        r = self.random
        late = numpy.where(r.uniform(0, 1, POINTS) < 1 / 3, 2 ** r.uniform(0, 5, POINTS), 0)
        self.loss = {n: self.bowl + self.way(self.x[:, 0], n - late) + r.normal(0, 0.05 / n ** 0.5, POINTS) for n in RUNGS}
        grid = numpy.linspace(0, 1, 10001)
        least = ((grid - self.best[0]) ** 2 * self.weight[0] + self.way(grid, MAX_LENGTH)).min()
        self.regret = self.bowl + self.way(self.x[:, 0], MAX_LENGTH - late) - least

    @staticmethod
    def way(rate, n):
        """What is left of it after n units."""
        return 1 / (1 + numpy.maximum(n, 0) / 4 ** (4 * (1 - rate)))


class Workers:
    """The pieces of training in virtual time. Each is charged when it starts and ends when it has been trained."""

    def __init__(self, problem):
        self.problem, self.now, self.running, self.spent, self.log = problem, 0, [], 0, []

    def train(self, point, start, end, what):
        self.log.append((self.spent, float(self.problem.loss[end][point]), point))
        self.spent += end - start
        heapq.heappush(self.running, (self.now + end - start, len(self.log), point, end, what))

    def ended(self):
        self.now, _, point, length, what = heapq.heappop(self.running)
        return float(self.problem.loss[length][point]), length, what

    def regret(self, budget):
        """Of the best metric among the pieces that started within the budget."""
        _, point = min((metric, point) for before, metric, point in self.log if before < budget)
        return float(self.problem.regret[point])


class Driver:
    """The C searchers: drive.c."""

    def __init__(self, path):
        lib = ctypes.CDLL(path)
        self.open, self.tell, self.close = lib.drive_open, lib.drive_tell, lib.drive_close
        self.open.argtypes, self.open.restype = [ctypes.c_char_p], ctypes.c_void_p
        self.tell.argtypes, self.tell.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_char_p
        self.close.argtypes, self.close.restype = [ctypes.c_void_p], None


def ours(driver, problem, searcher):
    config = {"searcher": {"metric": "loss", "max_concurrent_trials": WORKERS, "max_trials": MAX_TRIALS,
                           "divisor": DIVISOR, "max_length": {"batches": MAX_LENGTH}, **searcher},
              "hyperparameters": {}, "reproducibility": {"experiment_seed": problem.seed}}
    search = driver.open(json.dumps(config).encode())
    w, points, trained = Workers(problem), {}, {}

    def tell(event):
        return [line.split() for line in driver.tell(search, event.encode()).decode().splitlines()]

    ops = tell("initial")
    while True:
        for op in ops:  # grows while it is read
            if op[0] == "create":
                points[op[1]], trained[op[1]] = len(points), 0
            elif op[0] == "validate":
                w.train(points[op[1]], trained[op[1]], int(op[2]), op[1])
                trained[op[1]] = int(op[2])
            elif op[0] == "close":
                ops += tell(f"closed {op[1]}")
        if not w.running:
            break
        metric, length, name = w.ended()
        ops = tell(f"validated {name} {length} {metric!r}")
    assert ops[-1][0] == "shutdown" and len(points) == MAX_TRIALS, (ops, len(points))
    driver.close(search)
    return w


def optunas(problem, pruner, budget):
    """Until all that starts within the budget has ended."""
    import optuna
    study = optuna.create_study(study_name=str(problem.seed), pruner=pruner,
                                sampler=optuna.samplers.RandomSampler(seed=problem.seed))
    w = Workers(problem)

    def start():
        trial = study.ask()
        w.train(trial.number, 0, RUNGS[0], trial)

    for _ in range(WORKERS):
        start()
    while w.running:
        metric, length, trial = w.ended()
        trial.report(metric, length)
        go_on = length < MAX_LENGTH and not trial.should_prune()
        if not go_on:
            study.tell(trial, metric if length == MAX_LENGTH else None,
                       optuna.trial.TrialState.COMPLETE if length == MAX_LENGTH else optuna.trial.TrialState.PRUNED)
        if w.spent >= budget:
            continue
        if go_on:
            w.train(trial.number, length, length * DIVISOR, trial)
        else:
            start()
    return w


HALVING, HYPERBAND = 0, 1
SEARCHERS = {  # and the pruner of Optuna's that does the same
    "asha": (HALVING, {"name": "async_halving", "num_rungs": len(RUNGS)}),
    "stop_once": (HALVING, {"name": "async_halving", "num_rungs": len(RUNGS), "stop_once": True}),
    "aggressive": (HALVING, {"name": "adaptive_asha", "max_rungs": len(RUNGS), "mode": "aggressive"}),
    "standard": (HYPERBAND, {"name": "adaptive_asha", "max_rungs": len(RUNGS), "mode": "standard"}),
    "conservative": (HYPERBAND, {"name": "adaptive_asha", "max_rungs": len(RUNGS), "mode": "conservative"}),
}


def pruners():
    import optuna
    same = {"min_resource": RUNGS[0], "reduction_factor": DIVISOR}
    return {"SuccessiveHalving": optuna.pruners.SuccessiveHalvingPruner(**same),
            "Hyperband": optuna.pruners.HyperbandPruner(max_resource=MAX_LENGTH, **same)}


def show(name, results):
    """results: a row for each seed of units, our regret and each peer's. Each ratio is above 1 where ours is better."""
    rows = numpy.array(results)
    units, mine, *peers = numpy.median(rows, axis=0)
    print(f"  {name:12} {units:6.0f} units  median regret {mine:.5f}")
    for i, (peer, regret) in enumerate(zip(pruners(), peers), 2):
        better, worse = (rows[:, 1] < rows[:, i]).sum(), (rows[:, 1] > rows[:, i]).sum()
        print(f"    {peer:17} {regret:.5f}  ratio {regret / mine:.2f}  seeds in which ours is better {better}, "
              f"equal {len(rows) - better - worse}, worse {worse}", flush=True)
    return [regret / mine for regret in peers]


def compare(o, family, curves, only_halving):
    """How many searchers' median regret is above their peer's."""
    driver = Driver(o.driver)
    results, seen = {name: [] for name in o.searcher}, []
    for seed in range(o.first, o.first + o.seeds):
        problem = curves(seed)
        seen.append(problem.rank_correlations())
        runs = {name: ours(driver, problem, SEARCHERS[name][1]) for name in o.searcher}
        most = max(w.spent for w in runs.values())
        peers = [optunas(problem, pruner, most) for pruner in pruners().values()]
        for name, w in runs.items():
            results[name].append([w.spent, w.regret(w.spent)] + [p.regret(w.spent) for p in peers])
    print(f"{family}: median rank correlations {numpy.median(seen, axis=0).round(2)}, {o.seeds} seeds")
    return sum(show(name, r)[HALVING if only_halving else SEARCHERS[name][0]] < 1 for name, r in results.items())


def main():
    a = argparse.ArgumentParser()
    a.add_argument("driver")
    a.add_argument("--first", type=int, default=0)
    a.add_argument("--seeds", type=int, default=200)
    a.add_argument("--correlation", type=float, nargs="*", default=[0.3, 0.6, 0.9])
    a.add_argument("--rates", action="store_true")
    a.add_argument("--searcher", nargs="+", choices=SEARCHERS, default=list(SEARCHERS))
    o = a.parse_args()
    warnings.simplefilter("ignore")
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    families = [(f"correlation {c}", lambda seed, c=c: Correlated(seed, c), False) for c in o.correlation]
    families += [("rates", Rates, True)] if o.rates else []
    above = sum(compare(o, *family) for family in families)
    sys.exit(f"{above} medians are above those of the pruner they are held against" if above else 0)


if __name__ == "__main__":
    main()

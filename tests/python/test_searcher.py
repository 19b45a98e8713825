"""determined.searcher against a simulated master: every event once, the same operations after a crash, whatever it struck."""
import contextlib
import http.client
import io
import json
import os
import pathlib
import random
import tempfile
import types
import unittest
import uuid
from unittest import mock

from determined import searcher
from determined.experimental import client
from determined.searcher import Close, Create, ExitedReason, Progress, Shutdown, ValidateAfter


class Random(searcher.SearchMethod):
    """`n` trials, two at once, each validated at 5 and at 10."""

    def __init__(self, n=5):
        self.n, self.begun, self.heard = n, 0, []

    def create(self):
        self.begun += 1
        return Create(uuid.uuid4(), {"lr": random.random()}, None)

    def initial_operations(self, state):
        return [self.create(), self.create()]

    def on_trial_created(self, state, request_id):
        return [ValidateAfter(request_id, 5)]

    def on_validation_completed(self, state, request_id, metric, train_length):
        self.heard.append(metric)
        return [ValidateAfter(request_id, 10)] if train_length == 5 else [Close(request_id)]

    def next(self, state):
        if len(state.trials_closed) + len(state.failures) >= self.n:
            return [Shutdown()]
        return [self.create()] if self.begun < self.n else []

    def on_trial_closed(self, state, request_id):
        return self.next(state)

    def on_trial_exited_early(self, state, request_id, exited_reason):
        return self.next(state)

    def progress(self, state):
        return len(state.trials_closed) / self.n

    def save_method_state(self, path):
        (path / "mine").write_text(json.dumps([self.begun, self.heard]))

    def load_method_state(self, path):
        self.begun, self.heard = json.loads((path / "mine").read_text())


class Simulated:
    """The master's side of one experiment: events wait until they are answered; trials train at once."""

    def __init__(self, fails=()):
        self.events, self.next_id, self.created, self.state, self.posts, self.progress = [], 1, [], "ACTIVE", [], []
        self.fails = set(fails)
        self.push({"initialOperations": {}})

    def push(self, event):
        self.events.append({"id": self.next_id, **event})
        self.next_id += 1

    def poll(self, path, seconds):
        if self.state != "ACTIVE":
            return {"searcherEvents": [{"id": -1, "experimentInactive": {"experimentState": "STATE_" + self.state}}]}
        return {"searcherEvents": list(self.events)}

    def post(self, path, body):
        event = body["triggeredByEvent"]
        if not self.events or self.events[0]["id"] != event["id"]:
            raise client.APIException(400, f"event {event['id']} does not wait")
        self.events.pop(0)
        self.posts.append(body)
        for op in body["searcherOperations"]:
            (kind, what), = op.items()
            getattr(self, kind)(what)

    def createTrial(self, what):
        json.loads(what["hyperparams"])
        assert what["requestId"] not in self.created, "created twice"
        self.created.append(what["requestId"])
        self.push({"trialCreated": {"requestId": what["requestId"]}})

    def trialOperation(self, what):
        v = what["validateAfter"]
        if len(self.created) in self.fails:
            self.fails.discard(len(self.created))
            return self.push({"trialExitedEarly": {"requestId": v["requestId"], "exitedReason": "EXITED_REASON_UNSPECIFIED"}})
        self.push({"trialProgress": {"requestId": v["requestId"], "partialUnits": float(v["length"])}})
        self.push({"validationCompleted": {"requestId": v["requestId"], "metric": {"loss": 0.5}, "validateAfterLength": v["length"]}})

    def closeTrial(self, what):
        self.push({"trialClosed": {"requestId": what["requestId"]}})

    def setSearcherProgress(self, what):
        self.progress.append(what["progress"])

    def shutDown(self, what):
        self.state = "ERROR" if what["failure"] else "COMPLETED"


class Crash(BaseException):
    """As kill -9 would end the runner."""


class Local(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.addCleanup(self.top.cleanup)
        self.where = pathlib.Path(self.top.name)
        self.submitted, self.activated = [], []

    def runner(self, method, master):
        """One whose experiment is the simulated master's, at the number 7."""
        experiment = types.SimpleNamespace(activate=lambda: self.activated.append(7), id=7, config={"searcher": {"name": "custom"}}, kill=lambda: None)
        current = types.SimpleNamespace(_master=master, _submit=lambda *args, **options: self.submitted.append(options) or experiment)
        for name, stub in (("_current", lambda: current), ("get_experiment", lambda _: experiment)):
            patch = mock.patch.object(client, name, stub)
            patch.start()
            self.addCleanup(patch.stop)
        return searcher.LocalSearchRunner(method, self.where)

    def test_whole(self):
        master, method = Simulated(), Random()
        runner = self.runner(method, master)
        self.assertEqual(runner.run({}), 7)
        state = runner.state
        self.assertEqual((len(master.created), len(state.trials_created), len(state.trials_closed)), (5, 5, 5))
        self.assertTrue(state.experiment_completed and not state.experiment_failed)
        self.assertEqual((method.progress(state), master.progress[-1], method.heard), (1.0, 1.0, [{"loss": 0.5}] * 10))
        self.assertEqual([p["triggeredByEvent"]["id"] for p in master.posts], list(range(1, len(master.posts) + 1)))
        self.assertEqual(set(state.trial_progress.values()), {10.0})
        self.assertEqual((self.submitted, self.activated), ([{"activate": False}], [7]))
        self.assertEqual(len(list(self.where.glob("exp_7/event_*/"))), 1, "old states are removed")

    def crash_at(self, n):
        """The n-th of all calls that a runner makes ends it, before or after it was done; then a new one goes on."""
        master, left = Simulated(), [n]

        def struck(call):
            def wrapped(*args, **options):
                left[0] -= 1
                if left[0] == 0:
                    raise Crash()
                result = call(*args, **options)
                left[0] -= 1
                if left[0] == 0:
                    raise Crash()
                return result
            return wrapped

        runner = self.runner(Random(), master)
        for name in ("save_state", "post_operations", "_get_operations"):
            setattr(runner, name, struck(getattr(runner, name)))
        try:
            runner.run({})
            return False
        except Crash:
            pass
        again = self.runner(Random(), master)
        again.run({})
        self.assertEqual((len(master.created), len(again.state.trials_closed), again.state.experiment_completed), (5, 5, True), n)
        self.assertEqual(again.search_method.begun, 5, n)
        self.assertEqual(len(self.submitted), 1)
        return True

    def test_crashes(self):
        n, struck = 3, True  # the first two: before the experiment's number is written
        while struck:
            with tempfile.TemporaryDirectory() as where:
                self.where = pathlib.Path(where)
                self.submitted.clear()
                struck = self.crash_at(n)
            n += 5  # of the six places that each event has, another one at each
        self.assertGreater(n, 100)

    def test_resubmitted(self):
        master = Simulated()
        runner = self.runner(Random(), master)
        runner.post_operations = mock.Mock(side_effect=Crash)
        with self.assertRaises(Crash):
            runner.run({})
        with self.assertLogs("determined.searcher", "INFO") as log:
            self.runner(Random(), master).run({})
        self.assertEqual("".join(log.output).count("Resubmitting operations for event.id=1"), 1)
        self.assertIn("Resuming HP searcher for experiment 7", "".join(log.output))

    def test_master_away(self):
        """Asked again; what was posted, and whose answer was lost, is not posted twice."""
        master = Simulated()
        real, lost = master.post, [3, 9]

        def post(path, body):
            real(path, body)
            if len(master.posts) in lost:
                lost.remove(len(master.posts))
                raise ConnectionResetError("gone")

        master.post = post
        with mock.patch("time.sleep"), self.assertLogs("determined.searcher", "WARNING") as log:
            runner = self.runner(Random(), master)
            runner.run({})
        self.assertEqual((len(master.created), len(log.output), lost), (5, 2, []))
        master.poll = mock.Mock(side_effect=client.APIException(403, "no"))
        with self.assertRaisesRegex(client.APIException, "no"):
            runner.run({})

    def test_master_hangs(self):
        """No answer at all, or part of one: as if it were away. Before Python 3.10 socket.timeout was no TimeoutError."""

        class OlderTimeout(OSError):
            pass

        with mock.patch.dict(os.environ, DET_USER_TOKEN="token"):
            hanging = client.Determined("http://master:1")._master
        for timeout in (TimeoutError, OlderTimeout):
            for failure in (timeout("timed out"), http.client.IncompleteRead(b"{")):
                with self.subTest(repr(failure)), mock.patch("socket.timeout", timeout), mock.patch("time.sleep"), \
                        mock.patch("urllib.request.urlopen", side_effect=failure):
                    if isinstance(failure, timeout):
                        self.assertIsNone(hanging.poll("/", 1))
                    master = Simulated()
                    real, lost = master.post, [2]

                    def post(path, body):
                        real(path, body)
                        if lost and len(master.posts) == lost[0]:
                            lost.pop()
                            hanging.post(path, body)

                    master.post = post
                    with tempfile.TemporaryDirectory() as where, self.assertLogs("determined.searcher", "WARNING") as log:
                        self.where = pathlib.Path(where)
                        self.runner(Random(), master).run({})
                    self.assertEqual((len(master.created), len(log.output)), (5, 1))

    def test_pause(self):
        master = Simulated()
        polls = iter(["PAUSED", "PAUSED", "ACTIVE"])
        real = master.poll

        def poll(path, seconds):
            master.state = next(polls, master.state)
            return real(path, seconds)

        master.poll = poll
        with mock.patch("time.sleep"), self.assertLogs("determined.searcher", "WARNING") as log:
            runner = self.runner(Random(), master)
            runner.run({})
        self.assertEqual([line.count("Experiment 7 has been paused") for line in log.output], [1])
        self.assertTrue(runner.state.experiment_completed)

    def test_failures(self):
        runner = self.runner(Random(), Simulated(fails=[2]))
        runner.run({})
        self.assertEqual((len(runner.state.failures), len(runner.state.trials_closed)), (1, 4))
        for text, reason in (("INVALID_HP", ExitedReason.INVALID_HP), ("USER_REQUESTED_STOP", ExitedReason.USER_CANCELED),
                             ("USER_CANCELED", ExitedReason.USER_CANCELED), ("UNSPECIFIED", ExitedReason.ERRORED)):
            self.assertEqual(ExitedReason._of("EXITED_REASON_" + text), reason)
        with self.assertRaisesRegex(RuntimeError, "Invalid exited reason: X"):
            ExitedReason._of("X")

    def test_wrong_methods(self):
        class Silent(Random):
            def on_trial_created(self, state, request_id):
                pass

        with self.assertRaisesRegex(TypeError, r"Silent.on_trial_created\(\) must return a list of operations, not None"):
            self.runner(Silent(), Simulated()).run({})
        with self.assertRaisesRegex(NotImplementedError, r"SearchMethod has no progress\(\)"):
            searcher.SearchMethod().progress(None)
        with self.assertRaisesRegex(ValueError, "source_checkpoint_uuid"):
            Create(uuid.uuid4(), {}, "a checkpoint")
        with self.assertRaisesRegex(RuntimeError, "Unsupported event"):
            self.runner(Random(), Simulated())._get_operations({"id": 3, "news": {}})
        with self.assertRaisesRegex(RuntimeError, "invalid without a metric"):
            event = {"id": 3, "validationCompleted": {"requestId": str(uuid.uuid4()), "validateAfterLength": "3"}}
            self.runner(Random(), Simulated())._get_operations(event)

    def test_not_custom(self):
        self.runner(Random(), Simulated())
        client._current()._submit = lambda *args, **options: types.SimpleNamespace(id=1, config={"searcher": {"name": "single"}}, kill=lambda: None)
        with self.assertRaisesRegex(ValueError, "must be custom"):
            searcher.LocalSearchRunner(Random(), self.where).run({})

    def test_interrupted(self):
        runner, said = self.runner(Random(), Simulated()), io.StringIO()
        runner.get_events = mock.Mock(side_effect=KeyboardInterrupt)
        with contextlib.redirect_stdout(said):
            runner.run({})
        self.assertEqual(said.getvalue(), "Runner interrupted\n")

    def test_directory(self):
        (self.where / "file").write_text("")
        with self.assertRaisesRegex(FileExistsError, "already exists and is not a directory"):
            searcher.LocalSearchRunner(Random(), self.where / "file")
        searcher.LocalSearchRunner(Random(), self.where / "a" / "b")
        self.assertTrue((self.where / "a" / "b").is_dir())


class Values(unittest.TestCase):
    def test_wire(self):
        i = uuid.UUID(int=5)
        self.assertEqual([op._to_searcher_operation() for op in (Create(i, {"lr": 1}, None), ValidateAfter(i, 3), Close(i), Close(i, reason="worse than 0.3"), Progress(0.5), Shutdown(failure=True))], [
            {"createTrial": {"hyperparams": '{"lr": 1}', "requestId": str(i)}}, {"trialOperation": {"validateAfter": {"length": "3", "requestId": str(i)}}},
            {"closeTrial": {"requestId": str(i)}}, {"closeTrial": {"requestId": str(i), "reason": "worse than 0.3"}}, {"setSearcherProgress": {"progress": 0.5}}, {"shutDown": {"cancel": False, "failure": True}}])

    def test_state(self):
        state, other = searcher.SearcherState(), searcher.SearcherState()
        self.assertIsNone(state.to_dict()["experimentId"])
        state.trials_created, state.trial_progress, state.last_event_id = {uuid.UUID(int=1)}, {uuid.UUID(int=1): 2.0}, 9
        other.from_dict(json.loads(json.dumps(state.to_dict())))
        self.assertEqual(other, state)
        other.from_dict({})
        self.assertEqual(other, searcher.SearcherState())


if __name__ == "__main__":
    unittest.main()

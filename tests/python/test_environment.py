"""What determined/exec/environment.py decides, and keeps in its cache; test_agent_tasks.py has it make environments."""
import fcntl
import json
import os
import shutil
import tempfile
import unittest
from unittest import mock

from determined.exec import environment as e

PIP_NONE = ["Looking in indexes: http://x/simple\n", "ERROR: Could not find a version that satisfies the requirement nosuch==1 (from versions: none)\n",
            "ERROR: No matching distribution found for nosuch==1\n", "\n", "[notice] A new release of pip is available\n"]
PIP_HASH = ["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, ...\n",
            "    greet==1.0 from http://127.0.0.1/files/greet-1.0-py3-none-any.whl (from -r /x/requirements.txt (line 1)):\n",
            "        Expected sha256 00\n", "             Got        11\n"]
UV_NONE = ["  × No solution found when resolving dependencies:\n",
           "  ╰─▶ Because nosuch was not found in the package registry and you require nosuch, we can conclude that ...\n"]


class Decisions(unittest.TestCase):
    def test_key(self):
        request, python = {"requirements": ["a==1", "b"]}, ["/usr/bin/python3.11", "3.11.2"]
        key = e.key_of(request, python, {"HOME": "/home/x"})
        self.assertRegex(key, e.NAME)
        self.assertEqual(key, e.key_of({**request, "interpreter": "python3", "constraints": None}, python, {}))
        others = [e.key_of({**request, **more}, python, {}) for more in (
            {"requirements": ["b", "a==1"]}, {"index_url": "http://x"}, {"extra_index_urls": ["http://x"]}, {"constraints": ["b<2"]},
            {"system_site_packages": True})] + [e.key_of(request, ["/usr/bin/python3.11", "3.11.3"], {}), e.key_of(request, python, {"PIP_INDEX_URL": "http://x"})]
        self.assertEqual(len({key, *others}), 8)

    def test_reason(self):
        self.assertEqual(e.reason(PIP_NONE), "No matching distribution found for nosuch==1")
        self.assertEqual(e.reason(PIP_HASH), "the hash of greet==1.0 is another")
        self.assertTrue(e.reason(UV_NONE).startswith("Because nosuch was not found in the package registry"))
        self.assertEqual(e.reason(["odd\n", "\n"]), "odd")
        self.assertEqual(e.reason([]), "it said nothing")

    def test_no_connection_is_one_sentence(self):
        retry = "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<x>: Failed to establish a new connection: [Errno {}')': /simple/nosuch/\n"
        found = "ERROR: Could not find a version that satisfies the requirement nosuch==1 (from versions: none)\nERROR: No matching distribution found for nosuch==1\n".splitlines(True)
        for said, request, environ, want in (
                ([retry.format("111] Connection refused")] + found, {"index_url": "http://me:secret@127.0.0.1:9/simple"}, {},
                 "there is no connection to the index http://127.0.0.1:9/simple, where nosuch==1 was looked for: Connection refused"),
                ([retry.format("-2] Name or service not known")] + found, {}, {},
                 "there is no connection to the index, the installer's own, where nosuch==1 was looked for: Name or service not known"),
                (["error: Failed to fetch: `http://h/simple/nosuch/`\n", "  Caused by: error sending request for url (http://h/simple/nosuch/)\n",
                  "  Caused by: tcp connect error: Connection refused (os error 111)\n"], {}, {"UV_INDEX_URL": "http://h/simple"},
                 "there is no connection to the index http://h/simple, where nosuch was looked for: Connection refused"),
                (PIP_NONE, {"index_url": "http://h"}, {}, ""), ([], {}, {}, "")):
            self.assertEqual(e.unreachable(request, said, environ), want)

    def test_whose_fault_it_is(self):
        for lines in (PIP_NONE, PIP_HASH, UV_NONE, [], ["ERROR: Failed building wheel for x\n"], ["error: No space left on device\n"] + 10 * ["more\n"],
                      ["ERROR: 404 Client Error: Not Found for url: http://x/500\n"]):
            self.assertFalse(e.is_hosts(1, lines), lines)
            self.assertTrue(e.is_hosts(-9, lines))  # as where memory is out
        for line in ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "  Caused by: tcp connect error: Connection refused (os error 111)",
                     "WARNING: Retrying (Retry(total=0, ...)) after connection broken by 'NewConnectionError('...: Failed to establish a new connection: [Errno 111] Connection refused')'",
                     "ERROR: HTTP error 503 while getting http://x/y.whl", "  Caused by: HTTP status server error (502 Bad Gateway) for url (http://x)",
                     "socket.gaierror: [Errno -3] Temporary failure in name resolution"):
            self.assertTrue(e.is_hosts(1, [line + "\n", "\n"] + PIP_NONE), line)

    def test_installer(self):
        with tempfile.TemporaryDirectory() as folder:
            uv = os.path.join(folder, "uv")
            with open(uv, "w") as f:
                f.write("#!/bin/sh\n")
            os.chmod(uv, 0o755)
            with mock.patch.dict(os.environ, PATH=folder):
                self.assertEqual(e.installer("/x/python3")[0][:5], [uv, "pip", "install", "--python", "/x/python3"])
                os.unlink(uv)
                with mock.patch.object(e, "has", lambda name: False):
                    self.assertRaisesRegex(e.Failed, "neither uv on PATH nor pip in", e.installer, "/x/python3")

    def test_limit(self):
        self.assertEqual([e.bytes_of_mib(t) for t in ("0", "20480")], [0, 20480 << 20])
        for text in ("", "20G", "-1", "1.5", "1_0", "9" * 13):
            self.assertRaisesRegex(e.Failed, "DET_PYTHON_CACHE_MIB .* a whole number of MiB is wanted", e.bytes_of_mib, text)

    def test_index_arguments(self):
        self.assertEqual(e.index_arguments({}), [])
        self.assertEqual(e.index_arguments({"index_url": "a", "extra_index_urls": ["b", "c"]}),
                         ["--index-url", "a", "--extra-index-url", "b", "--extra-index-url", "c"])


class Folder(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="det-environments-")
        self.addCleanup(shutil.rmtree, self.root)


class Life(Folder):
    """A line in the log keeps a task from being ended as one that stalls: what hangs gets none."""

    def test_an_installer_is_heard_while_it_writes(self):
        new, downloads = os.path.join(self.root, "new"), os.path.join(self.root, "downloads")
        os.mkdir(new)
        writes = {2: os.path.join(new, "a"), 3: os.path.join(downloads, "b")}  # the look at which it has written
        looks, beats = [], []

        class Done:
            def wait(self, seconds):
                beats.append(e.beat_of(new))
                looks.append(len(said.call_args_list))
                path = writes.get(len(looks))
                if path:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w") as f:
                        f.write("x" * 100000)
                    os.utime(new, (1, 1))
                return len(looks) == 8
        with mock.patch.object(e, "say") as said, mock.patch.dict(os.environ, PIP_CACHE_DIR=downloads):
            e.watch(Done(), new)
        self.assertEqual(looks, [0, 0, 1, 2, 2, 2, 2, 2])
        self.assertEqual(beats[4:], [e.beat_of(new)] * 4)
        self.assertGreater(beats[2], 10 ** 9)  # another than the 1 s of above: those who wait see it

    def test_who_waits_is_heard_while_the_maker_lives(self):
        new, tries, words = os.path.join(self.root, "new"), [], []
        does = {2: lambda: os.mkdir(new), 5: lambda: os.utime(new, (1, 1)), 8: lambda: os.rmdir(new)}

        def flock(fd, kind):
            tries.append(kind)
            words.append(len(said.call_args_list))
            does.get(len(tries), int)()
            if len(tries) < 11:
                raise BlockingIOError
        with mock.patch.object(e, "say") as said, mock.patch.object(e, "SILENCE_S", 0), mock.patch.object(e.fcntl, "flock", flock), \
                mock.patch.object(e.time, "sleep"):
            e.take(0, fcntl.LOCK_EX, new)
        self.assertEqual(words, [0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4])

    def test_what_an_installer_prints_is_heard_by_all(self):
        os.utime(self.root, (1, 1))
        with mock.patch.object(e, "say") as said:
            status, lines = e.run(["/bin/sh", "-c", "echo one; echo two >&2; echo $TMPDIR; exit 3"], self.root)
        self.assertEqual(status, 3)
        self.assertEqual(lines, ["one\n", "two\n", self.root + "/tmp\n"])
        self.assertEqual([c[0][0] for c in said.call_args_list], [line.rstrip() for line in lines])
        self.assertGreater(e.beat_of(self.root), 10 ** 9)
        self.assertEqual(os.listdir(self.root), [])


class Cache(Folder):
    def put(self, digit, used, size=10, kind=""):
        key = 32 * digit
        os.mkdir(os.path.join(self.root, kind + key))
        with open(os.path.join(self.root, kind + key, e.ABOUT), "w") as f:
            json.dump({"made_at": "/at", "bytes": size}, f)
        os.close(e.lock_of(self.root, key))
        os.utime(os.path.join(self.root, key + ".lock"), (used, used))
        return key

    def kept(self):
        return {n[:5] if "-" in n else n[0] for n in os.listdir(self.root) if not n.endswith(".lock")}

    def test_the_least_recently_used_goes(self):
        for digit, used in (("a", 30), ("b", 10), ("c", 20)):
            self.put(digit, used)
        e.evict(self.root, 30)
        self.assertEqual(self.kept(), {"a", "b", "c"})
        e.evict(self.root, 20)
        self.assertEqual(self.kept(), {"a", "c"})
        e.evict(self.root, 0)
        self.assertEqual(self.kept(), set())

    def test_one_that_is_damaged_is_used_and_goes(self):
        key, new = self.put("a", 1), os.path.join(self.root, "new-" + 32 * "a")
        self.assertEqual(e.about(self.root, key), ("/at", 10))
        for text in ("", "[]", "7", "{}", '{"made_at": "/at"}', '{"made_at": "/at", "bytes": []}', '{"made_at": "/at", "bytes": Infinity}', '{"made_at": "/at", "bytes": "x"}', "\0"):
            with open(os.path.join(self.root, key, e.ABOUT), "w") as f:
                f.write(text)
            made_at, size = e.about(self.root, key)
            self.assertEqual(made_at, new, text)  # where each is made
        with open(os.path.join(self.root, key, "big"), "w") as f:
            f.write(20000 * "x")
            os.fsync(f.fileno())
        self.assertGreaterEqual(e.entries_of(self.root)[0][2], 20000)
        e.evict(self.root, 10000)
        self.assertEqual(self.kept(), set())

    def test_what_is_used_stays(self):
        key = self.put("a", 1)
        self.put("b", 2)
        fd = e.lock_of(self.root, key)
        fcntl.flock(fd, fcntl.LOCK_SH)
        e.evict(self.root, 0)
        self.assertEqual(self.kept(), {"a"})
        os.close(fd)
        e.evict(self.root, 0)
        self.assertEqual(self.kept(), set())

    def test_what_was_left_goes(self):
        self.put("a", 1)
        self.put("b", 1, kind="new-")
        self.put("c", 1, kind="old-")
        held = self.put("d", 1, kind="new-")  # being made
        fd = e.lock_of(self.root, held)
        fcntl.flock(fd, fcntl.LOCK_EX)
        e.sweep(self.root)
        self.assertEqual(self.kept(), {"a", "new-d"})
        os.close(fd)

    def test_there_is_room_before_one_is_made(self):
        self.put("a", 1)
        at = []
        with mock.patch.object(e, "install", lambda request, new: (at.append(self.kept()), os.mkdir(new))):
            os.close(e.hold({}, self.root, 32 * "b", 5))
        self.assertEqual(at, [set()])
        self.assertEqual(self.kept(), {"b"})

    def test_why_it_could_not_be_made(self):
        for status, lines, kind, why in ((1, PIP_NONE, e.BadList, "No matching distribution"), (-9, PIP_NONE, e.Failed, "signal 9 ended it"),
                                         (1, ["ERROR: Could not install packages: No space left on device\n"], e.Failed, "No space left")):
            with mock.patch.object(e, "run", lambda argv, new: (status, lines)), mock.patch.object(e, "say"), \
                    mock.patch.object(e, "installer", lambda python: (["pip"], "pip")), self.assertRaisesRegex(e.Failed, "^pip could not install.*" + why) as raised:
                e.make({"requirements": ["nosuch"]}, self.root, 32 * "a", 0)
            self.assertIs(type(raised.exception), kind)
            self.assertEqual(self.kept(), set())

    def test_two_evict_at_the_same_moment(self):
        entries = [(1.0, self.put("a", 1), 10), (2.0, self.put("b", 2), 10)]
        os.rename(os.path.join(self.root, 32 * "a"), os.path.join(self.root, "old-" + 32 * "a"))  # by the other, after both had looked
        with mock.patch.object(e, "entries_of", lambda root: entries):
            e.evict(self.root, 10)
        self.assertEqual(self.kept(), {"old-a", "b"})
        self.put("a", 1)  # the name that it is moved to may not be in the way
        e.evict(self.root, 0)
        self.assertEqual(self.kept(), {"old-a"})
        e.sweep(self.root)
        self.assertEqual(self.kept(), set())

    def test_no_start_fails_by_what_cannot_be_removed(self):
        self.put("a", 1)
        with mock.patch.object(e.os, "rename", side_effect=PermissionError(1, "not allowed")), mock.patch.object(e, "say") as said:
            e.tidy(self.root, 0)
        self.assertIn("could not be removed: [Errno 1] not allowed", said.call_args[0][0])
        e.tidy(self.root, 0)
        self.assertEqual(self.kept(), set())

    def test_a_folder_of_others_is_refused(self):
        path = os.path.join(self.root, "python-0")
        self.assertEqual(e.own_folder(path), path)
        self.assertEqual(e.own_folder(path), path)
        os.chmod(path, 0o770)
        self.assertRaisesRegex(e.Failed, "no folder of this user's alone", e.own_folder, path)
        os.rmdir(path)
        os.symlink(self.root, path)
        self.assertRaisesRegex(e.Failed, "no folder of this user's alone", e.own_folder, path)


if __name__ == "__main__":
    unittest.main()

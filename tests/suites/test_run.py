"""Does tests/run tell what did not come to its end?  test_run.py

Its own shell runs, in a folder of its own, with a meson of a few lines and without packages and control groups."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

# One test is right in each suite. DO is done in the suite, or the set-up of the build, that is named by AT.
MESON = r"""#!/bin/sh
read -r _ _ _ _ lane _ </proc/self/stat # its group is the lane's
read -r _ _ _ run _ </proc/$lane/stat
act() {
    [ "$1" = "$AT" ] || return 0
    case $DO in
    killed) kill -9 $$ ;;
    lane) # what it was at comes to nothing, whoever is first to notice
        kill -9 "$lane"
        exit 1 ;;
    unread) echo '{}' >"$log" ;;
    interrupt)
        trap 'kill -INT "$run"; exit 1' TERM # the second, in the midst of the clean-up
        kill -INT "$run"
        while :; do sleep 0.05; done ;;
    esac
}
case $1 in
setup) mkdir -p "$2/meson-logs" "$2/prefix" && : >"$2/build.ninja" && act "$(basename "$2")" ;;
test)
    log=$3/meson-logs/testlog-$5.json
    echo '{"result": "OK"}' >"$log"
    act "$5" ;;
esac
"""
GROUP = """group_make() { :; }; group_share() { :; }; group_enter() { :; }; group_cpu_ms() { :; }
group_left() { :; }; group_end() { :; }
"""
MKTEMP = """#!/bin/sh
case "$DO $*" in "mktemp -p "*/det-tests-??????) exit 1 ;; esac
exec /usr/bin/mktemp "$@"
"""


class Run(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="det-run-")
        self.addCleanup(made.cleanup)
        self.top = made.name
        for folder in "tests/suites", "deploy", "bin", "tmp":
            os.makedirs(os.path.join(self.top, folder))
        for name in "run", "suites/lanes.sh", "suites/suite.sh":
            os.symlink(os.path.join(HERE, "..", name), os.path.join(self.top, "tests", name))
        self.write("tests/suites/group.sh", GROUP)
        self.write("deploy/packages.sh", "install_packages() { :; }\n")
        self.write("bin/meson", MESON)
        self.write("bin/mktemp", MKTEMP)
        self.write("bin/ninja", "#!/bin/sh\n")

    def write(self, path, text):
        with open(os.path.join(self.top, path), "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(f.name, 0o755)

    def run_suites(self, *suites, do="", at="", tmp="tmp"):
        """Its status and what it prints, after which its /tmp is empty."""
        env = {"PATH": f"{self.top}/bin:{os.environ['PATH']}", "TMPDIR": f"{self.top}/{tmp}", "DO": do, "AT": at}
        with subprocess.Popen([f"{self.top}/tests/run", *suites], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as ran:
            try:
                said = ran.communicate(timeout=60)[0]
            except subprocess.TimeoutExpired:
                ran.terminate()  # and it ends its lanes
                raise
        self.assertEqual(os.listdir(f"{self.top}/tmp"), [], said)
        return ran.returncode, said

    def refused(self, *suites, totals, says, **how):
        status, said = self.run_suites(*suites, **how)
        self.assertEqual((status, said.splitlines()[-1]), (1, totals), said)
        for text in says:
            self.assertIn(text, said)

    def test_all_well(self):
        status, said = self.run_suites("unit", "asan")
        self.assertEqual((status, said.splitlines()[-1]), (0, "9 passed, 0 failed, 0 skipped"), said)

    def test_meson_killed(self):
        self.refused("unit", "faults", do="killed", at="unit", totals="2 passed, 1 failed, 0 skipped",
                     says=["unit: meson ended with status 137"])

    def test_log_unread(self):
        self.refused("unit", "faults", do="unread", at="unit", totals="1 passed, 1 failed, 0 skipped", says=["testlog-unit.json cannot be read"])

    def test_lane_killed(self):
        self.refused("unit", "integration", do="lane", at="integration", totals="1 passed, 2 failed, 0 skipped",
                     says=["by_uid_lane ended with status 137", "not run to the end: integration\n"])

    def test_another_lane_goes_on(self):
        """What computes is run by whichever lane comes to it, once."""
        self.refused("unit", "sim", "ops", "faults", do="lane", at="unit", totals="3 passed, 2 failed, 0 skipped",
                     says=["computing_lane ended with status 137", "not run to the end: unit\n"])
        status, said = self.run_suites("unit", "sim", "ops", "comm", "faults")
        self.assertEqual((status, said.splitlines()[-1]), (0, "5 passed, 0 failed, 0 skipped"), said)

    def test_lane_killed_before_others_go_on(self):
        self.refused("asan", do="lane", at="build-asan", totals="0 passed, 2 failed, 0 skipped",
                     says=["not run to the end: asan unit, asan ops, asan comm, ", ", asan integration, asan failpoints\n"])

    def test_nowhere_to_keep_what_is_said(self):
        status, said = self.run_suites("unit", "faults", do="mktemp")
        self.assertEqual((status, said.splitlines()[-1]), (0, "2 passed, 0 failed, 0 skipped"), said)

    def test_nowhere_to_count(self):
        status, said = self.run_suites("unit", tmp="absent")
        self.assertEqual((status, re.findall("passed", said)), (1, []), said)

    def test_interrupted_twice(self):
        status, said = self.run_suites("unit", do="interrupt", at="unit")
        self.assertEqual(status, 128 + signal.SIGINT, said)


class Group(unittest.TestCase):
    def test_left_in_groups_within(self):
        with tempfile.TemporaryDirectory(prefix="det-run-") as top:
            for folder, pids in ("leaf", ""), ("det-tasks/a", f"{os.getpid()}\n"):
                os.makedirs(f"{top}/{folder}")
                with open(f"{top}/{folder}/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(pids)
            left = subprocess.run(["bash", "-c", '. "$0" && group_dirs=("$1") && group_left', f"{HERE}/group.sh", top],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual([line.split()[0] for line in left.splitlines()], [str(os.getpid())])


class OwnMemory(unittest.TestCase):
    """Databases of tests are in memory only where it is a suite's own: what is killed leaves them."""

    def told(self, folder):
        env = {k: v for k, v in os.environ.items() if k != "DET_PG_MEMORY"}  # of the suite that this is in
        with tempfile.TemporaryDirectory(dir=folder) as d:
            return subprocess.run(["bash", "-c", """. "$0/suite.sh"; with_tmp "$1" "$1" sh -c 'echo "$DET_PG_MEMORY $(ls /dev/shm)"'""", HERE, d],
                                  env=env, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def test_own(self):
        if os.getuid() or subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True).returncode:
            self.skipTest("it has none: root, and the right to mount, are needed")
        self.assertEqual(self.told("/var/tmp"), "yes")

    def test_the_hosts(self):
        self.assertFalse(self.told("/tmp").startswith("yes"))


if __name__ == "__main__":
    unittest.main()

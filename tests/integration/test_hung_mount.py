#!/usr/bin/env python3
"""Data on a mount that hangs hold up no task's end: whoever looks at them is not to be killed, and is none of the task."""
import contextlib
import ctypes
import json
import os
import struct
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import SLOWER, Cluster, wait_until  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_FORCE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 1, 2
FUSE_INIT, FUSE_LOOKUP = 26, 1


def must(rc, what):
    if rc < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def serve(fuse, asked):
    """Reads all that is asked, and answers the first question alone, without which nobody could ask more."""
    with contextlib.suppress(OSError):  # the end of the mount
        while True:
            request = os.read(fuse, 1 << 17)
            opcode, unique = struct.unpack_from("=4xIQ", request)
            if opcode == FUSE_INIT:
                os.write(fuse, struct.pack("=IiQ", 80, 0, unique) + struct.pack("=IIIIHHI", 7, 31, 0, 0, 1, 1, 4096) + bytes(40))
            elif opcode == FUSE_LOOKUP:
                asked.set()


@contextlib.contextmanager
def hung_mount():
    """A folder, and an event: somebody waits for what is in it. It is there for this process and those that it starts."""
    must(LIBC.unshare(CLONE_NEWNS), "a mount namespace")
    must(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount --make-rprivate /")
    fuse, asked = os.open("/dev/fuse", os.O_RDWR), threading.Event()
    folder = tempfile.mkdtemp(dir="/var/lib", prefix="det-test-hung-")  # a task has a /tmp of its own
    try:
        options = f"fd={fuse},rootmode=40755,user_id=0,group_id=0,allow_other".encode()
        must(LIBC.mount(b"hung", folder.encode(), b"fuse", 0, options), "mount -t fuse")
        server = threading.Thread(target=serve, args=(fuse, asked), daemon=True)
        server.start()
        try:
            yield folder, asked
        finally:
            LIBC.umount2(folder.encode(), MNT_FORCE)  # lets go whoever waits
            LIBC.umount2(folder.encode(), MNT_DETACH)
            server.join(60 * SLOWER)
    finally:
        os.close(fuse)
        os.rmdir(folder)


def begin(c, folder, asked, entrypoint):
    """A command whose data are there; it has begun, though nobody says what they are."""
    exp = c.create(json.dumps({"name": "hung", "entrypoint": entrypoint, "max_restarts": 0, "resources": {"slots_per_trial": 0},
                               "data": {"dir": folder + "/x"},
                               "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}), None)
    wait_until(lambda: c.trials(exp) and "begun" in c.logs(c.trials(exp)[0]["id"]), 60, "the code, though its data hang")
    log = c.logs(c.trials(exp)[0]["id"])
    assert asked.is_set() and "gave no answer within 1 s" in log, log
    return exp


def main():
    with contextlib.ExitStack() as stack:
        try:
            folder, asked = stack.enter_context(hung_mount())
        except OSError as e:
            print(f"skip: a mount of FUSE in a namespace of its own: {e}")
            return
        with Cluster(slots=1, apart=True) as c:
            c.wait(begin(c, folder, asked, "echo begun"), "STATE_COMPLETED", 60)
            killed = begin(c, folder, asked, "echo begun; exec sleep 1001")
            c.api("POST", f"/experiments/{killed}/kill", {})
            c.wait(killed, "STATE_CANCELED", 60)
    print("test_hung_mount: passed")


if __name__ == "__main__":
    main()

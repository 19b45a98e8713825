"""What a stranger on the same host can do to the ports of another person's trial, of test_isolation.py: says wrong things to
all that they listen on, and holds connections, until they are gone. Prints ports=, tries= and tried=all."""
import os
import resource
import socket
import struct
import time

HELD = 800  # connections at a time: none of them may use up what the trial has
WAIT_SECONDS, SPELL_SECONDS = 60, 0.2
HELLO, PUT, LEAVE, SECRET_BYTES = 1, 2, 5, 65  # of harness/comm/comm_store.h


def listening():
    """(family, port) of the tasks of other users."""
    found = set()
    for family, path in (socket.AF_INET, "/proc/net/tcp"), (socket.AF_INET6, "/proc/net/tcp6"):
        with open(path) as f:
            for line in f.readlines()[1:]:
                _, local, _, state, *_, uid = line.split()[:8]
                if state == "0A" and int(uid) >= 1900000000 and int(uid) != os.getuid():
                    found.add((family, int(local.rsplit(":", 1)[1], 16)))
    return found


def frame(op, value, key=b""):
    return struct.pack("<III", op, len(key), len(value)) + key + value


def lies():
    for rank in range(3):
        for secret in b"", b"0" * 64, b"\xff" * SECRET_BYTES:
            yield frame(HELLO, struct.pack("<I", rank) + secret.ljust(SECRET_BYTES, b"\0") + b"\0" * 3)
    yield frame(LEAVE, b"the stranger says so")
    yield frame(PUT, b"x" * 100, b"id")
    yield struct.pack("<III", HELLO, 0xFFFFFFFF, 0xFFFFFFFF)
    yield struct.pack("<III", HELLO, 0, 1 << 20) + b"x" * 65536
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield os.urandom(4096)


def say(family, port, text):
    s = socket.socket(family)
    s.settimeout(1)
    s.connect(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
    s.sendall(text)
    return s


hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
ports, tries, held, end, quiet = set(), 0, [], time.monotonic() + WAIT_SECONDS, None
print("begun=yes", flush=True)
while time.monotonic() < end and (quiet is None or time.monotonic() - quiet < SPELL_SECONDS * 10):
    now = listening()
    ports |= now
    quiet = quiet if ports and not now and quiet else time.monotonic() if ports and not now else None
    for family, port in now:
        for text in [*lies(), b""]:
            try:
                held.append(say(family, port, text))
            except OSError:
                pass  # refused, or gone
            tries += 1
    while len(held) > HELD:
        held.pop(0).close()
    time.sleep(SPELL_SECONDS if not now else 0)
print(f"ports={len(ports)}", flush=True)
print(f"tries={tries}", flush=True)
print("tried=all", flush=True)

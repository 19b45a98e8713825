"""A terminal on which a program runs, for benchmarks of what people see."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Screen:
    """Of 100 columns and 40 rows; what it shows is read as it comes."""

    def __init__(self, argv, env):
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.program = subprocess.Popen(argv, env={**env, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
        os.close(theirs)

    def wait_for(self, is_there, what, seconds=30):
        """Reads until is_there(the text since the call) holds."""
        seen, end = b"", time.monotonic() + seconds
        while not is_there(seen.decode(errors="ignore")):
            if time.monotonic() > end:
                raise SystemExit(f"{what} did not come to the screen in {seconds} s: {seen[-400:]!r}")
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    seen += os.read(self.fd, 65536)
                except OSError:
                    raise SystemExit(f"{self.program.args} ended without {what}: {seen[-400:]!r}") from None

    def take(self):
        """Reads what is there, so that the program need not wait."""
        while select.select([self.fd], [], [], 0)[0] and os.read(self.fd, 65536):
            pass

    def close(self):
        self.program.terminate()
        self.program.wait()
        os.close(self.fd)

"""A network namespace of this test's own, joined to the host by a pair of interfaces. Needs root and iproute2."""
import os
import shutil
import subprocess


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True)


class Namespace:
    how = "namespace"

    def __init__(self):
        k = os.getpid() % 4000
        self.name, self.veth = f"det-{os.getpid()}", f"dt{os.getpid()}"
        self.net = f"10.{200 + k // 256}.{k % 256}"
        ip("netns", "add", self.name)
        try:
            ip("link", "add", self.veth, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            ip("addr", "add", f"{self.net}.1/24", "dev", self.veth)
            ip("link", "set", self.veth, "up")
            self.inside("addr", "add", f"{self.net}.2/24", "dev", "eth0")
            self.inside("link", "set", "eth0", "up")
            self.inside("link", "set", "lo", "up")
        except subprocess.CalledProcessError:
            self.close()
            raise

    @staticmethod
    def is_possible():
        if os.geteuid() != 0 or not shutil.which("ip"):
            return False
        try:
            Namespace().close()
            return True
        except (OSError, subprocess.CalledProcessError):
            return False

    def inside(self, *args):
        ip("-n", self.name, *args)

    def argv(self):
        """What runs a command inside."""
        return ["ip", "netns", "exec", self.name]

    def url(self, port):
        """The host, seen from inside."""
        return f"http://{self.net}.1:{port}"

    def part(self, way):
        """Drops packets: "up" those from inside, "down" those to it."""
        if way in ("both", "up"):
            self.inside("route", "add", "blackhole", f"{self.net}.1/32")
        if way in ("both", "down"):
            ip("route", "add", "blackhole", f"{self.net}.2/32")

    def heal(self):
        ip("-n", self.name, "route", "del", "blackhole", f"{self.net}.1/32", check=False)
        ip("route", "del", "blackhole", f"{self.net}.2/32", check=False)

    def shape(self, *netem):
        """tc's words for both directions; False where this kernel has no netem."""
        dev = ["root", *netem]
        a = subprocess.run(["tc", "qdisc", "replace", "dev", self.veth, *dev], capture_output=True)
        b = subprocess.run(["tc", "-n", self.name, "qdisc", "replace", "dev", "eth0", *dev], capture_output=True)
        return a.returncode == 0 and b.returncode == 0

    def close(self):
        ip("route", "del", "blackhole", f"{self.net}.2/32", check=False)
        ip("link", "del", self.veth, check=False)
        ip("netns", "del", self.name, check=False)

"""A private Slurm of one node for benchmarks (bench/lib_slurm.sh); installs its packages when first asked."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Slurm:
    def __init__(self, cpus=2):
        subprocess.run(["bash", "-c", '. "$0/../deploy/packages.sh"; install_packages "$0/packages.slurm"', HERE],
                       check=True, stdout=sys.stderr)
        self.dir, self.cpus = tempfile.mkdtemp(prefix="det-bench-slurm-"), cpus
        self.env = dict(os.environ, SLURM_CONF=os.path.join(self.dir, "slurm.conf"))

    def __enter__(self):
        try:
            self.service("up", str(self.cpus))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.service("down")

    def service(self, verb, *args):
        subprocess.run(["bash", os.path.join(HERE, "lib_slurm.sh"), verb, self.dir, *args], check=True, stdout=sys.stderr)

    def script(self, name, text):
        """Writes an executable script beside the service's files; returns its path."""
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def idle(self):
        return not subprocess.run(["squeue", "-h"], check=True, text=True, capture_output=True, env=self.env).stdout

"""pip install . : the determined package alone; what belongs to it is in pyproject.toml, and meson builds its extension.

DET_BUILD may name a build directory that is there already. What is made on the way lies in a temporary directory.
"""
import os
import shutil
import subprocess
import tempfile

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

TARGET = "harness/python/_loop.abi3.so"


class Meson(build_ext):
    def build_extension(self, ext):
        build = os.environ.get("DET_BUILD") or os.path.join(scratch, "meson")
        if not os.path.exists(os.path.join(build, "build.ninja")):
            subprocess.run(["meson", "setup", build, "--buildtype", "release", "-Dtests=false", "-Dpython=enabled"], check=True)
        subprocess.run(["ninja", "-C", build, TARGET], check=True)
        to = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(os.path.join(build, TARGET), to)


with tempfile.TemporaryDirectory(prefix="det-pip-") as scratch:
    setup(
        ext_modules=[Extension("determined._loop", [], py_limited_api=True)],
        cmdclass={"build_ext": Meson},
        options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}, "bdist_wheel": {"py_limited_api": "cp311"}},
    )

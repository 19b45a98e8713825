"""Compiles the installed package: tasks of other users could not keep what they compile. usage: compile.py DIR-BELOW-THE-PREFIX"""
import compileall
import os
import sys

where = os.path.join(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], sys.argv[1])
sys.exit(not compileall.compile_dir(where, quiet=2, stripdir=os.environ.get("DESTDIR")))

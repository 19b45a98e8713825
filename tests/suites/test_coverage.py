#!/usr/bin/env python3
"""Which floors tests/lib/coverage.py finds broken, and what of the tree counts for the sum."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import coverage  # noqa: E402

LINES = {"base/a.c": {1: 3, 2: 0}, "base/text/b.c": {1: 1, 2: 1}, "basement/c.c": {1: 0}}
BRANCHES = {"base/a.c": {(1, 0): 1, (1, 1): 0}}


class Floors(unittest.TestCase):
    def below(self, floors):
        return list(coverage.below(LINES, BRANCHES, floors))

    def test_at_the_floor(self):
        self.assertEqual(self.below({"base": (75, 50), "all": (60, 50)}), [])

    def test_below_it(self):
        self.assertEqual(self.below({"base": (76, 50)}), ["base: 75.0 % of lines, and at least 76 % are asked for"])
        self.assertEqual(self.below({"all": (60, 51)}), ["all: 50.0 % of branches, and at least 51 % are asked for"])

    def test_a_folder_that_is_gone(self):
        self.assertEqual(len(self.below({"attic": (1, 1)})), 2)

    def test_each_floor_has_its_folder(self):
        for folder in [f for f in coverage.FLOORS if f != "all"]:
            self.assertTrue(os.path.isdir(os.path.join(TOP, folder)), folder)

    def test_what_is_the_products(self):
        build = os.path.join(coverage.TOP, "build")
        for name, counts in (("../harness/backend/cuda/cuda_plan.c", True), ("../tests/cuda/device.c", False), ("made.c", False),
                             ("/usr/include/stdio.h", False)):
            self.assertEqual(coverage.ours(build, name) is not None, counts, name)


if __name__ == "__main__":
    unittest.main()

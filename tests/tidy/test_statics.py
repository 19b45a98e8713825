"""Does the check of statics' names see what it is for?  test_statics.py"""
import os
import tempfile
import unittest

import statics


class Statics(unittest.TestCase):
    def refused(self, code, path="base/a.c"):
        with tempfile.TemporaryDirectory(prefix="det-statics-") as top:
            os.makedirs(os.path.join(top, os.path.dirname(path)))
            with open(os.path.join(top, path), "w") as f:
                f.write(code)
            return [(n, text.split("(")[0]) for _, n, text in statics.check_statics(top, [path])]

    def test_verb_and_noun(self):
        self.assertEqual(self.refused("static int find_place(int x)\n{\n    return x;\n}\n"), [])

    def test_one_word(self):
        self.assertEqual(self.refused("static int find(int x)\n{\n    return x;\n}\n"), [(1, "find")])
        self.assertEqual(self.refused("static int\nfind_(int x)\n{\n    return x;\n}\n"), [(2, "find_")])
        self.assertEqual(self.refused("#pragma once\nstatic inline int find(int x)\n{\n    return x;\n}\n", "base/a.h"), [(2, "find")])

    def test_public(self):
        self.assertEqual(self.refused("int find(int x)\n{\n    return x;\n}\n"), [])

    def test_words_with_a_reason(self):
        self.assertEqual(self.refused("static double dot(double x)\n{\n    return x;\n}\n"), [])

    def test_what_is_not_installed(self):
        self.assertEqual(self.refused("static int find(int x)\n{\n    return x;\n}\n", "bench/read/a.c"), [])
        self.assertEqual(self.refused("static int find(int x)\n{\n    return x;\n}\n", "bench_tools/a.c"), [(1, "find")])


if __name__ == "__main__":
    unittest.main()

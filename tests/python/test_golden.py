"""The order of all hooks of a Python trial is, byte for byte, that of its C twin: one loop runs both."""
import os
import unittest

import golden
from support import store
from test_ranks import run_ranks

HERE = os.path.dirname(os.path.abspath(__file__))


class Golden(unittest.TestCase):
    maxDiff = None

    def test_alone(self):
        with store():
            self.assertEqual(golden.run(), golden.golden())

    def test_two_ranks(self):
        """The chief's is the same; the other's too, without what the chief alone does."""
        chief, other = run_ranks("0", script=os.path.join(HERE, "golden.py"))
        self.assertEqual(chief, golden.golden())
        expected = [line for line in golden.golden().splitlines() if not golden.CHIEF_ONLY.fullmatch(line)]
        self.assertEqual(other.splitlines(), expected)


if __name__ == "__main__":
    unittest.main()

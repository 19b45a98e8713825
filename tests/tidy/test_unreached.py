"""Are lines that nothing reached told with their reason?  test_unreached.py"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from unreached import NONE_KNOWN, PASSED_ON, UNCALLED, reason_of, reasons, runs_of  # noqa: E402

SOURCE = """int f(int n)
{
    int rc = g(n);
    if (rc < 0) {
        h_finish(n);
        return rc;
    }
    if (n > 7)
        abort(); /* ours */
    return draw(n);
}
"""


class Unreached(unittest.TestCase):
    def test_runs(self):
        self.assertEqual(runs_of({1: 0, 2: 0, 4: 3, 5: 0, 9: 0}), [[1, 2], [5, 9]])
        self.assertEqual(runs_of({1: 2}), [])
        self.assertEqual(runs_of({1: 0, 2: 0, 4: 0, 5: 0}, heads={4}), [[1, 2], [4, 5]])

    def test_reasons(self):
        counts = {3: 1, 4: 1, 5: 0, 6: 0, 8: 1, 9: 0, 10: 0}
        self.assertEqual(reasons(counts, SOURCE), {5: PASSED_ON, 6: PASSED_ON, **dict.fromkeys((9, 10), reason_of("abort();"))})
        self.assertEqual(set(reasons(dict.fromkeys(range(1, 11), 0), SOURCE).values()), {UNCALLED})

    def test_words(self):
        for text, words in (("return det_fail_errno(err, DET_EIO, errno, p);", "system"), ("return DET_ENOMEM;", "memory"),
                            ("log_warning(\n\"x\");", "log"), ("PQclear(r);", "PostgreSQL")):
            self.assertIn(words, reason_of(text))
        self.assertEqual(reason_of("return rc;\nx = draw(n);"), NONE_KNOWN)


if __name__ == "__main__":
    unittest.main()

"""Does the check of the decoders see what it is for?  test_decoders.py"""
import unittest

import decoders

TARGETS = {"wire": "int LLVMFuzzerTestOneInput() { return wire_decode(x); }"}


class Decoders(unittest.TestCase):
    def headers(self, text, known=("wire_decode",)):
        return [n for _, n, _ in decoders.check_headers([("a.h", text)], known)]

    def targets(self, known, targets=None):
        return [text for _, _, text in decoders.check_targets(targets or TARGETS, known)]

    def test_new_decoder(self):
        self.assertEqual(self.headers("int wire_decode(x);\nint frame_decode(const char *p);\n"), [2])
        self.assertEqual(self.headers("DET_MUST int\nparse_frame(const char *p, size_t n);\nint yaml_parse_lines(x);"), [2, 3])

    def test_words_alone(self):
        self.assertEqual(self.headers("/* frame_decode(p) is\nelsewhere */\n#define cut_it(x) \\\n    json_cut(x)\nint parser(void);"), [])

    def test_targets(self):
        self.assertEqual(self.targets({"wire_decode": ("wire", "wire_decode")}), [])
        self.assertIn("there is no", self.targets({"a": ("gone", "a"), "w": ("wire", "wire_decode")})[0])
        self.assertIn("does not call", self.targets({"wire_decode": ("wire", "wire_read")})[0])
        self.assertIn("no decoder", self.targets({"w": ("wire", "wire_decode")}, {**TARGETS, "idle": ""})[0])


if __name__ == "__main__":
    unittest.main()

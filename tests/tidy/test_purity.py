"""Does the check of the core's purity see what it is for?  test_purity.py BUILD_DIR: small cores, linked to our base."""
import os
import subprocess
import sys
import tempfile
import unittest

import purity

BUILD = sys.argv.pop()


class Cores(unittest.TestCase):
    def needs_of(self, code):
        with tempfile.TemporaryDirectory(prefix="det-purity-") as d:
            os.makedirs(f"{d}/master/core")
            for lib in ("proto", "base"):
                os.symlink(os.path.join(BUILD, lib), f"{d}/{lib}")
            with open(f"{d}/core.c", "w") as f:
                f.write(code)
            subprocess.run(["cc", "-O2", "-fPIE", "-c", f"{d}/core.c", "-o", f"{d}/core.o"], check=True)
            subprocess.run(["ar", "qc", f"{d}/master/core/libcore.a", f"{d}/core.o"], check=True)
            return dict(purity.Purity(d).violations())

    def test_pure(self):
        self.assertEqual(self.needs_of("""
            struct mt19937; unsigned mt19937_u32(struct mt19937 *); char *det_asprintf(const char *, ...);
            char *core_name(struct mt19937 *r) { return det_asprintf("%u", mt19937_u32(r)); }"""), {})

    def test_randomness_of_base(self):
        self.assertEqual(self.needs_of("void uuid_random(char *); void core_name(char *o) { uuid_random(o); }"),
                         {"getrandom": "core_name -> uuid_random"})

    def test_clock_in_a_table(self):
        found = self.needs_of("""
            long clk_mono_ms(void);
            static long now(void) { return clk_mono_ms() + 1; }
            static long never(void) { return 0; }
            static long (*const table[])(void) = {now, never};
            long core_when(int i) { return table[i](); }""")
        self.assertIn("clock_gettime", found)

    def test_io_by_a_pointer(self):
        found = self.needs_of("int fsx_write_all(int, const void *, unsigned long, void *); void *core_writer(void) { return fsx_write_all; }")
        self.assertEqual(found.get("write"), "core_writer -> fsx_write_all")

    def test_last_words_of_the_living(self):
        self.assertIn("fprintf", self.needs_of('#include <stdio.h>\nvoid core_say(void) { fprintf(stderr, "%d", 1); }'))


if __name__ == "__main__":
    unittest.main()

"""Does the check of documents see what it is for?  test_documents.py"""
import os
import subprocess
import tempfile
import unittest

import documents


class Trees(unittest.TestCase):
    def found(self, layers=(), **files):
        with tempfile.TemporaryDirectory(prefix="det-documents-") as top:
            subprocess.run(["git", "-C", top, "init", "-q"], check=True)
            os.makedirs(f"{top}/docs/contract")
            os.makedirs(f"{top}/examples")
            for name, text in {"docs/contract/loop.md": "## 1. Steps\n\n## 2. Ends\n", **files}.items():
                with open(f"{top}/{name}", "w") as f:
                    f.write(text)
            return [(f, n) for f, n, _ in documents.check_documents(top, layers)]

    def test_sound(self):
        self.assertEqual(self.found(**{"a.c": "/* docs/contract/loop.md 1 and\n * 2, loop.md */", "b.md": "[l](docs/contract/loop.md#ends)"}), [])

    def test_section_that_is_not_there(self):
        self.assertEqual(self.found(**{"a.c": "\n/* docs/contract/loop.md 1,\n * 3. */"}), [("a.c", 2)])

    def test_page_that_is_not_there(self):
        self.assertEqual(self.found(**{"a.py": "# see contract.md 4"}), [("a.py", 1)])

    def test_link_to_nothing(self):
        self.assertEqual(self.found(**{"b.md": "one\n[two](docs/three.md)"}), [("b.md", 2)])

    def test_placeholder(self):
        self.assertEqual(self.found(**{"b.md": "one\n| p95 | @P95@ |\nTODO\n`a@B@c.D`"}), [("b.md", 2), ("b.md", 3)])

    def test_long_line(self):
        self.assertEqual(self.found(**{"docs/x.md": "x" * 120 + "\n" + "x" * 121 + "\n|" + "x" * 120}), [("docs/x.md", 2)])

    def test_house(self):
        rows = [f"| `{floor}/` | here | {' '.join(f'`{r}/`' for r in rooms if r not in ('.', 'det'))} |\n" for floor, rooms in documents.ROOMS.items()]
        self.assertEqual(self.found(layers=documents.ROOMS, **{"ARCHITECTURE.md": "".join(rows)}), [])
        self.assertEqual(self.found(layers=documents.ROOMS, **{"ARCHITECTURE.md": "".join(rows[1:])}), [("ARCHITECTURE.md", 1)] * 2)
        self.assertEqual(self.found(**{"ARCHITECTURE.md": "".join(rows).replace("`text/`", "")}), [("ARCHITECTURE.md", 1)])
        self.assertEqual(self.found(layers=["attic"], **{"ARCHITECTURE.md": "".join(rows)}), [("ARCHITECTURE.md", 1)])
        self.assertEqual(self.found(**{"ARCHITECTURE.md": "".join(rows) + "\n" * 160}), [("ARCHITECTURE.md", 160 + len(rows))])

    def test_code_that_is_not_the_code(self):
        page = "# `a.c`\n\n    int a(void)\n    {\n        return %d;\n    }\n"
        code = "int b;\n\nint a(void)\n{\n    return 1;\n}\n"
        self.assertEqual(self.found(**{"a.c": code, "docs/adding-an-op.md": page % 1}), [])
        self.assertEqual(self.found(**{"a.c": code, "docs/adding-an-op.md": page % 2}), [("docs/adding-an-op.md", 3)])

    def test_trial_that_is_not_the_example(self):
        page = "`a.py`\n```python\ndef f():\n    return %d\n```\n```sh\nls\n```\n"
        self.assertEqual(self.found(**{"a.py": "def f():\n    return 1\n", "README.md": page % 1}), [])
        self.assertEqual(self.found(**{"a.py": "def f():\n    return 1\n", "README.md": page % 2}), [("README.md", 2)])

    def test_piece_of_an_example(self):
        page = "`examples/a.c`\n```c\nint a(void)\n    ...\n    return %d;\n```\n```c\nint other(void);\n```\n"
        code = "int a(void)\n{\n    int b = 2;\n    return 1;\n}\n"
        self.assertEqual(self.found(**{"examples/a.c": code, "docs/trial-api.md": page % 1}), [])
        self.assertEqual(self.found(**{"examples/a.c": code, "docs/trial-api.md": page % 2}), [("docs/trial-api.md", 2)])


if __name__ == "__main__":
    unittest.main()

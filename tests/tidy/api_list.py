#!/usr/bin/env python3
"""docs/api.md, made from the public headers; whether the documents name only what there is, and whether
docs/porting.md says of every name of determined.pytorch what became of it.

usage: api_list.py SOURCE_DIR           exit 1 with what is wrong
       api_list.py SOURCE_DIR --write   writes docs/api.md anew
"""
import ast
import glob
import os
import re
import sys

HEAD = """# The public functions

Made from `harness/include/det/` by `tests/tidy/api_list.py --write`: every function and function-like macro of the
trial API and the first sentence of its comment. ″ stands for the sentence of the line above; where there is none, the
function does what its name says. The headers are the reference; [porting.md](porting.md) has the way from PyTorch.
"""
# A function, or the macro that takes its options by name.
FUNCTION = r"(?:const |struct |enum |unsigned )*\w+[\s*]+(?:const )?\**(?P<name>det_\w+)\("
MACRO = r"#define (?P<macro>det_\w+)\("


def sentence(comment):
    text = " ".join(re.sub(r"^\s*\*? ?", "", line) for line in comment.splitlines()).strip()
    if re.match(r"-{3,}", text):
        return None
    return re.split(r"(?<=[a-z0-9)\]\"'][.])(?<!et al[.])\s", text + " ")[0].strip().rstrip(";:").replace("|", "\\|")


def functions(header):
    """[(name, what)] in order. A function without a comment of its own shares the one above it."""
    text, found, what = open(header).read(), [], ""
    lines, i, depth = text.split("\n"), 0, 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("/*"):
            j = i
            while "*/" not in lines[j]:
                j += 1
            block = "\n".join(lines[i:j + 1])
            body = block[2:block.index("*/")]
            what = sentence(body) or ""
            i = j + 1
            continue
        m = re.match(MACRO, line) or (re.match(FUNCTION, line) if depth == 0 and not line.startswith((" ", "static", "typedef", "}")) else None)
        if m:
            tail = re.search(r"/\* (.*?) ?\*/", line)
            found.append((m.groupdict().get("macro") or m.group("name"), sentence(tail.group(1)) if tail else what))
            what = "″" if what else ""
        if not line.strip():
            what = ""
        code = re.sub(r"/\*.*?\*/", "", line)
        if not code.startswith("#"):
            depth += code.count("{") - code.count("}")
        i += 1
    names = [n for n, _ in found]
    return [(n, w) for n, w in found if not (n.endswith(("_opt", "_create")) and re.sub("_(opt|create)$", "", n) in names)]


def headers(top):
    return sorted(glob.glob(os.path.join(top, "harness/include/det/*.h")))


def listing(top):
    out = [HEAD]
    for h in headers(top):
        rows = functions(h)
        if rows:
            out.append(f"\n## det/{os.path.basename(h)}\n\n| name | what |\n|---|---|\n")
            out.extend(f"| `{n}` |{w and f' {w}'} |\n" for n, w in rows)
    return "".join(out)


def known(top):
    """Every det_ and DET_ word of the headers."""
    return {w for h in headers(top) + [os.path.join(top, "base/det/err.h")] for w in re.findall(r"\b(?:det|DET)_\w+", open(h).read())}


def python_names(top):
    """The exported names of determined.pytorch, and the public methods of those that are classes."""
    package = os.path.join(top, "harness/python/determined/pytorch")
    trees = {p: ast.parse(open(p).read()) for p in sorted(glob.glob(os.path.join(package, "*.py")))}
    init = trees[os.path.join(package, "__init__.py")]
    names = next(ast.literal_eval(n.value) for n in init.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
    classes = [n for t in trees.values() for n in t.body if isinstance(n, ast.ClassDef) and n.name in names]
    methods = [f.name for c in classes for f in c.body if isinstance(f, ast.FunctionDef)]
    return names + [m for m in methods if not m.startswith("_")]


def without_a_way(top):
    """The names that are neither hooks of the same name in C nor in the page on porting."""
    hooks = re.findall(r"\(\*(\w+)\)\(", open(os.path.join(top, "harness/include/det/trial.h")).read())
    words = set(re.findall(r"\w+", open(os.path.join(top, "docs/porting.md")).read())) | set(hooks)
    return [f"docs/porting.md: {n} of determined.pytorch is not there" for n in python_names(top) if n not in words]


def main():
    top = sys.argv[1]
    path, bad = os.path.join(top, "docs/api.md"), []
    if "--write" in sys.argv:
        open(path, "w").write(listing(top))
        return 0
    if open(path).read() != listing(top):
        bad.append("docs/api.md: the headers say something else: tests/tidy/api_list.py . --write")
    names = known(top)
    for doc in ("porting.md", "trial-api.md", "api.md"):
        for n, line in enumerate(open(os.path.join(top, "docs", doc)), 1):
            for word in re.findall(r"\bdet_\w+", line):
                if word not in names and not word.endswith("_") and word + "_opt" not in names:
                    bad.append(f"docs/{doc}:{n}: {word} is in no header")
    bad += without_a_way(top)
    print("\n".join(bad) or f"{len(names)} names")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""The commands that README.md and docs/*.md tell people to type."""
import glob
import os
import re

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PROGRAM = (
    r"(?:det|det-(?:master|agent|harness)|apt-get|cc|chmod|chown|cp|export|groupadd|install|meson|ninja|pip|python3"
    r"|runuser|systemctl|torchrun|useradd|(?:tests|deploy|bench)/\S+)(?=\s|$)"
)


def documents():
    return ["README.md", *sorted(os.path.relpath(p, TOP) for p in glob.glob(os.path.join(TOP, "docs/*.md")))]


class Command:
    def __init__(self, doc, line, text, is_block):
        self.doc, self.line, self.text, self.is_block = doc, line, text, is_block

    def __repr__(self):
        return f"{self.doc}:{self.line}: {self.text}"


def _whole(lines):
    """Lines of a shell as whole commands: continued lines and here documents are one; without comments."""
    out, end = [], None
    for n, line in lines:
        if out and end is not None:
            out[-1] = (out[-1][0], out[-1][1] + "\n" + line)
            end = None if line == end else end
        elif out and out[-1][1].endswith("\\"):
            out[-1] = (out[-1][0], out[-1][1][:-1].rstrip() + " " + line.strip())
        elif line.strip():
            out.append((n, line))
            here = re.search(r"<<(\w+)$", line)
            end = here.group(1) if here else None
    return [(n, re.sub(r"\s+# .*$", "", text, flags=re.M)) for n, text in out]


def _blocks(lines):
    """(line, text) of fenced shell, of `    $ ...`, and of indented lines that begin with a program."""
    shell, indented, fence, prompted = [], [], None, False
    for n, line in lines:
        mark = re.match(r"```(\w*)", line)
        if mark:
            fence = None if fence is not None else mark.group(1)
        elif fence == "sh":
            shell.append((n, line))
        elif fence is None and line.startswith("    "):
            text = line[4:]
            if text.startswith("$ ") or (prompted and indented[-1][1].endswith("\\")):
                indented.append((n, text.removeprefix("$ ")))
                prompted = True
            elif not prompted and re.match(PROGRAM, text) and " " in text:
                indented.append((n, text))
        elif fence is None and line.strip():
            prompted = False
    return _whole(shell) + _whole(indented)


def _inline(lines):
    fenced = False
    for n, line in lines:
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            for text in re.findall(r"`([^`]+)`", line):
                if re.match(PROGRAM, text) and " " in text:
                    yield n, text


def commands(doc):
    with open(os.path.join(TOP, doc)) as f:
        lines = list(enumerate(f.read().split("\n"), 1))
    found = [Command(doc, n, text, True) for n, text in _blocks(lines)]
    return sorted(found + [Command(doc, n, text, False) for n, text in _inline(lines)], key=lambda c: c.line)


def code(doc, language, which):
    """The text of a document's nth block in a language."""
    with open(os.path.join(TOP, doc)) as f:
        return re.findall(rf"```{language}\n(.*?)```", f.read(), re.S)[which]

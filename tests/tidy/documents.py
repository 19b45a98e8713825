"""Documents that are cited exist: pages, sections of docs/contract, links between pages."""
import os
import re
import subprocess

from rooms import ROOMS

PAGE = re.compile(r"[\w./-]*\w\.md\b")
SECTION = re.compile(r"docs/contract/(\w+)\.md[\s*#]+(\d+(?:(?:,| and)[\s*#]+\d+)*)")
HEADING = re.compile(r"^## (\d+)\.", re.M)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PLACEHOLDER = re.compile(r"(?<!\w)@[A-Z][A-Z0-9_]*@(?!\w)|\b(?:TODO|FIXME|TBD|XXX)\b")  # to be filled in before it was sent
COLUMNS = 120
HOUSE = "ARCHITECTURE.md"
LINES = {HOUSE: 160}  # who arrives reads it whole
QUOTES = ("docs/adding-an-op.md",)  # each indented block is a piece of a file that the page names
WHOLE = ("README.md",)  # each fenced block of C or Python is
BEGUN = ("docs/trial-api.md",)  # those that begin as an example does; a line of three dots leaves something out
NAMED = re.compile(r"`([\w./-]+\.(?:cuh|cu|c|h|py))`")
LEFT_OUT = re.compile(r"^ *\.\.\.$", re.M)
FENCED = re.compile(r"^```(?:c|python)\n(.*?)^```$", re.M | re.S)
BLOCK = re.compile(r"(?:^    +\S.*\n)+", re.M)
CODE = (".c", ".h", ".cc", ".cu", ".cuh", ".py", ".sql", ".yaml", ".build")


def tracked(top):
    out = subprocess.run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"], text=True, capture_output=True, check=True)
    return [f for f in out.stdout.splitlines() if os.path.isfile(os.path.join(top, f))]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_cited(f, text, names, sections):
    for m in PAGE.finditer(text):
        if os.path.basename(m.group(0)) not in names and not m.group(0).startswith("//"):  # an address
            yield f, line_of(text, m.start()), f"cites {m.group(0)}, which is not in the tree"
    for m in SECTION.finditer(text):
        for n in re.findall(r"\d+", m.group(2)):
            if n not in sections.get(m.group(1), ()):
                yield f, line_of(text, m.start()), f"docs/contract/{m.group(1)}.md has no section {n}"


def check_page(top, f, text):
    for m in LINK.finditer(text):
        if "://" not in m.group(1) and not os.path.exists(os.path.join(top, os.path.dirname(f), m.group(1))):
            yield f, line_of(text, m.start()), f"links to {m.group(1)}, which is not there"
    for m in PLACEHOLDER.finditer(text):
        yield f, line_of(text, m.start()), f"{m.group(0)}: nobody filled it in"
    lines = text.splitlines()
    if len(lines) > LINES.get(f, len(lines)):
        yield f, len(lines), f"has {len(lines)} lines; {LINES[f]} is the most"
    for n, line in enumerate(lines, 1):
        if len(line) > COLUMNS and not line.startswith("|"):  # a row of a table is one line
            yield f, n, f"a line has {len(line)} columns; {COLUMNS} is the most"


def flat(text):
    return " ".join(text.replace("\\\n", "\n").split())


def check_quotes(f, text, texts):
    blocks = [m for m in BLOCK.finditer(text) if not m[0].lstrip().startswith("meson ")] if f in QUOTES else list(FENCED.finditer(text))
    named = [n for n in NAMED.findall(text) if f not in BEGUN or n.startswith("examples/")]
    sources = [flat(t) for name, t in texts.items() if any(name == n or name.endswith("/" + n) for n in named)]
    for m in blocks:
        code = m[m.lastindex or 0]
        if f in BEGUN and not any(flat(code.split("\n")[0]) in s for s in sources):
            continue
        if not all(any(flat(piece) in s for s in sources) for piece in LEFT_OUT.split(code)):
            yield f, line_of(text, m.start()), "shows code that stands in none of the files that the page names"


def check_house(texts, layers):
    """Its two tables have each layer and each room, and no others."""
    rows = re.findall(r"^\| `([\w/, ]+)`(?: \|(.*)\|)?", texts[HOUSE], re.M)
    told, rooms = set(), {}
    for first, rest in rows:
        floor, *beside = [name.rstrip("/") for name in first.split(", ")]
        told |= {floor.removesuffix("/det"), *(os.path.join(os.path.dirname(floor), name) for name in beside)}
        found = set(re.findall(r"`([a-z]+)/`", rest))
        if floor in ROOMS and found:
            rooms[floor] = found
    wanted = {floor: set(has) - {".", "det"} for floor, has in ROOMS.items()}
    for name in sorted(set(layers) - told - {"master", "agent"}):
        yield HOUSE, 1, f"its table has no row for {name}"
    for floor in sorted(wanted):
        if rooms.get(floor) != wanted[floor]:
            yield HOUSE, 1, f"has other rooms of {floor} than tests/tidy/rooms.py: {', '.join(sorted(wanted[floor]))}"


def check_documents(top, layers=()):
    files = tracked(top)
    texts = {f: open(os.path.join(top, f), errors="replace").read() for f in files if f.endswith((".md",) + CODE)}
    names = {os.path.basename(f) for f in files if f.endswith(".md")}
    sections = {os.path.basename(f)[:-3]: HEADING.findall(t) for f, t in texts.items() if f.startswith("docs/contract/")}
    if HOUSE in texts:
        yield from check_house(texts, layers)
    for f, text in texts.items():
        if f.endswith(".md"):
            yield from check_page(top, f, text)
            if f in QUOTES + WHOLE + BEGUN:
                yield from check_quotes(f, text, texts)
        elif os.path.basename(f) not in ("documents.py", "test_documents.py"):
            yield from check_cited(f, text, names, sections)

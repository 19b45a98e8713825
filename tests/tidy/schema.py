"""The database's schema: where its functions are, and that each is there once, told of and used."""
import glob
import os
import re
import sys

LAST = 54  # migrations up to here define and call functions
DEFINES = re.compile(r"\b(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:CONSTRAINT\s+)?(FUNCTION|PROCEDURE|VIEW|TRIGGER)\s+(?!pg_temp\.)(\w+)", re.I)
MADE = re.compile(r"^CREATE (?:OR REPLACE )?(FUNCTION|VIEW|TRIGGER) (\w+)", re.M)
COMMENT = re.compile(r"--[^\n]*")
TEXTS = ("db/**/*.c", "db/**/*.h", "db/functions/*.sql", "db/sql/*.sql", "tests/unit/db/*.c")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_migration(name, text, functions):
    bare = COMMENT.sub(lambda m: " " * len(m.group(0)), text)
    for m in DEFINES.finditer(bare):
        yield name, line_of(bare, m.start()), f"{m.group(1).lower()} {m.group(2)}: it belongs into db/functions (db/README.md)"
    for m in re.finditer(r"\b(\w+)\s*\(", bare):
        if m.group(1) in functions:
            yield name, line_of(bare, m.start()), f"calls {m.group(1)}(), whose body depends on the version that the database comes from"


def check_objects(name, text, where, uses):
    for m in MADE.finditer(text):
        kind, what, line = m.group(1), m.group(2), line_of(text, m.start())
        if (kind, what) in where:
            yield name, line, f"{what} is also in {where[kind, what]}"
        where[kind, what] = name
        before = text[:m.start()].splitlines()
        if kind != "TRIGGER" and not (before and before[-1].startswith("--")):
            yield name, line, f"{what} has no comment that says what it is for, or why it is so"
        if kind != "TRIGGER" and len(re.findall(rf"\b{what}\b", uses)) < 2:
            yield name, line, f"nothing in db/ uses {what}"


def check_statement(name, text, code):
    what = os.path.basename(name)[:-len(".sql")]
    if not text.startswith("--"):
        yield name, 1, "has no comment that says what it asks, and of what $1 and the others are"
    if not re.search(rf"\bdb_{what}\([^;{{]*\n\{{(?:(?!\n\}}).)*\bsql_{what}\b", code, re.S):
        yield name, 1, f"db_{what}() does not make it"


def check_number(top):
    sys.path.insert(0, os.path.join(top, "db"))
    import embed_sql
    path = os.path.join(top, "db/functions/number.txt")
    if embed_sql.number(path)[1] != embed_sql.whole(embed_sql.objects(glob.glob(os.path.join(top, "db/functions/*.sql")))):
        yield "db/functions/number.txt", 1, "is of other functions: python3 db/embed_sql.py --number"


def check_schema(top):
    def texts(*patterns):
        for path in sorted(p for g in patterns for p in glob.glob(os.path.join(top, g), recursive=True)):
            yield os.path.relpath(path, top), open(path).read()

    columns = [line for _, text in texts("db/migrations/[0-9]*.sql") for line in text.splitlines() if "GENERATED ALWAYS AS (" in line]
    where, uses = {}, COMMENT.sub("", "\n".join([*columns, *(text for _, text in texts(*TEXTS))]))
    for name, text in texts("db/functions/*.sql"):
        yield from check_objects(name, text, where, uses)
    code = "\n".join(text for _, text in texts("db/**/*.c"))
    for name, text in texts("db/sql/*.sql"):
        yield from check_statement(name, text, code)
    functions = {what for kind, what in where if kind == "FUNCTION"}
    for name, text in texts("db/migrations/[0-9]*.sql"):
        if int(os.path.basename(name).split("_")[0]) > LAST:
            yield from check_migration(name, text, functions)
    yield from check_number(top)

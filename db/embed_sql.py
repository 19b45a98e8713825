"""Writes a C file that holds every migration and every object of db/functions:
embed_sql.py OUT.c FILE.sql... NUMBER; or, after a change in db/functions: embed_sql.py --number
embed_sql.py --statements OUT.c OUT.h FILE.sql...: those of db/sql, NAME.sql as sql_NAME

Migrations are the files that begin with a number. NUMBER (functions/number.txt) has the number of the functions and the
digest of what they were then: of two programs it tells which has the newer ones, so it is raised with each change."""
import glob
import hashlib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOKEN = re.compile(r"--[^\n]*|\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'|;|[^-$';]+|.", re.S)
OBJECT = re.compile(r"CREATE (?:(OR REPLACE) )?(FUNCTION|VIEW|TRIGGER) (\w+)(?:.*? ON (\w+))?", re.S)
KINDS = ("FUNCTION", "VIEW", "TRIGGER")  # in the order in which they are laid: each may name those before it


def statements(text):
    """Without the comments before each; those inside stay."""
    cur = ""
    for m in TOKEN.finditer(text):
        if m.group(0) == ";":
            yield cur.strip()
            cur = ""
        elif cur.strip() or not m.group(0).startswith("--"):
            cur += m.group(0)
    if cur.strip():
        yield cur.strip()


def what_is(m):
    """As DROP and the table functions_laid call it."""
    kind, name, table = m.group(2), m.group(3), m.group(4)
    return f"{kind.lower()} {name}" + (f" ON {table}" if kind == "TRIGGER" else "")


def objects(files):
    """(kind, what it is, the statement) of each, in the order of laying."""
    found = {}
    for path in files:
        for sql in statements(open(path).read()):
            m = OBJECT.match(sql)
            if not m or (m.group(2) == "TRIGGER") == bool(m.group(1)):
                sys.exit(f"{path}: {sql[:60]!r}: a file here holds CREATE OR REPLACE FUNCTION or VIEW, and CREATE TRIGGER, alone")
            kind, name, table = m.group(2), m.group(3), m.group(4)
            what = what_is(m)
            if what in found:
                sys.exit(f"{path}: {what} is also in {found[what][0]}: each has one body")
            if kind == "TRIGGER":
                sql = f"DROP TRIGGER IF EXISTS {name} ON {table};\n{sql}"  # it has no OR REPLACE before PostgreSQL 14
            found[what] = path, kind, sql
    return sorted(((kind, what, sql) for what, (_, kind, sql) in found.items()), key=lambda x: KINDS.index(x[0]))


def made(migrations):
    """What they made once, and the last statement that did."""
    found = ((OBJECT.match(sql), sql) for path in sorted(migrations) for sql in statements(open(path).read()))
    return {what_is(m): sql for m, sql in found if m}


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def whole(objs):
    return digest("".join(sorted(f"{what}\n{sql}\n" for _, what, sql in objs)))


def number(path):
    n, known = open(path).read().split()
    return int(n), known


def quoted(text):
    lines = (line.replace("\\", "\\\\").replace('"', '\\"') for line in text.rstrip("\n").split("\n"))
    return "\n".join(f'     "{line}\\n"' for line in lines)


def write(out, migrations, objs, laid):
    with open(out, "w") as c:
        c.write('#include "db_migrate.h"\n\nconst struct db_migration db_migrations[] = {\n')
        for want, path in enumerate(sorted(migrations, key=os.path.basename), 1):
            name = os.path.basename(path)
            if int(name.split("_")[0]) != want:
                sys.exit(f"{name}: migrations are numbered from 0001 without a gap")
            c.write(f'    {{{want}, "{name[:-4]}",\n{quoted(open(path).read())}\n    }},\n')
        c.write("};\nconst int db_migrations_n = sizeof db_migrations / sizeof db_migrations[0];\n\n")
        former = made(migrations)
        c.write("const struct db_object db_objects[] = {\n")
        for kind, what, sql in objs:  # ALTER may have changed a function since; what is a trigger's, its statement says
            left = kind == "TRIGGER" and what in former and sql.endswith("\n" + former[what])
            c.write(f'    {{"{what}", "{digest(sql)}", {str(left).lower()},\n{quoted(sql)}\n    }},\n')
        c.write("};\nconst int db_objects_n = sizeof db_objects / sizeof db_objects[0];\n")
        c.write("const char *const db_objects_gone[] = {\n")
        c.write("".join(f'    "{what}",\n' for what in sorted(former.keys() - {what for _, what, _ in objs}, reverse=True)) + "    NULL,\n};\n")
        c.write(f"const int db_objects_number = {laid};\n")


def write_statements(out, header, files):
    found = {}
    for path in files:
        name, texts = os.path.basename(path)[:-4], list(statements(open(path).read()))
        if len(texts) != 1:
            sys.exit(f"{path}: {len(texts)} statements: a file here holds one, which db_{name}() makes")
        found[name] = texts[0]
    with open(header, "w") as h:
        h.write("".join(f"extern const char sql_{name}[];\n" for name in found))
    with open(out, "w") as c:
        c.write(f'#include "{os.path.basename(header)}"\n')
        c.write("".join(f"\nconst char sql_{name}[] =\n{quoted(text)};\n" for name, text in found.items()))


def raise_number():
    path = os.path.join(HERE, "functions", "number.txt")
    n, known = number(path)
    now = whole(objects(glob.glob(os.path.join(HERE, "functions", "*.sql"))))
    if now != known:
        with open(path, "w") as f:
            f.write(f"{n + 1} {now}\n")


def main(out, *files):
    migrations = [f for f in files if os.path.basename(f)[0].isdigit()]
    objs = objects([f for f in files[:-1] if f not in migrations])
    n, known = number(files[-1])
    if known != whole(objs):
        sys.exit("db/functions has changed: python3 db/embed_sql.py --number")
    write(out, migrations, objs, n)


if __name__ == "__main__":
    if sys.argv[1:] == ["--number"]:
        raise_number()
    elif sys.argv[1:2] == ["--statements"]:
        write_statements(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main(*sys.argv[1:])

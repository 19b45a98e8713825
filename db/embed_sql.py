"""Writes a C file that holds every migration: embed_sql.py OUT.c FILE.sql..."""
import os
import sys


def main(out, files):
    with open(out, "w") as c:
        c.write('#include "db_migrate.h"\n\nconst struct db_migration db_migrations[] = {\n')
        for want, path in enumerate(sorted(files, key=os.path.basename), 1):
            name = os.path.basename(path)
            if int(name.split("_")[0]) != want:
                sys.exit(f"{name}: migrations are numbered from 0001 without a gap")
            c.write(f'    {{{want}, "{name[:-4]}",\n')
            for line in open(path):
                text = line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"')
                c.write(f'     "{text}\\n"\n')
            c.write("    },\n")
        c.write("};\n")
        c.write("const int db_migrations_n = sizeof db_migrations / sizeof db_migrations[0];\n")


main(sys.argv[1], sys.argv[2:])

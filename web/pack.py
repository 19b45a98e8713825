"""Makes one C source of the page's files, which det-master serves from memory.

usage: pack.py DIST OUT.c DEPFILE
"""
import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".txt": "text/plain; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2", ".map": "application/json"}


def files_of(dist):
    """Names below dist, sorted: what a request names after the slash."""
    found = [os.path.relpath(os.path.join(d, f), dist) for d, _, names in os.walk(dist) for f in names]
    return sorted(found, key=lambda name: name.encode())


def array(name, data):
    rows = [",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "\n};\n"


def pack(dist):
    head, table = '#include "page.h"\n', []
    for i, name in enumerate(files_of(dist)):
        with open(os.path.join(dist, name), "rb") as f:
            plain = f.read()
        packed = gzip.compress(plain, 9, mtime=0)
        tag = hashlib.sha256(plain).hexdigest()[:16]
        head += array(f"plain_{i}", plain or b"\0") + array(f"packed_{i}", packed)
        table.append(f'    {{"{name}", "{TYPES[os.path.splitext(name)[1]]}", "{tag}",'
                     f" plain_{i}, {len(plain)}, packed_{i}, {len(packed)}}},\n")
    return head + "const struct page_file page_files[] = {\n" + "".join(table) + "};\n" + f"const size_t page_files_n = {len(table)};\n"


def main():
    dist, out, depfile = sys.argv[1:]
    text = pack(dist)
    with open(out, "w") as f:
        f.write(text)
    folders = sorted({os.path.dirname(os.path.join(dist, n)) for n in files_of(dist)})  # one that comes or goes changes its folder
    with open(depfile, "w") as f:
        read = [*folders, *(os.path.join(dist, n) for n in files_of(dist))]
        f.write(f"{out}: " + " ".join(p.replace(" ", "\\ ") for p in read) + "\n")


if __name__ == "__main__":
    main()

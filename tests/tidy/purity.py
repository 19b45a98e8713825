"""What the functions of a library need, through those of others: is the core pure, base's part in it included?

The graph is read from the objects: a function needs what its code calls, jumps to or names; a table needs what it points to.
A table without a name of its own stands for all tables of its object, which errs on the side of finding too much.
"""
import os
import re
import subprocess

# What the pure core may need from outside: memory, strings, mathematics, hashes, and assert's abort.
MAY_USE = re.compile(
    r"^(mem(cpy|move|set|cmp|chr)|str(n?len|cmp|ncmp|chr|rchr|dup|ndup|str|cspn|spn|pbrk|tol|toll|toul|toull|tod)|malloc|aligned_alloc|calloc|realloc|free|qsort|bsearch"
    r"|abort|__assert_fail|__stack_chk_fail|__v?a?sn?printf_chk|v?snprintf|vasprintf|__mem\w+_chk|__isoc\w*|__ctype_\w+|__errno_location|strerror"
    r"|f?l?(abs|floor|ceil|round|lround|llround|pow|log|log2|log10|exp|sqrt|fmod|isnan|isinf|min|max)f?l?|_GLOBAL_OFFSET_TABLE_"
    r"|timegm|gmtime_r|__cpu_model|__(asan|ubsan)\w*"  # calendars, not clocks; what instructions there are
    r"|EVP_\w+|CRYPTO_memcmp|XXH\w+|json_\w+|jsonp?_\w+)$")
PURE = ("master/core/libcore.a", "agent/core/libdet-agent-core.a", "agent/life/libdet-agent-life.a")
IMPURE = ("proto/libdet-proto.a", "base/libdet-base.a")  # what the pure need of them is looked at
LAST_WORDS = {"fprintf", "stderr"}  # may be said by whoever ends the process then and there
MEMBER = re.compile(r"(\S+):\s+file format")
FUNCTION = re.compile(r"[0-9a-f]+ <([^>]+)>:$")
SECTION = re.compile(r"(?:RELOCATION RECORDS FOR \[|Disassembly of section )([^]:]+)")
RELOCATION = re.compile(r"^\s*[0-9a-f]+:?\s+R_\w+\s+([^\s+-]+)")
DIRECT = re.compile(r"<([\w.]+)(?:\+0x[0-9a-f]+)?>$")


def read_needs(library):
    """{(member, name): {names}} of functions and of sections."""
    needs, node, member, section = {}, None, "", ""
    out = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", library], text=True, capture_output=True, check=True).stdout
    data = subprocess.run(["objdump", "-r", library], text=True, capture_output=True, check=True).stdout
    for text, code in ((out, True), (data, False)):
        for line in text.splitlines():
            if m := MEMBER.match(line):
                member, node = m[1], None
            elif m := SECTION.match(line):
                section = m[1]
                node = None if code or not section.startswith(".data") else (member, section)
            elif code and (m := FUNCTION.match(line)):
                node = (member, m[1])
                needs.setdefault(node, set())
                needs.setdefault((member, section), set()).add(m[1])  # who names only the section may mean any
            elif node and ((m := RELOCATION.match(line)) or code and (m := DIRECT.search(line))):
                needs.setdefault(node, set()).add(m[1])
    return needs


def read_global(library):
    """{name: member} of what is defined for others; data are looked at through their section."""
    out = subprocess.run(["objdump", "-t", library], text=True, capture_output=True, check=True).stdout
    member, homes = "", {}
    for line in out.splitlines():
        if m := MEMBER.match(line):
            member = m[1]
        elif (m := re.match(r"[0-9a-f]+ g.....[FO] (\S+)\s+[0-9a-f]+\s+(?:\.hidden )?(\S+)$", line)) and m[1] != "*UND*":
            homes[m[2]] = (member, m[2] if m[1].startswith(".text") else m[1])
    return homes


class Purity:
    def __init__(self, build, pure=PURE[0]):
        self.paths = [os.path.join(build, p) for p in (pure, *IMPURE)]
        self.needs, self.homes = {}, {}
        self.core = read_needs(self.paths[0])
        for path in self.paths:
            self.needs.update(read_needs(path))
            self.homes.update(read_global(path))

    def roots(self):
        return sorted(self.core)

    def violations(self):
        """(what is needed from outside, the way there from the core), each thing once."""
        came_from, queue, found = {node: None for node in self.roots()}, self.roots(), {}
        for node in queue:
            for name in sorted(self.needs.get(node, ())):
                nxt = (node[0], name) if (node[0], name) in self.needs else self.homes.get(name)
                if nxt is None:
                    dies = name in LAST_WORDS and "abort" in self.needs[node]
                    if not name.startswith(".") and not MAY_USE.match(name) and not dies:
                        found.setdefault(name, self.way(came_from, node))
                elif nxt not in came_from:
                    came_from[nxt] = node
                    queue.append(nxt)
        return sorted(found.items())

    @staticmethod
    def way(came_from, node):
        names = []
        while node:
            names.append(node[1])
            node = came_from[node]
        return " -> ".join(reversed(names))


def check_core(build):
    if not all(os.path.exists(os.path.join(build, p)) for p in (*PURE, *IMPURE)):
        return
    for pure in PURE:
        for name, way in Purity(build, pure).violations():
            yield os.path.dirname(pure), 0, f"needs {name} ({way}): it has no I/O, clock, threads or randomness"

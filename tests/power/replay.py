"""What a loss of power may leave of a recording of record.c.

The rules are those of a journalled POSIX file system, at their worst: bytes of a file that were not synced are there,
missing, torn or zero, each write for itself; a name is there only for sure once its directory was synced, and of names that
were not, any may be there with what came before them: of the same name, and of the same file. A rename is old or new.
"""
import os
import random
from dataclasses import dataclass, field

POLICIES = ("nothing", "names", "zeros", "data", "journal", "any", "any")


@dataclass
class Node:
    """A file or directory; the inode's number may be given again."""
    is_dir: bool
    writes: list = field(default_factory=list)  # (offset, bytes), or (size, None)
    synced: int = 0  # so many of them


@dataclass
class Change:
    """Of names, all at once: {(directory, name): node or None}."""
    names: dict
    nodes: set
    before: list
    synced: bool = False

    def sync(self):
        if not self.synced:
            self.synced = True
            for change in self.before:
                change.sync()


def text(word):
    return "" if word == "-" else bytes.fromhex(word).decode()


class Recording:
    """The lines of a log; `root` was there, empty, and on the disk."""

    def __init__(self, log, root):
        self.root = os.stat(root).st_ino
        with open(log) as f:
            self.lines = [line.split() for line in f]

    def without(self, forgets):
        """The same program, had it not made the calls of fsync that forgets(path) names."""
        other = object.__new__(Recording)
        other.root = self.root
        replay = Replay(self.root)
        other.lines = []
        for line in self.lines:
            if not (line[0] == "fsync" and forgets(replay.path(line[1]))):
                other.lines.append(line)
            replay.step(line)
        return other

    def states(self, seed, most):
        """At most so many, of cuts everywhere: (description, marks before the cut, state)."""
        rng = random.Random(seed)
        cuts = [(k, policy) for k in range(len(self.lines) + 1) for policy in POLICIES]
        for k, policy in sorted(rng.sample(cuts, min(most, len(cuts)))):
            replay = self.upto(k)
            yield f"seed {seed}, cut after {k} of {len(self.lines)}, {policy}", replay.marks, replay.left(policy, rng)

    def upto(self, k):
        replay = Replay(self.root)
        for line in self.lines[:k]:
            replay.step(line)
        return replay

    def whole(self):
        return self.upto(len(self.lines)).left("all", random.Random(0))


class Replay:
    def __init__(self, root):
        self.top = Node(True)
        self.nodes = {str(root): self.top}
        self.names, self.changes, self.marks = {}, [], []

    def path(self, inode):
        """Of an open one, for people; "" is the root's."""
        node, parts = self.nodes[inode], []
        by_node = {id(n): key for key, n in self.names.items() if n is not None}
        while node is not self.top and id(node) in by_node:
            where, name = by_node[id(node)]
            parts.insert(0, name)
            node = self.nodes_by_id[where]
        return "/".join(parts)

    @property
    def nodes_by_id(self):
        return {id(n): n for n in [*self.nodes.values(), *(n for n in self.names.values() if n)]}

    def change(self, *names):
        """Each (directory's inode, name, node or None)."""
        named = {(id(self.nodes[d]), name): node for d, name, node in names}
        nodes = {id(n) for n in [*named.values(), *(self.names.get(key) for key in named)] if n is not None}
        before = [c for c in self.changes if c.names.keys() & named.keys() or c.nodes & nodes]
        self.changes.append(Change(named, nodes, before))
        self.names.update(named)

    def step(self, line):
        what, *a = line
        if what in ("create", "mkdir"):
            node = self.nodes[a[2]] = Node(what == "mkdir")
            self.change((a[0], text(a[1]), node))
        elif what == "link":
            self.change((a[1], text(a[2]), self.nodes[a[0]]))
        elif what == "unlink":
            self.change((a[0], text(a[1]), None))
        elif what == "rename":
            node = self.names[id(self.nodes[a[0]]), text(a[1])]
            self.change((a[0], text(a[1]), None), (a[2], text(a[3]), node))
        elif what == "write":
            self.nodes[a[0]].writes.append((int(a[1]), b"" if a[2] == "-" else bytes.fromhex(a[2])))
        elif what == "truncate":
            self.nodes[a[0]].writes.append((int(a[1]), None))
        elif what == "fsync":
            self.sync(self.nodes[a[0]])
        elif what == "mark":
            self.marks.append(text(a[0]))
        else:
            raise ValueError(f"{what} is no line of a recording")

    def sync(self, node):
        node.synced = len(node.writes)
        for c in self.changes:
            if node.is_dir and any(where == id(node) for where, _ in c.names):
                c.sync()

    # ---- what is left ----

    def left(self, policy, rng):
        """{path: bytes, or None for a directory}"""
        names = {}
        for c in self.chosen(policy, rng):
            names.update(c.names)
        found, nodes = {}, {}
        stack = [(self.top, "")]
        while stack:
            top, base = stack.pop()
            for (where, name), node in names.items():
                if where != id(top) or node is None:
                    continue
                if node.is_dir:
                    found[base + name + "/"] = None
                    stack.append((node, base + name + "/"))
                else:
                    found[base + name] = nodes.setdefault(id(node), self.bytes_of(node, policy, rng))
        return found

    def chosen(self, policy, rng):
        """The changes of names that reached the disk, in order; each with all that came before it."""
        reached = {id(c) for c in self.changes if c.synced}
        open_ones = [c for c in self.changes if not c.synced]
        if policy in ("all", "names", "zeros"):
            wanted = len(open_ones)
        elif policy == "journal":
            wanted = rng.randint(0, len(open_ones))
        else:
            wanted = 0
        reached |= {id(c) for c in open_ones[:wanted]}
        for c in open_ones if policy == "any" else ():
            if rng.random() < 0.5 and all(id(b) in reached for b in c.before):
                reached.add(id(c))
        return [c for c in self.changes if id(c) in reached]

    @staticmethod
    def bytes_of(node, policy, rng):
        data = bytearray()
        for i, (at, what) in enumerate(node.writes):
            fate = "there"
            if i >= node.synced:
                fate = {"all": "there", "data": "there", "nothing": "missing", "names": "missing", "zeros": "zero"}.get(policy) \
                    or rng.choice(("there", "missing", "zero", "torn"))
            if fate == "missing":
                continue
            if what is None:
                data[at:] = bytes(max(0, at - len(data)))
                continue
            what = {"zero": bytes(len(what)), "torn": what[:rng.randint(0, len(what))]}.get(fate, what)
            data.extend(bytes(max(0, at - len(data))))
            data[at:at + len(what)] = what
        return bytes(data)


def read(top):
    """What is there, as left() tells it."""
    found = {}
    for where, dirs, files in os.walk(top):
        base = os.path.relpath(where, top)
        base = "" if base == "." else base + "/"
        found.update({base + d + "/": None for d in dirs})
        for name in files:
            with open(os.path.join(where, name), "rb") as f:
                found[base + name] = f.read()
    return found


def lay(state, top):
    for path, data in sorted(state.items()):
        where = os.path.join(top, path)
        if data is None:
            os.makedirs(where, exist_ok=True)
        else:
            with open(where, "wb") as f:
                f.write(data)

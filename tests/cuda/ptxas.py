#!/usr/bin/env python3
"""The kernels as they were compiled: registers spilled and stack frames only where ALLOWED says why, and no more there.

usage: ptxas.py NVCC REPORT... [--list]    REPORT: a .ptxas beside a kernel's object; --list: a row of each, by registers

Exit status 77: NVCC is of another release than the one that ALLOWED was made by, nothing was tested.
"""
import re
import subprocess
import sys

RELEASE = "13.0"
AT_ONCE = "so that as many blocks run at once as its __launch_bounds__ say: one that waits for memory is passed by another"
ANGLES = "the compiler's sine of large angles"
# Found in a kernel's name -> most bytes of its stack frame, most bytes spilled, why. By nvcc RELEASE, sm_80 and sm_90. A frame
# is memory of the device, for each thread. Of several that are found the first counts.
ALLOWED = (
    (r"rotary<", 40, 0, ANGLES),
    (r"unary(_bwd)?<", 40, 0, ANGLES),
    (r"pad_bwd<", 320, 0, "where a place is mirrored to, in each dimension"),
    (r"cuda_each_tile<through<cuda_any<", 352, 612, "batch norm's gradient of unlike dtypes. " + AT_ONCE),
    (r"cuda_each_tile<normalised<cuda_any<double", 136, 164, AT_ONCE),
    (r"cuda_tile_parts<true, moments<", 120, 200, AT_ONCE),
    (r"cuda_tile_parts<true, column_sums<cuda_any<", 192, 212, AT_ONCE),
    (r"cuda_tile_parts<false, column_sums<", 24, 28, AT_ONCE),
    (r"flash_keys<flash_half<\w+>, 64, \(flash_kind\)0>", 136, 456, "attention with a mask or of odd widths. " + AT_ONCE),
    (r"flash_queries<flash_half<\w+>, 128, \(flash_kind\)0>", 112, 240, "the same. " + AT_ONCE),
    (r"flash_(forward|queries|keys)<flash_half<\w+>, (64|128), \(flash_kind\)[12]>", 40, 56, AT_ONCE),
)
COMPILED = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


class Kernel:
    def __init__(self, name, arch):
        self.name, self.arch, self.stack, self.spilled, self.registers = name, arch, None, 0, None

    def is_whole(self):
        return self.stack is not None and self.registers is not None


def parse(text):
    """The kernels of a report. A function that a kernel calls has a frame of its own, which counts as the kernel's."""
    kernels = []
    for line in text.splitlines():
        if found := COMPILED.search(line):
            kernels.append(Kernel(*found.groups()))
        elif found := FRAME.search(line):
            stack, stores, loads = map(int, found.groups())
            kernels[-1].stack = max(kernels[-1].stack or 0, stack)
            kernels[-1].spilled = max(kernels[-1].spilled, stores, loads)
        elif found := USED.search(line):
            kernels[-1].registers = int(found.group(1))
    return kernels


def demangle(kernels):
    names = subprocess.run(["c++filt"], input="\n".join(k.name for k in kernels), capture_output=True, text=True, check=True,
                           timeout=60).stdout.splitlines()
    for kernel, name in zip(kernels, names):
        kernel.name = name


def allowed(name, table):
    """(bytes of a frame, bytes spilled)"""
    return next(((stack, spilled) for part, stack, spilled, _ in table if re.search(part, name)), (0, 0))


def problems(kernels, table):
    for k in kernels:
        stack, spilled = allowed(k.name, table)
        if not k.is_whole():
            yield f"{k.arch} {k.name}: ptxas says nothing of its registers or its frame"
        elif k.spilled > spilled:
            yield f"{k.arch} {k.name}: {k.spilled} bytes spilled with {k.registers} registers; ALLOWED of ptxas.py has {spilled}"
        elif k.stack > stack:
            yield f"{k.arch} {k.name}: a stack frame of {k.stack} bytes; ALLOWED of ptxas.py has {stack}"


def unused(kernels, table):
    """Rows of the table that nothing needs any more."""
    for part, *_ in table:
        if not any(re.search(part, k.name) and k.stack for k in kernels):
            yield f"no kernel like '{part}' has a stack frame: strike it from ALLOWED of ptxas.py"


def release(said):
    """Of what nvcc --version says: "13.0"; "" where it says none."""
    found = re.search(r"release (\d+\.\d+)", said)
    return found.group(1) if found else ""


def release_of(nvcc):
    return release(subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout)


def read(reports):
    kernels = []
    for path in reports:
        with open(path, encoding="utf-8") as f:
            kernels += parse(f.read())
    demangle(kernels)
    return kernels


def main():
    nvcc, *reports = [a for a in sys.argv[1:] if a != "--list"]
    kernels, this = read(reports), release_of(nvcc)
    if "--list" in sys.argv:
        for k in sorted(kernels, key=lambda k: -(k.registers or 0)):
            print(f"{k.registers:4} {k.stack:4} {k.spilled:4} {k.arch} {k.name}")
    if this != RELEASE:
        print(f"nothing was tested: {nvcc} is of release {this or 'unknown'}, and the limits are those of {RELEASE}")
        return 77
    found = list(problems(kernels, ALLOWED)) + list(unused(kernels, ALLOWED))
    if not kernels:
        found.append("no kernel was compiled")
    spill = sum(1 for k in kernels if k.spilled)
    print("\n".join(found) or f"{len(kernels)} kernels; {spill} spill, as far as they may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

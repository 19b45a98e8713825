#!/usr/bin/env python3
"""What ptxas.py makes of a compiler's words."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ptxas  # noqa: E402

ONE = """ptxas info    : Compiling entry function '{name}' for 'sm_90'
ptxas info    : Function properties for {name}
    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, {stack} bytes cumulative stack size
ptxas info    : Compile time = 1.5 ms
"""
TABLE = ((r"known<", 40, 16, "a reason"),)


def report(name, stack=0, stores=0, loads=0, registers=32):
    return ptxas.parse(ONE.format(name=name, stack=stack, stores=stores, loads=loads, registers=registers))


def said(*kernels):
    return list(ptxas.problems(sum(kernels, []), TABLE))


def main():
    kernel = report("plain", registers=77)[0]
    assert (kernel.name, kernel.arch, kernel.registers, kernel.stack, kernel.spilled) == ("plain", "sm_90", 77, 0, 0)
    assert not said(report("plain"), report("known<1>", 40, 16, 12))
    assert "8 bytes spilled with 255" in said(report("plain", 8, 4, 8, 255))[0]
    assert "20 bytes spilled" in said(report("known<1>", 40, 20, 4))[0]
    assert "stack frame of 41" in said(report("known<1>", 41))[0]
    assert "stack frame of 8" in said(report("plain"), report("other", 8))[0]
    of_call = ptxas.parse(ONE.format(name="plain", stack=0, stores=0, loads=0, registers=9)
                          + "ptxas info    : Function properties for called\n    24 bytes stack frame, 0 bytes spill stores, "
                          "0 bytes spill loads\n")
    assert "stack frame of 24" in said(of_call)[0]
    assert ptxas.release("Copyright (c) 2005-2025\nCuda compilation tools, release 12.8, V12.8.93\n") == "12.8" and ptxas.release("") == ""
    cut = ptxas.parse("ptxas info    : Compiling entry function 'cut' for 'sm_90'\n")
    assert "says nothing" in said(cut)[0]
    assert list(ptxas.unused(report("plain"), TABLE)) and not list(ptxas.unused(report("known<1>", 8), TABLE))


main()

#!/usr/bin/env python3
"""Kernels for functions.cu: OUT/functions.ptx, each function in exact and in approximate form.

usage: functions.py QDC OUT [CHIP]
"""
import os
import subprocess
import sys

KERNEL = """qd.kernel @{name}(%x: !qd.buffer<f32> readonly, %step: f32, %rounds: i32, %y: !qd.buffer<f32>) block(256) {{
  %i = qd.global_thread_id x : i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant 0.0 : f32
  %start = qd.load %x[%i] : !qd.buffer<f32>
  %sum, %last = scf.for %k = %zero to %rounds step %one iter_args(%s = %none, %v = %start) -> (f32, f32) : i32 {{
    %f = math.{op} {operands}{flags} : f32
    %t = arith.addf %s, %f : f32
    %w = arith.addf %v, %step : f32
    scf.yield %t, %w : f32, f32
  }}
  qd.store %sum, %y[%i] : !qd.buffer<f32>
  qd.return
}}
"""
FUNCTIONS = {"exp": "%v", "log": "%v", "sin": "%v", "powf": "%v, %step"}


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    qdc, folder = sys.argv[1:3]
    chip = sys.argv[3] if len(sys.argv) > 3 else "sm_90"
    os.makedirs(folder, exist_ok=True)
    text = "".join(KERNEL.format(name=op + suffix, op=op, operands=operands, flags=flags)
                   for op, operands in FUNCTIONS.items() for suffix, flags in (("", ""), ("_fast", " fastmath<afn>")))
    source = os.path.join(folder, "functions.qir")
    with open(source, "w") as file:
        file.write(text)
    subprocess.run([qdc, source, "-target=nvptx:" + chip, "-o", os.path.join(folder, "functions.ptx")], check=True)


main()

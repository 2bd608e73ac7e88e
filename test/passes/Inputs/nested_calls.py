"""Prints a kernel that calls a function that calls a function ..., as many as the argument says."""
import sys

count = int(sys.argv[1])
print("func.func private @f0(%v: i32) -> i32 {\n  return %v : i32\n}")
for i in range(1, count):
    print(f"func.func private @f{i}(%v: i32) -> i32 {{\n  %r = func.call @f{i - 1}(%v) : (i32) -> i32\n"
          f"  %s = arith.addi %r, %v : i32\n  return %s : i32\n}}")
print(f"""qd.kernel @k(%y: !qd.buffer<i32>) block(1) {{
  %one = arith.constant 1 : i32
  %r = func.call @f{count - 1}(%one) : (i32) -> i32
  qd.store %r, %y[0] : !qd.buffer<i32>
  qd.return
}}""")

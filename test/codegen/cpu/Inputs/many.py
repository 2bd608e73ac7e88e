# Prints a kernel of many ops, each on the result of the one before:  many.py shuffle|sort|divide COUNT
import sys

op, count = sys.argv[1], int(sys.argv[2])
block, array = (7, "!qd.buffer<i64>") if op == "divide" else (64, "!qd.buffer<i32>")
print(f"qd.kernel @many(%x: {array}, %y: {array}) block({block}) {{")
print(f"  %t = qd.thread_index : i32\n  %last = arith.constant 63 : i32\n  %v0 = qd.load %x[%t] : {array}")
for k in range(count):
    if op == "shuffle":
        print(f"  %w{k} = qd.subgroup.shuffle %v{k}, %v{k} : i32\n  %c{k} = arith.constant {k % 64} : i32")
        print(f"  %s{k} = arith.addi %w{k}, %c{k} : i32\n  %v{k + 1} = arith.andi %s{k}, %last : i32")
    elif op == "sort":
        print(f"  %c{k} = arith.constant {k % 64} : i32\n  %w{k} = arith.xori %v{k}, %c{k} : i32")
        print(f"  %v{k + 1} = qd.subgroup.bitonic_sort %w{k} : i32")
    else:
        print(f"  %d{k} = qd.load %x[%t] : {array}\n  %c{k} = arith.constant {1000 + k} : i64")
        print(f"  %s{k} = arith.addi %v{k}, %c{k} : i64\n  %v{k + 1} = arith.floordivsi %s{k}, %d{k} : i64")
        print(f"  qd.store %v{k + 1}, %y[%t] : {array}")
print(f"  qd.store %v{count}, %y[%t] : {array}\n  qd.return\n}}")

# SPDX-License-Identifier: Apache-2.0
"""A table in far memory as a Python dictionary. Needs a rack: aquifer up.

    python3 kv.py
"""
import aquifer_kv

with aquifer_kv.create("example", 1000) as table:
    table["ann"] = "42"
    table["bob"] = "7"
    print("ann:", table["ann"].decode())
    print("visits:", table.incr("visits"))
    print("keys:", ", ".join(sorted(k.decode() for k in table)))
    del table["bob"]
    print("bob is", "here" if "bob" in table else "gone")
aquifer_kv.drop("example")

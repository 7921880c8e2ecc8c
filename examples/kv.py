# SPDX-License-Identifier: Apache-2.0
"""A table in far memory as a Python dictionary. Needs a rack: aquifer up.

    python3 kv.py
"""
import aquifer

with aquifer.Rack() as rack:
    with rack.create_table("example", 1000) as table:
        table["ann"] = b"42"
        table["bob"] = b"7"
        print("ann:", table["ann"].decode())
        print("visits:", table.increment("visits"))

        # Many at once are much faster than one after the other.
        table.put_many((f"user{i}", b"%d" % i) for i in range(100))
        print("three users:", table.get_many(["user1", "user2", "user100"]))
        print("keys:", len(table))

        del table["bob"]
        print("bob is", "here" if "bob" in table else "gone")
    rack.drop_table("example")

# SPDX-License-Identifier: Apache-2.0
"""Far memory for asyncio: an engine of the rack moves the data while the event
loop goes on. Needs a rack with an engine: aquifer up.

    python3 async.py
"""
import asyncio

import aquifer


async def square(region: aquifer.Region, i: int) -> int:
    await region.write_async(8 * i, (i * i).to_bytes(8, "little"))
    return int.from_bytes(await region.read_async(8 * i, 8), "little")


async def main(region: aquifer.Region) -> None:
    squares = await asyncio.gather(*(square(region, i) for i in range(16)))
    print("sum of squares:", sum(squares))


with aquifer.Rack() as rack:
    with rack.create_region("example", 4096) as region:
        asyncio.run(main(region))
    rack.delete_region("example")

"""How many documents a second the explorer answers, beside `infer` on a file of the same documents.

    python benchmarks/explore.py RUN FILE --requests 10000 --documents 1

The server has one core and one thread, the clients another; the two are measured in one go. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from urllib.request import urlopen

import psutil

from ssdvae.data.events import document_to_record
from ssdvae.data.readers import read_documents

PORT = 8799
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
INFER = """
import sys, time, ssdvae
run, file, out = sys.argv[1:]
model = ssdvae.load(run)
ssdvae.write_answers(ssdvae.infer(model, file, progress=False), out)  # once, to warm up
begin, work = time.perf_counter(), time.process_time()
count = ssdvae.write_answers(ssdvae.infer(model, file, progress=False), out)
print(count / (time.perf_counter() - begin), count / (time.process_time() - work))
"""


def pinned(core: int, *command: str) -> list[str]:
    return ["taskset", "-c", str(core), *command]


def infer_rates(run: str, file: Path) -> list[float]:
    """Return documents of `infer` a second, by the clock and by the processor, without the time to start."""
    with tempfile.TemporaryDirectory() as folder:
        command = pinned(0, sys.executable, "-c", INFER, run, str(file), f"{folder}/out.jsonl")
        done = subprocess.run(command, env=ONE_THREAD, check=True, capture_output=True, text=True)
    return [float(rate) for rate in done.stdout.split()]


def as_request(documents: list[dict[str, object]]) -> bytes:
    body = json.dumps({"documents": documents}).encode()
    head = f"POST /api/infer HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


async def client(requests: list[bytes], statuses: Counter[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=2**24)
    for request in requests:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        await reader.readexactly(length)
        statuses[int(head.split()[1])] += 1
    writer.close()


async def load(requests: list[bytes], clients: int) -> tuple[float, Counter[int]]:
    statuses: Counter[int] = Counter()
    begin = time.perf_counter()
    await asyncio.gather(*(client(requests[n::clients], statuses) for n in range(clients)))
    return time.perf_counter() - begin, statuses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run")
    parser.add_argument("file", type=Path)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=1, help="documents of a request")
    args = parser.parse_args()
    documents = [document_to_record(document) for document in read_documents(args.file)]
    given = cycle(documents)
    requests = [as_request(list(islice(given, args.documents))) for _ in range(args.requests)]
    before = infer_rates(args.run, args.file)
    command = [sys.executable, "-m", "ssdvae", "explore", args.run, "--port", str(PORT), "--no-open"]
    server = subprocess.Popen(pinned(0, *command), env=ONE_THREAD)
    try:
        while True:
            try:
                urlopen(f"http://127.0.0.1:{PORT}/api/models").close()
                break
            except OSError:
                time.sleep(0.5)
        os.sched_setaffinity(0, {1})
        process = psutil.Process(server.pid)
        asyncio.run(load(requests[: args.requests // 10], args.clients))  # warm: as many as will ever wait
        begun, work = process.memory_info().rss, sum(process.cpu_times()[:2])
        seconds, statuses = asyncio.run(load(requests, args.clients))
        ended, work = process.memory_info().rss, sum(process.cpu_times()[:2]) - work
    finally:
        server.terminate()
        server.wait()
    after = infer_rates(args.run, args.file)
    total = args.requests * args.documents
    served = [total / seconds, total / work]
    infer = [(a + b) / 2 for a, b in zip(before, after, strict=True)]
    for place, unit in enumerate(("a second", "a second of the processor")):
        print(
            f"documents {unit}: explore {served[place]:,.0f}, infer on the file {infer[place]:,.0f} "
            f"({before[place]:,.0f} before, {after[place]:,.0f} after): {served[place] / infer[place]:.0%}"
        )
    print(f"requests a second       {args.requests / seconds:,.0f}")
    print(f"answers by status       {dict(statuses)}")
    megabytes = [f"{rss / 2**20:,.0f} MB" for rss in (begun, ended)]
    print(f"memory of the server    {megabytes[0]} after the first tenth, {megabytes[1]} at the end")


if __name__ == "__main__":
    main()

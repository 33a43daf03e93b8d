"""How long a live search takes on this GPU: cold (no cubin cached), warm (all cached, a fresh process), known receipts.

`python -m benchmarks.live [OP ROWSxWIDTH DTYPE]` prints one line a case. The original's compilation is not part of a
search and is printed apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

COLD_LIMIT_S, WARM_LIMIT_S = 12.0, 0.1


def main(arguments: list[str]) -> int:
    """Run the cases in fresh processes and compare them with their limits."""
    op, shape, dtype = arguments or ["scan", "128x8192", "float16"]
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (_measured(op, shape, dtype, folder) for _ in range(2))
    print(f"live search of {op} {shape} {dtype} on {cold['gpu']}")
    for name, found, limit in (("cold", cold, COLD_LIMIT_S), ("warm", warm, WARM_LIMIT_S)):
        verdict = "within" if found["search_s"] <= limit else "past"
        print(
            f"{name}: {found['search_s']:.3f} s, {verdict} {limit} s; {found['compiler_calls']} compiler calls, "
            f"{found['cache_hits']} cache hits; original and target {found['original_s']:.3f} s; "
            f"picked {found['picked']}"
        )
    print(f"another shape, receipts known: {warm['known_s'] * 1000:.2f} ms")
    return 0


def _measured(op: str, shape: str, dtype: str, folder: str) -> dict[str, object]:
    environment = {**os.environ, "ROWSMITH_CACHE_DIR": folder}
    command = [sys.executable, "-m", "benchmarks.live", "--one", op, shape, dtype]
    answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _one(op: str, shape: str, dtype: str) -> None:
    from features.workload import workload
    from kernels import driver
    from rowsmith.live import dispatcher

    device = driver.current_device()
    extents = [int(part) for part in shape.split("x")]
    work = workload(op, extents, dtype)
    started = time.perf_counter()
    ready = dispatcher(device).ready(work)
    total_s = time.perf_counter() - started
    search_s = 0.0 if ready.found is None else ready.found.elapsed_ns / 1e9
    started = time.perf_counter()
    dispatcher(device).ready(workload(op, [extents[0] + 1, *extents[1:]], dtype))
    known_s = time.perf_counter() - started
    print(
        json.dumps(
            {
                "gpu": dispatcher(device).target.label,
                "search_s": search_s,
                "original_s": total_s - search_s,
                "known_s": known_s,
                "compiler_calls": 0 if ready.found is None else ready.found.compiler_calls,
                "cache_hits": 0 if ready.found is None else ready.found.cache_hits,
                "picked": ready.prepared.chosen.recipe.id,
            }
        )
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _one(*sys.argv[2:5])
    else:
        sys.exit(main(sys.argv[1:]))

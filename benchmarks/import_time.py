"""Time of ``import evenscore``, against starting Python alone and against ``import numpy``; best of several runs.

Claim: below 0.3 s.
"""

import subprocess
import sys
import time

RUNS = 7


def seconds(statement: str) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    nothing, numpy = seconds("pass"), seconds("import numpy")
    for statement in ("import evenscore", "import evenscore.tables", "import evenscore.cli.app"):
        taken = seconds(statement) - nothing
        print(f"{statement:28} {taken:6.3f} s   {taken / (numpy - nothing):5.2f} x import numpy")


if __name__ == "__main__":
    main()

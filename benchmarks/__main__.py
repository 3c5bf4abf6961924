"""python -m benchmarks [NAME ...]: run every benchmark, or those named."""

import importlib
import pkgutil
import sys
import time
from pathlib import Path


def main(names: list[str]) -> int:
    there = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if not m.name.startswith("_"))
    if unknown := [name for name in names if name not in there]:
        print(f"error: no benchmark {', '.join(unknown)}; there are {', '.join(there)}", file=sys.stderr)
        return 2
    for name in names or there:
        module = importlib.import_module(f"benchmarks.{name}")
        if hasattr(module, "main"):
            print(f"== {name} ==", flush=True)
            began = time.perf_counter()
            module.main()
            print(f"({time.perf_counter() - began:.0f} s)\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

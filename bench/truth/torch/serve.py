#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs mlp.py many times without importing PyTorch each time: every line of standard input asks for one run, in a child
# that has not touched CUDA yet and gets variables of its own. Prints the run's line of JSON, then one with its seconds.
"""stdin: {"environment": {"NAME": "VALUE"}, "arguments": ["--steps", "500"]} a line"""

import json
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mlp  # noqa: E402


def main():
    if "--import-all" in sys.argv:
        import torch._dynamo  # noqa: F401: what the first step of an optimizer imports takes seconds
    for line in sys.stdin:
        asked = json.loads(line)
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            os.environ.update(asked.get("environment", {}))
            sys.argv = ["mlp.py"] + asked.get("arguments", [])
            mlp.main()
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"served": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begin}), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds strangers' programs and their CUDA twins from checkouts of their repositories, unchanged:
#   build.py --polybench DIR --hecbench DIR --out DIR [--set N] [--plan-only] [names...]
# NAME.cpu is the ordinary build, NAME.best one for the widest CPU, NAME.gpu the twin.
import argparse
import itertools
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OPENMP = ["-fopenmp", "-foffload=disable"]
BEST = ["-Ofast", "-march=x86-64-v4"]
# What a compiler can spread by itself of a program that nobody has.
SPREAD = ["-floop-parallelize-all", "-ftree-parallelize-loops=16"]
NVCC = ["nvcc", "-O3", "-arch=sm_90", "-w", "-cudart", "shared", "-std=c++17"]


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        return errors[0][:160] if errors else "failed"
    return ""


def polybench(program, root, out):
    name = program["name"]
    defines = ["-D" + one for one in program["sizes"].split()]
    common = ["-w", "-DDATA_TYPE=float", '-DDATA_PRINTF_MODIFIER="%0.2f "', "-DPOLYBENCH_TIME", *defines]
    cpu, gpu = root / "OpenMP" / program["cpu"], root / "CUDA" / program["gpu"]
    source = [root / "OpenMP/utilities/polybench.c", cpu]
    paths = ["-I", root / "OpenMP/utilities", "-I", cpu.parent]
    threads = [] if program.get("serial") else OPENMP
    spread = SPREAD if program.get("serial") else OPENMP
    yield "cpu", call(["gcc", "-O3", *threads, *common, *paths, *source, "-o", out / f"{name}.cpu", "-lm"])
    yield "best", call(["gcc", *BEST, *spread, *common, *paths, *source, "-o", out / f"{name}.best", "-lm"])
    # Sizes come before the twin's own header, which keeps what is defined already.
    header = out / f"{name}.h"
    header.write_text("#include <cuda.h>\n#include <cuda_runtime.h>\n"  # they would not survive a macro called N
                      + "".join(f"#define {d.replace('=', ' ')}\n" for d in program["sizes"].split())
                      + "#define cudaThreadSynchronize cudaDeviceSynchronize\n")
    yield "gpu", call([*NVCC, "-include", header, *common[1:4], "-I", root / "CUDA/utilities", "-I", root / "common",
                       "-I", gpu.parent, gpu, "-o", out / f"{name}.gpu"])
    header.unlink()


def hecbench(program, root, out):
    name = program["name"]
    cpu, gpu = root / f"{name}-omp", root / f"{name}-cuda"
    sources = [cpu / program["cpu"]] if "cpu" in program else sorted(p for p in [*cpu.glob("*.cpp"), *cpu.glob("*.c")])
    common = ["-std=c++17", "-w", "-I", cpu, "-I", root / "include", "-I", gpu]
    for kind, flags in (("cpu", ["-O3"]), ("best", BEST)):
        yield kind, call(["g++", *flags, *OPENMP, *common, *sources, "-o", out / f"{name}.{kind}", "-lm"])
    twins = [gpu / program["gpu"]] if "gpu" in program else sorted(
        p for p in [*gpu.glob("*.cu"), *gpu.glob("*.cpp"), *gpu.glob("*.c")])
    yield "gpu", call([*NVCC, "-I", gpu, "-I", root / "include", "-I", cpu, *twins, "-o", out / f"{name}.gpu"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--polybench", type=pathlib.Path, required=True)
    parser.add_argument("--hecbench", type=pathlib.Path, required=True, help="its src folder")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--set", type=int, default=0)
    parser.add_argument("--plan-only", action="store_true", help="the ordinary build alone")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for program in json.loads((HERE / "programs.json").read_text())["programs"]:
        if options.set and program["set"] != options.set or options.names and program["name"] not in options.names:
            continue
        make, root = (polybench, options.polybench) if program["suite"] == "polybench" else (hecbench, options.hecbench)
        for kind, error in itertools.islice(make(program, root, options.out), 1 if options.plan_only else None):
            failed += bool(error)
            print(f"{program['name']:14} {kind:5} {error or 'built'}", flush=True)
    for name, source in (("cpu", "cpu_clock.c"), ("gpu", "gpu_clock.cpp")):
        compiler, library = "g++" if name == "gpu" else "gcc", options.out / f"lib{name}_clock.so"
        command = [compiler, "-O2", "-fPIC", "-shared", HERE / source, "-o", library]
        if name == "gpu":
            command += ["-std=c++20", "-I/usr/local/cuda/include", "-L/usr/local/cuda/lib64", "-lcudart"]
        error = call(command + ["-ldl"])
        failed += bool(error)
        print(f"{name + ' clock':20} {error or 'built'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""What torch_peers.py --beside stands on, without PyTorch and without a GPU: modules through the C contract, turns, ratios.

    beside_test.py MODULES [CUDA_MODULE]

MODULES is the folder of the test modules; CUDA_MODULE is loaded where there is one.
"""
import array
import contextlib
import ctypes
import importlib
import os
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
from with_torch.intervals import MAX_REPLAYS, MIN_REPLAYS, advantage, in_turns, interval  # noqa: E402
from with_torch.module import Args, Kernel, Module, Unavailable  # noqa: E402

MODULES, CUDA = "", ""


def test_module(name):
    return os.path.join(MODULES, f"libfulcrum_{name}.so")


class Modules(unittest.TestCase):
    def test_a_kernel_runs_on_memory_of_ours(self):
        x, out = array.array("f", [-1.0, 2.0, -3.0, 4.0]), array.array("f", [9.0] * 4)
        module = Module(test_module("testmodule"))
        self.assertEqual(module.name, "testmodule")
        call = module.call("relu", "plain", "f32", [x.buffer_info()[0], out.buffer_info()[0]], [3], [])
        call()
        call.close()
        self.assertEqual(list(out), [0.0, 2.0, 0.0, 9.0])

    def test_what_a_module_does_not_have_is_named(self):
        module = Module(test_module("testmodule"))
        for op, variant, dtype in (("gelu", "plain", "f32"), ("relu", "fast", "f32"), ("relu", "plain", "f16")):
            with self.assertRaisesRegex(Unavailable, f"no {op}/{variant} of {dtype}"):
                module.call(op, variant, dtype, [], [], [])

    def test_another_version_of_the_contract_is_refused(self):
        with self.assertRaisesRegex(Unavailable, "version"):
            Module(test_module("testfuture"))

    def test_a_library_that_is_no_module_is_refused(self):
        with self.assertRaisesRegex(Unavailable, "fulcrum_backend_v1"):
            Module(test_module("testforeign"))
        with self.assertRaises(Unavailable):
            Module(test_module("nobody"))

    def test_the_structs_are_those_of_the_contract(self):
        self.assertEqual(ctypes.sizeof(Args), 8 * (8 + 8 + 8 + 2))
        self.assertEqual(Kernel.supports.offset, 72)
        self.assertEqual(Kernel.run.offset, 96)

    def test_the_cuda_module_loads_and_says_why_it_cannot_serve(self):
        if not CUDA:
            self.skipTest("it was not built")
        try:
            module = Module(CUDA)
        except Unavailable as reason:  # no driver, no device
            self.assertGreater(len(str(reason)), 10)
            return
        found = {(k.op, k.variant) for k in module.kernels()}
        self.assertIn((b"matmul", b"default"), found)
        self.assertIn((b"attention", b"default"), found)


class Turns(unittest.TestCase):
    def contestants(self, speeds):
        """Replays of known lengths on a clock that only they move, which all slows down as time goes on."""
        now, order = [0.0], []

        def replay(name, seconds):
            def once():
                order.append(name)
                took = seconds * (1 + now[0])
                now[0] += took
                return took
            return once

        return {name: replay(name, seconds) for name, seconds in speeds.items()}, order, lambda: now[0]

    def test_they_go_forwards_and_backwards(self):
        contestants, order, clock = self.contestants({"a": 1e-4, "b": 1e-4})
        samples = in_turns(contestants, 1e-3, clock)
        self.assertEqual(order[:8], ["a", "b", "b", "a"] * 2)
        self.assertEqual([len(s) for s in samples.values()], [MIN_REPLAYS] * 2)

    def test_a_clock_that_drifts_does_not_move_the_ratio(self):
        contestants, _, clock = self.contestants({"ours": 1e-3, "theirs": 1.5e-3})
        samples = in_turns(contestants, 1.0, clock)
        self.assertGreater(samples["ours"][-1], 1.5 * samples["ours"][0])
        ratio = advantage(samples["ours"], samples["theirs"])
        self.assertLessEqual(ratio["ci_low"], 1.5)
        self.assertGreaterEqual(ratio["ci_high"], 1.5)
        self.assertLess(ratio["ci_high"] - ratio["ci_low"], 0.02)

    def test_long_calls_have_fewer_rounds_and_short_ones_an_end(self):
        contestants, _, clock = self.contestants({"a": 5.0})
        self.assertEqual(len(in_turns(contestants, 0.1, clock)["a"]), 6)
        self.assertEqual(len(in_turns({"a": lambda: 1e-9}, 1.0, lambda: 0.0)["a"]), MAX_REPLAYS)

    def test_an_interval_is_that_of_order_statistics(self):
        found = interval(range(1, 11))  # ranks 2 and 9 of ten hold the median in 97.9 of 100 cases, 3 and 8 in 89.1
        self.assertEqual((found["median"], found["ci_low"], found["ci_high"]), (5.5, 2, 9))


class Streams:
    """As much of PyTorch as a recording needs: who waited for the stream that makes the operands. Streams of PyTorch do
    not wait for the default one by themselves."""

    class Stream:
        def __init__(self):
            self.sees_operands = False

        def wait_stream(self, other):
            self.sees_operands |= other.sees_operands

    def __init__(self):
        self.default = self.current = self.Stream()
        self.default.sees_operands = True

    def module(self):
        @contextlib.contextmanager
        def use(stream):
            before, self.current = self.current, stream
            yield
            self.current = before

        event = types.SimpleNamespace(record=lambda: None, elapsed_time=lambda _: 0.01)
        graph = types.SimpleNamespace(replay=lambda: None)
        properties = types.SimpleNamespace(L2_cache_size=1)
        cuda = types.SimpleNamespace(
            Stream=self.Stream, stream=use, current_stream=lambda: self.current, synchronize=lambda: None,
            Event=lambda **_: event, CUDAGraph=lambda: graph, graph=lambda _: use(self.default),
            get_device_properties=lambda _: properties)
        return types.SimpleNamespace(cuda=cuda, float32=None, float16=None, bfloat16=None)


class Recordings(unittest.TestCase):
    def test_the_first_calls_wait_until_the_operands_are_made(self):
        streams, seen = Streams(), []
        with mock.patch.dict(sys.modules, torch=streams.module()):
            sys.modules.pop("with_torch.measuring", None)
            bench = importlib.import_module("with_torch.measuring").Bench(0.1)
            _, calls = bench.capture(lambda _: seen.append(streams.current.sees_operands), [(0,), (1,)])
        self.assertEqual(len(seen), 3 + calls)  # two sets once, one again with a clock, and what is recorded
        self.assertNotIn(False, seen)


if __name__ == "__main__":
    MODULES, CUDA = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    unittest.main(argv=sys.argv[:1])

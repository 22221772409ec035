"""Tests the module on a kernel with kcov, as root: in a guest. Needs numpy."""

import array
import ctypes
import gc
import os
import threading
import unittest

import kcov
import numpy


def stat(path):
    try:
        os.stat(path)
    except OSError:
        pass


class OnKernel(unittest.TestCase):
    def test_program_counters(self):
        with kcov.trace() as t:
            stat("/")
        self.assertGreater(len(t), 30)
        self.assertFalse(t.truncated)
        self.assertEqual(len(t.pcs), len(t))
        text = kcov.text()
        self.assertTrue(all(pc in text.link_time for pc in t.pcs))
        self.assertTrue(all(kcov.call_site(pc) < pc for pc in t.pcs))
        self.assertEqual(kcov.run_time(t.pcs[0], text.kaslr_offset) - t.pcs[0], text.kaslr_offset)

    def test_numpy_takes_the_records_in_place(self):
        with kcov.trace() as t:
            stat("/")
        records = numpy.asarray(t.pcs)
        self.assertEqual(records.dtype, numpy.uint64)
        self.assertFalse(records.flags.owndata or records.flags.writeable)
        other = numpy.asarray(t.pcs)
        self.assertEqual(records.ctypes.data, other.ctypes.data)
        kept = records.tolist()
        # The view keeps the buffer.
        del t, other
        gc.collect()
        self.assertEqual(records.tolist(), kept)

    def test_comparisons(self):
        with kcov.trace(comparisons=True) as t:
            stat("/magic")
        records = numpy.asarray(t.comparisons)
        self.assertEqual(records.shape, (len(t), 4))
        # The kernel compares the letters of the path with a slash.
        self.assertIn(0x2F, records[:, 1])
        dictionary = kcov.Dictionary()
        self.assertGreater(dictionary.add(t, skip_equal=True), 0)
        self.assertIn(b"/", dictionary.tokens())
        self.assertEqual(dictionary.add(array.array("Q", records.flatten()), skip_equal=True), 0)
        self.assertEqual(dictionary.missed, 0)
        for read in (lambda: t.pcs, lambda: kcov.NoveltyMap().merge(t)):
            with self.assertRaisesRegex(TypeError, "no program counters, but comparisons"):
                read()
        for buffer in (b"12345678", array.array("d", [1.0]), array.array("Q", [1])):
            with self.assertRaisesRegex(TypeError, "pass"):
                dictionary.add(buffer)

    def test_live_records_are_copied_or_refused(self):
        with kcov.trace() as t:
            stat("/")
            with self.assertRaisesRegex(RuntimeError, "leave the block"):
                t.pcs
            t.reset()
            stat("/")
            first = t.copy()
            t.reset()
            stat("/proc/self/status")
            second = t.copy()
        self.assertGreater(len(set(second) - set(first)), 10)
        self.assertEqual(list(t.pcs[: len(second)]), list(second))

    def test_a_small_buffer_is_truncated(self):
        with kcov.trace(words=512) as t:
            [stat("/") for _ in range(100)]
        self.assertTrue(t.truncated)
        self.assertEqual(len(t), 511)

    def test_a_corrupt_count_is_an_error(self):
        with kcov.trace() as t:
            stat("/")
        ctypes.c_uint64.from_address(t._now().words - 8).value = 1 << 40
        for read in (lambda: t.pcs, t.copy, lambda: len(t), lambda: kcov.NoveltyMap().merge(t)):
            with self.assertRaisesRegex(kcov.Error, "another process wrote"):
                read()

    def test_a_trace_without_records_is_empty(self):
        with kcov.trace(comparisons=True) as t:
            t.reset()
        # The interpreter may have compared something.
        self.assertEqual(t.comparisons.shape, (len(t), 4) if len(t) else (0,))
        t = kcov.trace()
        with self.assertRaisesRegex(kcov.Error, "enable it first"):
            len(t)

    def test_a_trace_is_for_one_block(self):
        with kcov.trace() as t:
            pass
        with self.assertRaisesRegex(RuntimeError, "open another trace"), t:
            pass
        with self.assertRaisesRegex(kcov.Error, "traced through another descriptor"):
            with kcov.trace(), kcov.trace():
                pass
        with self.assertRaises(kcov.Error) as failed:
            kcov.trace(path="/dev/null")
        self.assertEqual(failed.exception.kind, 106)

    def test_a_block_belongs_to_its_thread(self):
        failures = []

        def leave():
            try:
                t.reset()
            except kcov.Error as error:
                failures.append(str(error))

        with kcov.trace() as t:
            thread = threading.Thread(target=leave)
            thread.start()
            thread.join()
        self.assertRegex(failures[0], "in the thread that enabled")

    def test_maps(self):
        ranges = [kcov.text().link_time]
        seen = kcov.NoveltyMap(ranges)
        with kcov.trace() as t:
            stat("/")
        self.assertTrue(seen.has_new(t))
        new, unrecorded = seen.merge(t)
        self.assertEqual((sorted(new), unrecorded), (sorted(set(t.pcs)), 0))
        self.assertFalse(seen.has_new(t.pcs))
        self.assertEqual(seen.signals(), sorted(new))
        seen.save("/tmp/map")
        loaded = kcov.NoveltyMap.load("/tmp/map")
        self.assertEqual(len(loaded), len(new))
        self.assertEqual(len(kcov.NoveltyMap()), 0)

    def test_shared_maps(self):
        file = os.memfd_create("map")
        ranges = [range(0x1000, 0x2000)]
        ours = kcov.NoveltyMap(ranges, fd=file)
        child = os.fork()
        if child == 0:
            kcov.NoveltyMap(ranges, fd=file).merge(array.array("Q", [0x1004]))
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(ours.merge(array.array("Q", [0x1004, 0x1008])), ([0x1008], 0))

    def test_probe(self):
        self.assertEqual(kcov.probe(), {"PC", "CMP"})
        with self.assertRaisesRegex(kcov.Error, "not a kcov device"):
            kcov.probe("/dev/null")


unittest.main(verbosity=2)

#!/usr/bin/env python3
"""Tests scripts/kernel_report.py on made-up logs of ptxas: what it reads, and what it reports as a problem.

    kernel_report_test.py ROOT
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
sys.path.insert(0, str(ROOT / "scripts"))
import kernel_report  # noqa: E402

ROWS = "_ZN4rapt4cuda11rows_kernelINS0_4Bf16ELi64ELb0EEEvNS0_13RowsArgumentsE"
PLAIN = "_ZN4rapt4cuda4fillEv"


def log(symbol, registers, stack=0, stores=0, loads=0, shared=""):
    return (f"ptxas info    : Compiling entry function '{symbol}' for 'sm_90a'\n"
            f"ptxas info    : Function properties for {symbol}\n"
            f"    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n"
            f"ptxas info    : Used {registers} registers, used 1 barriers{shared}, 400 bytes cmem[0]\n")


def read(text):
    kernels, remarks = kernel_report.read_log(text)
    for kernel, name in zip(kernels.values(), kernel_report.demangle(kernels)):
        kernel.name = name
    return list(kernels.values()), remarks


class KernelReport(unittest.TestCase):
    def test_each_kernel_has_its_numbers(self):
        kernels, remarks = read(log(ROWS, 168) + log(PLAIN, 40, 8, 12, 16, ", 4096 bytes smem"))
        self.assertEqual(remarks, [])
        self.assertEqual([(k.name, k.registers, k.shared, k.stack, k.spill_stores, k.spill_loads) for k in kernels],
                         [("rows_kernel<Bf16, 64, false>", 168, 0, 0, 0, 0), ("fill", 40, 4096, 8, 12, 16)])

    def test_plain_kernels_may_spill_and_those_of_tensor_cores_may_not(self):
        self.assertEqual(kernel_report.problems(*read(log(ROWS, 168) + log(PLAIN, 40, 8, 12, 16))), [])
        for spill in ((8, 0, 0), (0, 4, 0), (0, 0, 4)):
            self.assertEqual(len(kernel_report.problems(*read(log(ROWS, 168, *spill)))), 1, spill)

    def test_serialized_products_are_a_problem(self):
        remark = ("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due "
                  "to insufficient register resources for the wgmma pipeline in the function 'x'\n")
        self.assertEqual(len(kernel_report.problems(*read(log(ROWS, 168) + remark))), 1)

    def test_a_kernel_of_tensor_cores_without_their_instruction_is_a_problem(self):
        kernels, remarks = read(log(ROWS, 168))
        kernels[0].hgmma = 24
        self.assertEqual(kernel_report.problems(kernels, remarks), [])
        kernels[0].hgmma = 0
        self.assertEqual(len(kernel_report.problems(kernels, remarks)), 1)

    def test_a_table_of_other_numbers_is_out_of_date(self):
        kernels, remarks = read(log(ROWS, 168) + log(PLAIN, 40))
        for kernel in kernels:
            kernel.hgmma, kernel.utmaldg, kernel.code = 24, 7, 5000
        table = kernel_report.table_of(kernels)
        self.assertEqual(kernel_report.check(kernels, remarks, True, table), [])
        kernels[1].code = 6000  # the code size is not compared
        self.assertEqual(kernel_report.check(kernels, remarks, True, table), [])
        kernels[0].hgmma = 25
        self.assertEqual(len(kernel_report.check(kernels, remarks, True, table)), 2)
        self.assertEqual(kernel_report.check(kernels, remarks, False, table), [])
        kernels[1].registers = 41
        self.assertEqual(len(kernel_report.check(kernels, remarks, False, table)), 2)
        self.assertEqual(len(kernel_report.check(kernels[:1], remarks, False, table)), 1)


if __name__ == "__main__":
    unittest.main()

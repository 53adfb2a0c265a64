# SPDX-License-Identifier: Apache-2.0
"""torch's row-wise scaled fp8 product (cuBLASLt) timed as public harnesses do it, beside our bench's figures.

Events around each call after 128 MiB were written; medians. The launch of torch is in the times. Printed with the
clock and the power after each, because large products run into the board's power limit.
"""

import statistics
import subprocess

import torch


def state() -> str:
    query = "--query-gpu=clocks.sm,power.draw,clocks_event_reasons.sw_power_cap"
    return subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()


def median_us(product, flush, each_waits: bool) -> float:
    events = []
    for _ in range(60):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        product()
        end.record()
        events.append((begin, end))
        if each_waits:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) * 1e3 for begin, end in events)


def main() -> None:
    torch.manual_seed(0)
    flush = torch.empty(128 << 20, dtype=torch.int8, device="cuda")
    for m, n, k in ((4096, 4096, 4096), (32, 8192, 8192), (4096, 14336, 4096)):
        # Drawn as problems/fp8_gemm draws them.
        x = (torch.rand(m, k, device="cuda") * 8 - 4).to(torch.float8_e4m3fn)
        weight = torch.randn(n, k, device="cuda")
        scale = weight.abs().amax(1, keepdim=True) / 448
        weight = (weight / scale).to(torch.float8_e4m3fn)
        ones = torch.ones(m, 1, device="cuda")

        def product():
            return torch._scaled_mm(
                x, weight.t(), scale_a=ones, scale_b=scale.t(), out_dtype=torch.bfloat16, use_fast_accum=True
            )

        for _ in range(10):
            product()
        for _ in range(3):
            queued, alone = (median_us(product, flush, waits) for waits in (False, True))
            print(f"M={m} N={n} K={k}: queued {queued:.1f} us, one by one {alone:.1f} us; {state()}", flush=True)


main()

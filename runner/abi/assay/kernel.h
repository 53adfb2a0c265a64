/* SPDX-License-Identifier: Apache-2.0
 * The interface a C++ or CUDA submission implements. Plain C, no library to link.
 *
 * A submission is one or more .cpp (device "cpu") or .cu (device "cuda") files that together define
 * the three functions at the end of this header. The judge compiles them itself.
 *
 * Life of a submission, all in one process that has no access to the expected results:
 *
 *   load -> { assay_prepare -> assay_run, assay_run, ... -> assay_release } -> ...
 *
 * prepare is untimed and may take as long as the problem's time limit allows. run is timed.
 *
 * Buffers. The judge owns every buffer and passes its address (destination passing). Each one has a
 * contract, fixed by the problem (problem.yaml, shown by `assay list PROBLEM`):
 *
 * - constant: given to assay_prepare; does not change until assay_release, and neither does its
 *   address. May be repacked, padded or cached freely.
 *
 * - input: given to assay_run; NEW BYTES ON EVERY CALL, also when the address is the same.
 *   Read-only: writing to it ends the grade.
 *
 * - output: given to assay_run; holds garbage on entry and must be fully written.
 *
 * - inout: given to assay_run after the outputs, and counted with them: state (a cache, a recurrent
 *   state) that the call reads and updates in place, as the problem says. New bytes on every call,
 *   like an input: a call does not continue from what the one before left at that address. What the
 *   problem does not name as updated must be left as it was.
 *
 * Addresses of inputs and outputs may repeat or change from call to call. They are aligned to
 * ASSAY_ALIGNMENT bytes and no better. Nothing outside a buffer may be read or written.
 *
 * Completion. device "cpu": the outputs are complete when assay_run returns. device "cuda": all
 * work is ordered behind `stream` (a cudaStream_t) as if launched into it; side streams are welcome
 * if they are joined to `stream` by events before run returns. Work that lands later does not
 * count. run had better not wait for the device: that is allowed, but the latency of the host, else
 * hidden, is then part of the time.
 *
 * What is welcome: scratch memory kept between calls, weights repacked in prepare, captured graphs
 * keyed on addresses, thread pools, per-shape dispatch. What never pays: results kept from an
 * earlier call, since the bytes are new every time and every timed output is verified.
 */
#ifndef ASSAY_KERNEL_H
#define ASSAY_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define ASSAY_EXPORT __attribute__((visibility("default")))
#endif

#define ASSAY_ABI_VERSION 1
#define ASSAY_ALIGNMENT 16 /* bytes; the only alignment a buffer address is sure to have */
#define ASSAY_MAX_RANK 8

typedef enum assay_dtype {
  ASSAY_F32 = 0,
  ASSAY_F64 = 1,
  ASSAY_BF16 = 2,
  ASSAY_F16 = 3,
  ASSAY_E4M3 = 4, /* 1-4-3, no infinities, NaN = 0x7f / 0xff, largest 448 */
  ASSAY_U8 = 5,
  ASSAY_I32 = 6,
  ASSAY_I64 = 7
} assay_dtype;

/* A dense row-major tensor: element (i0, .., in) is at sum(ij * stride[j]) elements from data. */
typedef struct assay_tensor {
  void* data;    /* host pointer (cpu) or device pointer (cuda) */
  int32_t dtype; /* assay_dtype */
  int32_t rank;
  int64_t shape[ASSAY_MAX_RANK];  /* elements */
  int64_t stride[ASSAY_MAX_RANK]; /* elements */
} assay_tensor;

/* The problem size: the axes of problem.yaml, in the order given there. */
typedef struct assay_axis {
  const char* name;
  int64_t value;
} assay_axis;

typedef struct assay_problem {
  const char* id;
  int32_t axis_count;
  int32_t threads; /* cpu: hardware threads this process may use; cuda: same, on the host */
  const assay_axis* axes;
} assay_problem;

/* Return values. Any other non-zero value also ends the grade; it is shown as it is. */
enum {
  ASSAY_OK = 0,
  ASSAY_UNSUPPORTED =
      1,           /* this size or dtype is not implemented: verdict `refused` for the shape */
  ASSAY_FAILED = 2 /* anything else went wrong */
};

/* Called once per problem size and set of constants. `constants` are in problem.yaml's order. Store
 * whatever run needs in *state. Several states may be alive at once; calls never overlap. */
int assay_prepare(const assay_problem* problem, const assay_tensor* constants,
                  int32_t constant_count, void** state);

/* One call of the kernel. `inputs` and `outputs` are in problem.yaml's order, the inouts behind the
 * outputs. `stream` is a cudaStream_t on device "cuda" and NULL on device "cpu". The arrays
 * themselves are valid only during the call. */
int assay_run(void* state, const assay_tensor* inputs, int32_t input_count,
              const assay_tensor* outputs, int32_t output_count, void* stream);

/* Frees what prepare made. Called with the device idle. */
void assay_release(void* state);

#ifdef __cplusplus
}
#endif
#endif /* ASSAY_KERNEL_H */

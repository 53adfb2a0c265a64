// SPDX-License-Identifier: Apache-2.0
// The code of a problem. problems/<id>/ops.h defines, in namespace assay::problems::<id>, a struct
// Ops of static member templates over the device class D (CpuDevice or CudaDevice). It is compiled
// twice from the same text, by the host compiler and by nvcc; the build generates both translation
// units, so adding a problem touches nothing outside its folder.
//
// clang-format off
//   struct Ops {
//     // Required. rekey() moves a base by an exact symmetry; rekey_capacity() says how many slots may
//     // share one base (1 = none: every slot gets a base of its own).
//     template <class D> static void oracle(D& d, const OracleArgs& a);  // fills a.expected
//     template <class D> static void rekey(D& d, const RekeyArgs& a);
//     static std::int64_t rekey_capacity(const Shape& s);
//
//     // Optional. compare() judges one output; without it, compare_element() against the expected
//     // tensor of the same position.
//     template <class D> static void draw_constants(D& d, const DrawArgs& a);  // those drawn "derived"
//     template <class D> static void draw_inputs(D& d, const DrawArgs& a);     // those drawn "derived"
//     template <class D> static void structure(D& d, const StructureArgs& a);  // edits inputs for a case
//     template <class D> static void derive(D& d, const DeriveArgs& a);        // fills a.derived
//     template <class D> static CompareStats compare(D& d, const CompareArgs& a);
//   };
//
// D offers, besides the Device interface:
//   d.for_each(n, ASSAY_LAMBDA(std::int64_t i) { ... });         // in any order, in parallel
//   d.tally(n, ASSAY_LAMBDA(std::int64_t i) -> Sample { ... });  // CompareStats, in a fixed order
//   d.gemm_nt(m, n, k, a, b, c);  // row-major fp32, IEEE, no tf32: c[m,n] = a[m,k] * b[n,k]^T
//   d.gemm_nn(m, n, k, a, b, c);  //                                c[m,n] = a[m,k] * b[k,n]
//   d.scratch(bytes)              // void*, valid until the running op returns or calls it again
// clang-format on
// Lambdas capture plain values and Tensor views, never references.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "judge/device/device.h"
#include "judge/problem/shape.h"

#if defined(__CUDACC__)
#define ASSAY_LAMBDA [=] __host__ __device__
#else
#define ASSAY_LAMBDA [=]
#endif

namespace assay {

/// In problem.yaml's order. Everywhere below `inputs` are the inputs and then the inouts as they
/// are handed over; `outputs` are the outputs and then the inouts as the call left them.
using Tensors = std::span<const Tensor>;

struct DrawArgs {
  const Shape& shape;
  std::uint64_t seed;
  Tensors tensors;  ///< the constants, or the inputs; those with a distribution are already drawn
};
struct StructureArgs {
  const Shape& shape;
  const std::string& name;  ///< one of problem.yaml's structural cases
  std::uint64_t seed;
  Tensors constants;
  Tensors inputs;  ///< drawn; to be edited in place
};
struct DeriveArgs {
  const Shape& shape;
  Tensors constants;
  Tensors derived;
};
struct OracleArgs {
  const Shape& shape;
  Tensors constants;
  Tensors derived;
  Tensors inputs;
  Tensors expected;
};
/// Applies the exact symmetry number `key` (64 secret bits) of the problem to a base: writes inputs
/// and expected such that oracle(inputs) is expected, bit for bit where the problem's README says
/// so. Judge-side memory for base and expected; `inputs` is the slot the submission reads.
struct RekeyArgs {
  const Shape& shape;
  std::uint64_t key;
  Tensors base_inputs;
  Tensors base_expected;
  Tensors inputs;
  Tensors expected;
};
struct CompareArgs {
  const Shape& shape;
  int output;  ///< which of outputs
  Tolerance tolerance;
  Tensors inputs;
  Tensors expected;
  Tensors outputs;  ///< captured copies, judge-only
};

/// The operations of one problem on one device, behind plain function pointers. Null = not
/// provided.
struct ProblemKernels {
  void (*draw_constants)(Device&, const DrawArgs&) = nullptr;
  void (*draw_inputs)(Device&, const DrawArgs&) = nullptr;
  void (*structure)(Device&, const StructureArgs&) = nullptr;
  void (*derive)(Device&, const DeriveArgs&) = nullptr;
  void (*oracle)(Device&, const OracleArgs&) = nullptr;
  void (*rekey)(Device&, const RekeyArgs&) = nullptr;
  std::int64_t (*rekey_capacity)(const Shape&) = nullptr;
  CompareStats (*compare)(Device&, const CompareArgs&) = nullptr;  ///< never null
};

/// Builds the table from an Ops struct for device class D.
template <class Ops, class D>
ProblemKernels make_kernels() {
  ProblemKernels k;
  if constexpr (requires(D & d, const DrawArgs& a) { Ops::draw_constants(d, a); })
    k.draw_constants = [](Device& d, const DrawArgs& a) {
      Ops::draw_constants(static_cast<D&>(d), a);
    };
  if constexpr (requires(D & d, const DrawArgs& a) { Ops::draw_inputs(d, a); })
    k.draw_inputs = [](Device& d, const DrawArgs& a) { Ops::draw_inputs(static_cast<D&>(d), a); };
  if constexpr (requires(D & d, const StructureArgs& a) { Ops::structure(d, a); })
    k.structure = [](Device& d, const StructureArgs& a) { Ops::structure(static_cast<D&>(d), a); };
  if constexpr (requires(D & d, const DeriveArgs& a) { Ops::derive(d, a); })
    k.derive = [](Device& d, const DeriveArgs& a) { Ops::derive(static_cast<D&>(d), a); };
  k.oracle = [](Device& d, const OracleArgs& a) { Ops::oracle(static_cast<D&>(d), a); };
  k.rekey = [](Device& d, const RekeyArgs& a) { Ops::rekey(static_cast<D&>(d), a); };
  k.rekey_capacity = [](const Shape& s) { return Ops::rekey_capacity(s); };
  if constexpr (requires(D & d, const CompareArgs& a) { Ops::compare(d, a); })
    k.compare = [](Device& d, const CompareArgs& a) { return Ops::compare(static_cast<D&>(d), a); };
  else
    k.compare = [](Device& d, const CompareArgs& a) {
      return static_cast<D&>(d).compare_elements(a.expected[static_cast<std::size_t>(a.output)],
                                                 a.outputs[static_cast<std::size_t>(a.output)],
                                                 a.tolerance);
    };
  return k;
}

}  // namespace assay

// SPDX-License-Identifier: Apache-2.0
#include "judge/run/memory.h"

#include <algorithm>

#include "judge/base/hash.h"
#include "judge/run/layout.h"

namespace assay {
namespace {

std::int64_t padded(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/// Private memory for a list of tensors; their data pointers are set.
std::unique_ptr<Buffer> allocate_all(Device& device, std::vector<Tensor>& tensors) {
  auto buffer = device.allocate(std::max<std::int64_t>(total_bytes(tensors), 256));
  auto* at = static_cast<unsigned char*>(buffer->data());
  for (Tensor& t : tensors) {
    t.data = at;
    at += padded(t.bytes());
  }
  return buffer;
}

/// Points the tensors at their places and describes those for the wire. The arena's number on the
/// wire is filled in by introduce().
std::vector<wire::TensorRef> point_into(std::vector<Tensor>& tensors, const Arena& arena,
                                        const std::vector<std::int64_t>& offsets,
                                        std::size_t first) {
  std::vector<wire::TensorRef> refs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor& t = tensors[i];
    const std::int64_t offset = offsets[first + i];
    t.data = static_cast<unsigned char*>(arena.data()) + offset;
    refs.push_back({0, static_cast<std::uint64_t>(offset), t.dtype,
                    std::vector<std::int64_t>(t.shape, t.shape + t.rank)});
  }
  return refs;
}

void set_arena(std::vector<wire::TensorRef>& refs, std::uint32_t number) {
  for (wire::TensorRef& r : refs) r.arena = number;
}

}  // namespace

std::vector<Tensor> views(const std::vector<TensorSpec>& specs, const Shape& shape) {
  std::vector<Tensor> out;
  for (const TensorSpec& s : specs) out.push_back(s.at(shape));
  return out;
}

std::int64_t total_bytes(const std::vector<Tensor>& tensors) {
  std::int64_t n = 0;
  for (const Tensor& t : tensors) n += padded(t.bytes());
  return n;
}

WorkbenchMemory::WorkbenchMemory(Device& device, const Problem& problem, const Shape& shape,
                                 int slot_count, int base_count, std::uint64_t seed)
    : slots(static_cast<std::size_t>(slot_count)), bases(static_cast<std::size_t>(base_count)) {
  place_constants(device, problem, shape, seed);
  place_inputs(device, problem, shape, seed);
  place_outputs(device, problem, shape, seed);
  for (Base& b : bases) {
    b.inputs = views(problem.read(), shape);
    b.input_memory = allocate_all(device, b.inputs);
    b.expected = views(problem.expected, shape);
    b.expected_memory = allocate_all(device, b.expected);
  }
}

void WorkbenchMemory::place_constants(Device& device, const Problem& problem, const Shape& shape,
                                      std::uint64_t seed) {
  constants = views(problem.constants, shape);
  if (!constants.empty()) {
    std::vector<PlacementRequest> want;
    for (const Tensor& t : constants) want.push_back({t.bytes(), false});
    const Placement p =
        place(want, device.arena_granularity(), true, derive_seed(seed, "constants"));
    constant_arena = device.allocate_arena(p.arena_bytes, false);
    constant_refs = point_into(constants, *constant_arena, p.offsets, 0);
  }
  derived = views(problem.derived, shape);
  if (!derived.empty()) derived_memory = allocate_all(device, derived);
}

/// Slot 0 is placed last, so that its last input ends where the mapping ends.
void WorkbenchMemory::place_inputs(Device& device, const Problem& problem, const Shape& shape,
                                   std::uint64_t seed) {
  const std::vector<Tensor> shapes = views(problem.inputs, shape);
  std::vector<PlacementRequest> want;
  for (std::size_t s = slots.size(); s-- > 0;)
    for (const Tensor& t : shapes) want.push_back({t.bytes(), s < kOddSlots});
  const Placement p = place(want, device.arena_granularity(), true, derive_seed(seed, "inputs"));
  input_arena = device.allocate_arena(p.arena_bytes, false);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    slots[s].inputs = shapes;
    slots[s].input_refs = point_into(slots[s].inputs, *input_arena, p.offsets,
                                     (slots.size() - 1 - s) * shapes.size());
    std::vector<Tensor> inouts = views(problem.inouts, shape);
    if (!inouts.empty()) slots[s].inout_memory = allocate_all(device, inouts);
    slots[s].inputs.insert(slots[s].inputs.end(), inouts.begin(), inouts.end());
  }
}

void WorkbenchMemory::place_outputs(Device& device, const Problem& problem, const Shape& shape,
                                    std::uint64_t seed) {
  const std::vector<Tensor> shapes = views(problem.written(), shape);
  std::vector<PlacementRequest> want;
  for (std::size_t s = 0; s < slots.size(); ++s)
    for (const Tensor& t : shapes) want.push_back({t.bytes(), s < kOddSlots});
  const Placement p = place(want, device.arena_granularity(), false, derive_seed(seed, "outputs"));
  output_arena = device.allocate_arena(p.arena_bytes, true);
  captured = device.allocate(p.arena_bytes);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    Slot& slot = slots[s];
    slot.outputs = shapes;
    slot.output_refs = point_into(slot.outputs, *output_arena, p.offsets, s * shapes.size());
    slot.captured = slot.outputs;
    for (std::size_t o = 0; o < shapes.size(); ++o)
      slot.captured[o].data =
          static_cast<unsigned char*>(captured->data()) + p.offsets[s * shapes.size() + o];
    slot.expected = views(problem.expected, shape);
    slot.expected_memory = allocate_all(device, slot.expected);
  }
}

void WorkbenchMemory::introduce(Session& session) {
  if (constant_arena) set_arena(constant_refs, session.map(*constant_arena));
  const std::uint32_t inputs = session.map(*input_arena);
  const std::uint32_t outputs = session.map(*output_arena);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    set_arena(slots[s].input_refs, inputs);
    set_arena(slots[s].output_refs, outputs);
    session.bind(static_cast<std::uint32_t>(s), slots[s].input_refs, slots[s].output_refs);
  }
  session.freeze();
}

}  // namespace assay

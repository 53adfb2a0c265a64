// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "judge/problem/ops.h"
#include "judge/problem/problem.h"

namespace assay {

/// All tensors of one problem at one size on one device.
class Instance {
 public:
  Instance(Device& d, const Problem& p, const Shape& s)
      : device(d), problem(p), shape(s), kernels(d.kernels(p.id)) {
    constants = make(p.constants);
    derived = make(p.derived);
    inputs = make(p.read());
    expected = make(p.expected);
    outputs = make(p.written());
  }

  void draw(std::uint64_t seed) {
    draw_list(problem.constants, constants, seed);
    if (kernels->draw_constants) kernels->draw_constants(device, {shape, seed, constants});
    if (kernels->derive) kernels->derive(device, {shape, constants, derived});
    draw_list(problem.read(), inputs, seed + 1);
    if (kernels->draw_inputs) kernels->draw_inputs(device, {shape, seed, inputs});
  }
  void oracle() { kernels->oracle(device, {shape, constants, derived, inputs, expected}); }
  void structure(const std::string& name, std::uint64_t seed) {
    kernels->structure(device, {shape, name, seed, constants, inputs});
  }
  CompareStats compare(int output) {
    return kernels->compare(device, {shape, output, problem.tolerance, inputs, expected, outputs});
  }
  std::vector<Tensor> make(const std::vector<TensorSpec>& specs) {
    std::vector<Tensor> out;
    for (const TensorSpec& s : specs) {
      Tensor t = s.at(shape);
      memory_.push_back(device.allocate(t.bytes() + 16));
      t.data = memory_.back()->data();
      out.push_back(t);
    }
    return out;
  }
  std::vector<float> floats(const Tensor& t) {
    std::vector<unsigned char> raw(static_cast<std::size_t>(t.bytes()));
    device.synchronize();
    device.download(raw.data(), t.data, t.bytes());
    Tensor host = t;
    host.data = raw.data();
    std::vector<float> out;
    for (std::int64_t i = 0; i < t.size(); ++i) out.push_back(load_as_float(host, i));
    return out;
  }
  template <class T>
  void put(const Tensor& t, const std::vector<T>& v) {
    device.upload(t.data, v.data(), t.bytes());
    device.synchronize();
  }

  Device& device;
  const Problem& problem;
  const Shape shape;
  const ProblemKernels* kernels;
  std::vector<Tensor> constants, derived, inputs, expected, outputs;

 private:
  void draw_list(const std::vector<TensorSpec>& specs, Tensors tensors, std::uint64_t seed) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (specs[i].draw) device.fill(tensors[i], *specs[i].draw, seed + i);
  }
  std::vector<std::unique_ptr<Buffer>> memory_;
};

inline Shape shape_of(const Problem& p, std::vector<std::int64_t> sizes) {
  Shape s;
  for (std::size_t i = 0; i < sizes.size(); ++i) s.axes.emplace_back(p.axes[i], sizes[i]);
  return s;
}

}  // namespace assay

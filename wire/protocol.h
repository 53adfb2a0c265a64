// SPDX-License-Identifier: Apache-2.0
// The messages between the judge and the runner. The judge speaks first and every request has
// exactly one reply. Requests are trusted by the runner; replies are HOSTILE to the judge: they are
// claims, never verdicts, and no expected value, seed, tolerance or verdict is in any request.
//
// One message = one SOCK_SEQPACKET datagram of at most kMaxMessageBytes; see codec.h for the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "wire/dtype.h"

namespace assay::wire {

inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kMaxMessageBytes = 128 * 1024;
inline constexpr std::size_t kMaxText = 1024;   // bytes in one string
inline constexpr std::size_t kMaxRank = 8;      // axes of one tensor
inline constexpr std::size_t kMaxTensors = 64;  // tensors in one list
inline constexpr std::size_t kMaxAxes = 16;     // problem axes
inline constexpr std::size_t kMaxCalls = 2048;  // calls in one window = slots bound at once

enum class Backend : std::uint8_t { kCpu = 0, kCuda = 1 };

/// A tensor inside a mapped arena. Dense, row-major.
struct TensorRef {
  std::uint32_t arena = 0;
  std::uint64_t offset_bytes = 0;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  bool operator==(const TensorRef&) const = default;
};

struct Axis {
  std::string name;
  std::int64_t value = 0;
  bool operator==(const Axis&) const = default;
};

// ---- judge -> runner -------------------------------------------------------------------------

/// First message. The runner opens its device.
struct Hello {
  std::uint32_t version = kVersion;
  Backend backend = Backend::kCpu;
  std::int32_t device_ordinal = 0;
  std::int32_t threads = 1;       ///< host threads the submission may use
  std::uint64_t flush_bytes = 0;  ///< cuda: bytes read before each call to empty the L2; 0 = none
  bool operator==(const Hello&) const = default;
};

/// Comes with exactly one file descriptor (memfd or exported device memory).
struct MapArena {
  std::uint32_t arena = 0;
  std::uint64_t bytes = 0;
  bool writable = false;
  bool operator==(const MapArena&) const = default;
};

struct UnmapArena {
  std::uint32_t arena = 0;
  bool operator==(const UnmapArena&) const = default;
};

/// Loads the submission. From here on the runner process is hostile.
struct Load {
  std::string path;  ///< of the shared object, inside the sandbox
  bool operator==(const Load&) const = default;
};

struct Prepare {
  std::string problem_id;
  std::vector<Axis> axes;
  std::vector<TensorRef> constants;
  bool operator==(const Prepare&) const = default;
};

struct Release {
  bool operator==(const Release&) const = default;
};

/// Gives slot `slot` its buffers. May be repeated with other buffers.
struct Bind {
  std::uint32_t slot = 0;
  std::vector<TensorRef> inputs;
  std::vector<TensorRef> outputs;
  bool operator==(const Bind&) const = default;
};

/// Length of a control call: of the order of the shortest calls measured, and a multiple of the
/// step of a GPU's global timer (32 ns on Hopper).
constexpr std::uint32_t kControlCall_ns = 5120;

/// Calls the submission once per entry of `slots`, in that order, each call between two time
/// stamps, each followed by a fingerprint of its outputs; after the last one the device is
/// synchronised and all outputs are fingerprinted once more. With `control` the call is one of the
/// runner's own, kControlCall_ns long; only ever sent before Load, when nothing hostile is in the
/// process. cuda: what comes before a call (the cache flush) is stretched to `pace_ns`, so that its
/// own unsteadiness is not in the window; 0 leaves it as it is.
struct RunWindow {
  std::vector<std::uint32_t> slots;
  bool control = false;
  std::uint32_t pace_ns = 0;
  bool operator==(const RunWindow&) const = default;
};

struct Shutdown {
  bool operator==(const Shutdown&) const = default;
};

using Request =
    std::variant<Hello, MapArena, UnmapArena, Load, Prepare, Release, Bind, RunWindow, Shutdown>;

// ---- runner -> judge -------------------------------------------------------------------------

enum class Stage : std::uint8_t {
  kNone = 0,
  kSetup,  ///< the runner's own work: device, mapping. A failure before Load is the machine's fault
  kLoad,   ///< dlopen or a missing symbol
  kPrepare,  ///< assay_prepare returned `code`
  kRun,      ///< assay_run returned `code`, or the device reported an error
};

/// Reply to everything but RunWindow, and to a RunWindow that failed.
struct Ack {
  Stage stage = Stage::kNone;  ///< where it failed; kNone = success
  std::int32_t code = 0;
  std::string text;
  bool operator==(const Ack&) const = default;
};

struct WindowDone {
  std::vector<float> call_us;  ///< device time of each call, between its two stamps, microseconds
  std::vector<std::uint64_t> returned;  ///< fingerprint of the call's outputs when run() returned
  std::vector<std::uint64_t> settled;   ///< the same after the final device-wide synchronisation
  bool operator==(const WindowDone&) const = default;
};

using Reply = std::variant<Ack, WindowDone>;

}  // namespace assay::wire

// SPDX-License-Identifier: Apache-2.0
#include "wire/codec.h"

#include <bit>
#include <concepts>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <type_traits>

namespace assay::wire {
namespace {

static_assert(std::endian::native == std::endian::little,
              "scalars are copied as they lie in memory");

// The fields of each message in wire order, once for both directions: what one side writes is by
// construction what the other reads.
template <class M>
constexpr std::tuple<> kFields{};
template <>
constexpr auto kFields<TensorRef> = std::tuple(&TensorRef::arena, &TensorRef::offset_bytes,
                                               &TensorRef::dtype, &TensorRef::shape);
template <>
constexpr auto kFields<Axis> = std::tuple(&Axis::name, &Axis::value);
template <>
constexpr auto kFields<Hello> = std::tuple(&Hello::version, &Hello::backend, &Hello::device_ordinal,
                                           &Hello::threads, &Hello::flush_bytes);
template <>
constexpr auto kFields<MapArena> = std::tuple(&MapArena::arena, &MapArena::bytes,
                                              &MapArena::writable);
template <>
constexpr auto kFields<UnmapArena> = std::tuple(&UnmapArena::arena);
template <>
constexpr auto kFields<Load> = std::tuple(&Load::path);
template <>
constexpr auto kFields<Prepare> = std::tuple(&Prepare::problem_id, &Prepare::axes,
                                             &Prepare::constants);
template <>
constexpr auto kFields<Bind> = std::tuple(&Bind::slot, &Bind::inputs, &Bind::outputs);
template <>
constexpr auto kFields<RunWindow> = std::tuple(&RunWindow::slots, &RunWindow::control,
                                               &RunWindow::pace_ns);
template <>
constexpr auto kFields<Ack> = std::tuple(&Ack::stage, &Ack::code, &Ack::text);
template <>
constexpr auto kFields<WindowDone> = std::tuple(&WindowDone::call_us, &WindowDone::returned,
                                                &WindowDone::settled);

template <class T>
concept Scalar = (std::integral<T> || std::floating_point<T>)&&!std::same_as<T, bool>;

/// Number of values of an enum on the wire.
template <class E>
constexpr int kEnumCount = 0;
template <>
constexpr int kEnumCount<DType> = kDTypeCount;
template <>
constexpr int kEnumCount<Backend> = 2;
template <>
constexpr int kEnumCount<Stage> = 5;

/// Most items in a list of T.
template <class T>
constexpr std::size_t kMaxItems = kMaxCalls;  // slots, stamps, fingerprints
template <>
constexpr std::size_t kMaxItems<std::int64_t> = kMaxRank;
template <>
constexpr std::size_t kMaxItems<TensorRef> = kMaxTensors;
template <>
constexpr std::size_t kMaxItems<Axis> = kMaxAxes;

/// Fewest bytes one item can take: bounds what a count may make the reader allocate.
template <class T>
constexpr std::size_t kMinBytes = sizeof(T);
template <>
constexpr std::size_t kMinBytes<TensorRef> = 4 + 8 + 1 + 4;
template <>
constexpr std::size_t kMinBytes<Axis> = 4 + 8;

template <class M>
concept Message = std::tuple_size_v<std::remove_cv_t<decltype(kFields<M>)>> >
0;

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  template <Scalar T>
  void put(const T& v) {
    append(&v, sizeof v);
  }
  void put(bool v) { put(static_cast<std::uint8_t>(v)); }
  template <class E>
  requires std::is_enum_v<E>
  void put(E v) {
    require(static_cast<int>(v) < kEnumCount<E>, "an enumerator out of range");
    put(static_cast<std::uint8_t>(v));
  }
  void put(const std::string& s) {
    require(s.size() <= kMaxText, "a text that is too long");
    require(s.find('\0') == std::string::npos, "a text with a NUL byte");
    put(static_cast<std::uint32_t>(s.size()));
    append(s.data(), s.size());
  }
  template <class T>
  void put(const std::vector<T>& items) {
    require(items.size() <= kMaxItems<T>, "a list that is too long");
    put(static_cast<std::uint32_t>(items.size()));
    if constexpr (Scalar<T>) {
      append(items.data(), items.size() * sizeof(T));
    } else {
      for (const T& item : items) put(item);
    }
  }
  template <Message M>
  void put(const M& m) {
    std::apply([&](auto... field) { (put(m.*field), ...); }, kFields<M>);
  }

 private:
  static void require(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(std::string("cannot encode ") + what);
  }
  void append(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), p, p + bytes);
  }
  std::vector<std::byte>& out_;
};

/// Every get() returns false, and the message is dropped, on the first thing that is not as put()
/// would have written it.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}
  bool at_end() const { return in_.empty(); }

  template <Scalar T>
  bool get(T& v) {
    return take(&v, sizeof v);
  }
  bool get(bool& v) {
    std::uint8_t byte = 0;
    if (!get(byte) || byte > 1) return false;
    v = byte == 1;
    return true;
  }
  template <class E>
  requires std::is_enum_v<E>
  bool get(E& v) {
    std::uint8_t byte = 0;
    if (!get(byte) || byte >= kEnumCount<E>) return false;
    v = static_cast<E>(byte);
    return true;
  }
  bool get(std::string& s) {
    std::size_t count = 0;
    if (!get_count(count, kMaxText, 1)) return false;
    s.resize(count);
    return take(s.data(), count) && s.find('\0') == std::string::npos;
  }
  template <class T>
  bool get(std::vector<T>& items) {
    std::size_t count = 0;
    if (!get_count(count, kMaxItems<T>, kMinBytes<T>)) return false;
    items.resize(count);
    if constexpr (Scalar<T>) return take(items.data(), count * sizeof(T));
    for (T& item : items)
      if (!get(item)) return false;
    return true;
  }
  template <Message M>
  bool get(M& m) {
    return std::apply([&](auto... field) { return (get(m.*field) && ...); }, kFields<M>);
  }

 private:
  bool get_count(std::size_t& count, std::size_t most, std::size_t item_bytes) {
    std::uint32_t n = 0;
    if (!get(n) || n > most || n * item_bytes > in_.size()) return false;
    count = n;
    return true;
  }
  bool take(void* to, std::size_t bytes) {
    if (bytes > in_.size()) return false;
    if (bytes > 0) std::memcpy(to, in_.data(), bytes);
    in_ = in_.subspan(bytes);
    return true;
  }
  std::span<const std::byte> in_;
};

template <class Variant>
std::vector<std::byte> encode_variant(const Variant& v) {
  std::vector<std::byte> out{static_cast<std::byte>(v.index())};
  Writer w(out);
  std::visit(
      [&]<class M>(const M& m) {
        if constexpr (Message<M>) w.put(m);  // Release and Shutdown are their tag alone
      },
      v);
  return out;
}

template <class Variant, std::size_t I = 0>
std::optional<Variant> decode_variant(std::size_t tag, Reader& r) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return std::nullopt;
  } else {
    using M = std::variant_alternative_t<I, Variant>;
    if (tag != I) return decode_variant<Variant, I + 1>(tag, r);
    M m;
    if constexpr (Message<M>)
      if (!r.get(m)) return std::nullopt;
    if (!r.at_end()) return std::nullopt;
    return Variant(std::in_place_index<I>, std::move(m));
  }
}

template <class Variant>
std::optional<Variant> decode_bytes(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() > kMaxMessageBytes) return std::nullopt;
  Reader r(bytes.subspan(1));
  return decode_variant<Variant>(std::to_integer<std::size_t>(bytes[0]), r);
}

}  // namespace

std::vector<std::byte> encode(const Request& m) {
  return encode_variant(m);
}
std::vector<std::byte> encode(const Reply& m) {
  return encode_variant(m);
}

std::optional<Request> decode_request(std::span<const std::byte> bytes) {
  return decode_bytes<Request>(bytes);
}
std::optional<Reply> decode_reply(std::span<const std::byte> bytes) {
  return decode_bytes<Reply>(bytes);
}

}  // namespace assay::wire

// SPDX-License-Identifier: Apache-2.0
// How device memory crosses from the judge to the runner: created as an exportable allocation on
// one side, passed as a POSIX file descriptor, mapped on both. The driver's functions are looked up
// through the runtime, so that nothing links against libcuda and the same binary runs without a
// GPU.
//
// Everything throws std::runtime_error with the step and the driver's word for what went wrong.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace assay::wire {

inline void cuda_check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e));
}

/// A driver function by name, in its CUDA 12.0 form (any driver that runs this knows it).
template <class F>
F driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t e =
      cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
  if (e != cudaSuccess || found != cudaDriverEntryPointSuccess || address == nullptr)
    throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F>(address);
}

struct DriverMemory {
  decltype(&cuMemCreate) create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemAddressReserve) reserve =
      driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free_address =
      driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemMap) map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access =
      driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  decltype(&cuMemExportToShareableHandle) export_handle =
      driver_function<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle");
  decltype(&cuMemImportFromShareableHandle) import_handle =
      driver_function<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle");
  decltype(&cuMemGetAllocationGranularity) granularity =
      driver_function<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuGetErrorName) error_name =
      driver_function<decltype(&cuGetErrorName)>("cuGetErrorName");

  void check(CUresult r, const char* what) const {
    if (r == CUDA_SUCCESS) return;
    const char* name = nullptr;
    error_name(r, &name);
    throw std::runtime_error(std::string(what) + ": " +
                             (name != nullptr ? name : std::to_string(static_cast<int>(r))));
  }

  static CUmemAllocationProp properties(int ordinal) {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = ordinal;
    return p;
  }
  std::size_t granularity_bytes(int ordinal) const {
    std::size_t bytes = 0;
    const CUmemAllocationProp p = properties(ordinal);
    check(granularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          "cuMemGetAllocationGranularity");
    return bytes;
  }
};

/// One allocation mapped into this process's device address space, with unmapped space on both
/// sides. Owns the mapping and its share in the allocation.
class MappedMemory {
 public:
  MappedMemory(const DriverMemory& driver, CUmemGenericAllocationHandle handle, std::size_t bytes,
               int ordinal, bool writable)
      : driver_(driver), handle_(handle), bytes_(bytes), guard_(driver.granularity_bytes(ordinal)) {
    try {
      driver_.check(driver_.reserve(&base_, bytes_ + 2 * guard_, guard_, 0, 0),
                    "cuMemAddressReserve");
      driver_.check(driver_.map(base_ + guard_, bytes_, 0, handle_, 0), "cuMemMap");
      mapped_ = true;
      CUmemAccessDesc access{};
      access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access.location.id = ordinal;
      access.flags = writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
      driver_.check(driver_.set_access(base_ + guard_, bytes_, &access, 1), "cuMemSetAccess");
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~MappedMemory() { destroy(); }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  void* data() const { return reinterpret_cast<void*>(base_ + guard_); }
  CUmemGenericAllocationHandle handle() const { return handle_; }

 private:
  void destroy() {
    if (mapped_) driver_.unmap(base_ + guard_, bytes_);
    if (base_ != 0) driver_.free_address(base_, bytes_ + 2 * guard_);
    driver_.release(handle_);
  }

  const DriverMemory& driver_;
  CUmemGenericAllocationHandle handle_;
  std::size_t bytes_, guard_;
  CUdeviceptr base_ = 0;
  bool mapped_ = false;
};

}  // namespace assay::wire

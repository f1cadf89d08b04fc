// The memory of a simulated GPU: TensorFlow's own BFC allocator over host pages.
//
// With the allocator of real GPUs, peak, limit, growth, fraction, fragmentation and the message of
// a ResourceExhaustedError are those of a real GPU of that size.
#ifndef TFDEVICE_MEMORY_H_
#define TFDEVICE_MEMORY_H_

#include <sys/mman.h>

#include "common.h"
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace tfdevice {

// Gives address space that costs memory only where it is written to: the BFC allocator asks for
// nearly all of the GPU's memory at once, which a laptop need not have.
class LazyPages : public SubAllocator {
 public:
  LazyPages() : SubAllocator({}, {}) {}

  void* Alloc(size_t alignment, size_t num_bytes, size_t* bytes_received) override {
    *bytes_received = num_bytes;
    if (num_bytes == 0) return nullptr;
    void* pages = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    VisitAlloc(pages, 0, num_bytes);
    return pages;
  }

  void Free(void* pages, size_t num_bytes) override {
    if (pages == nullptr) return;
    VisitFree(pages, 0, num_bytes);
    munmap(pages, num_bytes);
  }

  bool SupportsCoalescing() const override { return false; }

  AllocatorMemoryType GetMemoryType() const override {
    return AllocatorMemoryType::kHostPageable;
  }
};

// The allocator of GPU:`index`, made on first use and kept for the life of the process.  As with
// real GPUs the first creation of the device decides the limit: a later Session with another
// per_process_gpu_memory_fraction gets the first one's.
inline Allocator* GpuAllocator(int index, int64_t limit_bytes, const GPUOptions& options) {
  static auto* mutex = new std::mutex;
  static auto* allocators = new std::map<int, Allocator*>;
  std::lock_guard<std::mutex> lock(*mutex);
  Allocator*& allocator = (*allocators)[index];
  if (allocator == nullptr) {
    BFCAllocator::Options bfc;
    bfc.allow_growth = options.allow_growth();
    // A real GPU's allocator waits up to 10 seconds for kernels in flight to free memory.  Here a
    // kernel has run when it returns, so there is nothing to wait for.
    bfc.allow_retry_on_failure = false;
    allocator = new BFCAllocator(std::make_unique<LazyPages>(), limit_bytes,
                                 "GPU_" + std::to_string(index) + "_bfc", bfc);
  }
  return allocator;
}

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_MEMORY_H_

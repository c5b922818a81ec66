// The bridge: MOVie as a full allocator of PyTorch, for what torch's own C++ code asks of one and function pointers
// cannot answer. Compiled against the PyTorch that is installed (movie bridge build); one binary serves one version of
// it.
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "bridge/table.h"

#define MOVIE_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

namespace movie::torch_side {

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Pluggable = torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator;
using c10::CachingDeviceAllocator::DeviceStats;

const BridgeTable* core = nullptr;

[[noreturn]] void refuse(const char* what) {
    TORCH_CHECK(false, "MOVie does not support ", what);
    std::abort();  // not reached; TORCH_CHECK throws
}

// The types of torch's counters have moved between its versions; their members and order have not.
template <class TorchStat>
void copy(const Stat& from, TorchStat& to) {
    to.current = from.current;
    to.peak = from.peak;
    to.allocated = from.allocated;
    to.freed = from.freed;
}

template <class TorchStats>
void copy(const StatByKind& from, TorchStats& to) {
    for (std::size_t kind = 0; kind < from.kinds.size(); ++kind) copy(from.kinds[kind], to[kind]);
}

// A moment of a pool, which torch keeps for the branches of a tree of graphs.
struct Moment final : caching::AllocatorState {
    std::shared_ptr<const void> held;
};

// Requests and frees go straight to the core: the base class would look for each block in a book of its own.
class Bridge final : public Pluggable {
  public:
    Bridge() : Pluggable(allocate_on, release_on) {
        set_reset_fn(core->empty_cache);
        set_memory_fraction_fn(core->set_fraction);
        set_base_alloc_fn(core->base_of);
        set_record_stream_fn([](void* address, cudaStream_t stream) { core->record_stream(address, stream); });
    }

    std::string name() override { return "movie"; }

    c10::DataPtr allocate(std::size_t size) override {
        const c10::DeviceIndex device = current_device();
        void* const address = get(size, device, c10::cuda::getCurrentCUDAStream(device));
        return held(address, device);
    }
    void* raw_alloc(std::size_t size) override {
        const c10::DeviceIndex device = current_device();
        return get(size, device, c10::cuda::getCurrentCUDAStream(device));
    }
    void* raw_alloc_with_stream(std::size_t size, cudaStream_t stream) override {
        return get(size, current_device(), stream);
    }
    void raw_delete(void* address) override { free_block(address); }
    // By it torch also knows memory of its present allocator. The one of the base class will not do: that of torch 2.6
    // expects the base class's own notes on the block instead of an address.
    c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

    // Without this a library that sizes its workspace by what is left (cuDNN's search for algorithms) cannot run.
    void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override {
        *largest = std::max(*largest, core->most_available(device));
    }

    DeviceStats getDeviceStats(c10::DeviceIndex device) override {
        const Statistics from = core->statistics(device);
        DeviceStats to;
        copy(from.allocation, to.allocation);
        copy(from.segment, to.segment);
        copy(from.active, to.active);
        copy(from.inactive_split, to.inactive_split);
        copy(from.allocated_bytes, to.allocated_bytes);
        copy(from.reserved_bytes, to.reserved_bytes);
        copy(from.active_bytes, to.active_bytes);
        copy(from.inactive_split_bytes, to.inactive_split_bytes);
        copy(from.requested_bytes, to.requested_bytes);
        copy(from.oversize_allocations, to.oversize_allocations);
        copy(from.oversize_segments, to.oversize_segments);
        to.num_alloc_retries = from.num_alloc_retries;
        to.num_ooms = from.num_ooms;
        to.num_sync_all_streams = from.num_sync_all_streams;
        to.num_device_alloc = from.num_device_alloc;
        to.num_device_free = from.num_device_free;
        to.max_split_size = from.max_split_size;
        return to;
    }
    void resetPeakStats(c10::DeviceIndex device) override { core->reset_peaks(device); }
    void resetAccumulatedStats(c10::DeviceIndex device) override { core->reset_accumulated(device); }
    double getMemoryFraction(c10::DeviceIndex device) override { return core->fraction(device); }

    // For C++ callers; what Python calls has the trace and its stacks too.
#if MOVIE_TORCH >= 211
    caching::SnapshotInfo snapshot(c10::cuda::MempoolId_t pool, bool) override { return snapshot_of(pool); }
#elif MOVIE_TORCH >= 208
    caching::SnapshotInfo snapshot(c10::cuda::MempoolId_t pool) override { return snapshot_of(pool); }
#else
    caching::SnapshotInfo snapshot() override { return snapshot_of({0, 0}); }
#endif
    bool isHistoryEnabled() override { return false; }

    void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) override {
        core->observe_out_of_memory([observer](int device, Bytes wanted, Bytes reserved, Bytes free) {
            observer(device, static_cast<std::size_t>(wanted), static_cast<std::size_t>(reserved),
                     static_cast<std::size_t>(free));
        });
    }

    // --- pools -------------------------------------------------------------------------------------------------------
    void beginAllocateToPool(c10::DeviceIndex device, c10::cuda::MempoolId_t id,
                             std::function<bool(cudaStream_t)> filter) override {
        core->route(device, id,
                    [filter = std::move(filter)](void* stream) { return filter(static_cast<cudaStream_t>(stream)); });
#if MOVIE_TORCH < 213
        core->begin_capture();  // torch does not say when a capture begins: whatever is routed may be one
#endif
    }
    void endAllocateToPool(c10::DeviceIndex device, c10::cuda::MempoolId_t id) override {
        core->stop_routing(device, id);
#if MOVIE_TORCH < 213
        core->end_capture();
#endif
    }
#if MOVIE_TORCH >= 213
    void markCaptureBegin(c10::DeviceIndex) override { core->begin_capture(); }
    void markCaptureEnd(c10::DeviceIndex) override { core->end_capture(); }
#endif
    void releasePool(c10::DeviceIndex device, c10::cuda::MempoolId_t id) override { core->release_pool(device, id); }
    int getPoolUseCount(c10::DeviceIndex device, c10::cuda::MempoolId_t id) override {
        return core->pool_uses(device, id);
    }
#if MOVIE_TORCH < 208
    void ensureExistsAndIncrefPool(c10::DeviceIndex device, c10::cuda::MempoolId_t id) override {
        core->use_pool(device, id);
    }
#endif
#if MOVIE_TORCH >= 211
    void createOrIncrefPool(c10::DeviceIndex device, c10::cuda::MempoolId_t id,
                            std::shared_ptr<caching::CUDAAllocator> own) override {
        use_pool(device, id, own.get());
    }
    void setUseOnOOM(c10::DeviceIndex device, c10::cuda::MempoolId_t id, bool use) override {
        core->lend_pool(device, id, use);
    }
#elif MOVIE_TORCH >= 208
    void createOrIncrefPool(c10::DeviceIndex device, c10::cuda::MempoolId_t id, caching::CUDAAllocator* own) override {
        use_pool(device, id, own);
    }
    void setUseOnOOM(c10::DeviceIndex device, c10::cuda::MempoolId_t id) override { core->lend_pool(device, id, true); }
#endif
#if MOVIE_TORCH >= 210
    void setNoSplit(c10::DeviceIndex, c10::cuda::MempoolId_t) override {
        refuse("a MemPool whose segments are not split");
    }
#endif

    // --- trees of graphs ---------------------------------------------------------------------------------------------
    std::shared_ptr<caching::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                                c10::cuda::MempoolId_t id) override {
        auto moment = std::make_shared<Moment>();
        moment->held = core->moment(device, id);
        return moment;
    }
    caching::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex device,
                                                    std::shared_ptr<caching::AllocatorState> state) override {
        const auto moment = std::dynamic_pointer_cast<Moment>(state);
        TORCH_CHECK(moment != nullptr, "the moment is of another allocator than MOVie");
        std::vector<void*> live;
        caching::CheckpointDelta delta;
        core->rewind(device, moment->held.get(), delta.ptrs_freed, live);
        for (void* const address : live) delta.dataptrs_allocd.push_back(held(address, device));
        return delta;
    }
    bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::cuda::MempoolId_t id,
                                  const std::unordered_set<void*>& expected) override {
        return core->lives_exactly(device, id, expected);
    }

    // --- several devices ---------------------------------------------------------------------------------------------
    cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t count,
                            cudaStream_t stream, bool peers) override {
        // Memory that was mapped cannot be reached from a device that may not: such copies go through the driver.
        if (peers || to_device == from_device)
            return cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, stream);
        return cudaMemcpyPeerAsync(to, to_device, from, from_device, count, stream);
    }

    // --- refused -----------------------------------------------------------------------------------------------------
    caching::ShareableHandle shareIpcHandle(void*) override {
        refuse("sharing CUDA tensors between processes; send them through the CPU");
    }
    std::shared_ptr<void> getIpcDevPtr(std::string) override {
        refuse("sharing CUDA tensors between processes; send them through the CPU");
    }
    void attachAllocatorTraceTracker(caching::AllocatorTraceTracker) override {
        refuse("registering its memory with NCCL");
    }

  private:
    void use_pool(c10::DeviceIndex device, c10::cuda::MempoolId_t id, const caching::CUDAAllocator* own) {
        if (own != nullptr && own != this) refuse("a MemPool with an allocator of its own; leave it out");
        core->use_pool(device, id);
    }

    static void* allocate_on(std::size_t size, int device, cudaStream_t stream) {
        return core->allocate(static_cast<std::ptrdiff_t>(size), device, stream);
    }

    static void release_on(void* address, std::size_t, int, cudaStream_t) { core->release(address); }

    static c10::DeviceIndex current_device() {
        int device = 0;
        C10_CUDA_CHECK(cudaGetDevice(&device));
        return static_cast<c10::DeviceIndex>(device);
    }

    static void* get(std::size_t size, c10::DeviceIndex device, cudaStream_t stream) {
        void* const address = allocate_on(size, device, stream);
        if (c10::memoryProfilingEnabled() && address != nullptr) report(address, {c10::kCUDA, device}, 1);
        return address;
    }

    static void free_block(void* address) {
        if (c10::memoryProfilingEnabled() && address != nullptr) report(address, device_of(address), -1);
        core->release(address);
    }

    c10::DataPtr held(void* address, c10::DeviceIndex device) {
        return {address, address, &free_block, c10::Device(c10::kCUDA, device)};
    }

    static c10::Device device_of(void* address) {
        return {c10::kCUDA, static_cast<c10::DeviceIndex>(std::max(core->device_of(address), 0))};
    }

    static void report(void* address, c10::Device device, std::int64_t sign) {
        std::size_t size = 0;
        core->base_of(address, &size);
        const Statistics now = core->statistics(device.index());
        c10::reportMemoryUsageToProfiler(address, sign * static_cast<std::int64_t>(size),
                                         static_cast<std::size_t>(now.allocated_bytes[PoolKind::all].current),
                                         static_cast<std::size_t>(now.reserved_bytes[PoolKind::all].current), device);
    }

    static caching::SnapshotInfo snapshot_of(c10::cuda::MempoolId_t pool) {
        caching::SnapshotInfo snapshot;
        int devices = 0;
        C10_CUDA_CHECK(cudaGetDeviceCount(&devices));
        snapshot.device_traces.resize(static_cast<std::size_t>(devices));
        for (int device = 0; device < devices; ++device)
            for (const LaidSegment& segment : core->layout(device)) {
                const auto id = core->pool_id(segment.pool);
                if (pool != c10::cuda::MempoolId_t{0, 0} && pool != c10::cuda::MempoolId_t(id)) continue;
                auto& made = snapshot.segments.emplace_back();
                made.device = static_cast<c10::DeviceIndex>(device);
                made.address = segment.address;
                made.total_size = segment.size;
                made.stream = reinterpret_cast<decltype(made.stream)>(segment.stream);
                made.is_large = true;
                made.is_expandable = true;
                made.owner_private_pool_id = id;
                for (const LaidBlock& block : segment.blocks) {
                    auto& laid = made.blocks.emplace_back();
                    laid.size = block.size;
                    laid.requested_size = block.requested;
                    laid.allocated = block.state == LaidBlock::State::live;
                    laid.active = block.state != LaidBlock::State::idle;
                    if (laid.allocated) made.allocated_size += laid.size;
                    if (laid.allocated) made.requested_size += laid.requested_size;
                    if (laid.active) made.active_size += laid.size;
                }
            }
        return snapshot;
    }
};

}  // namespace

}  // namespace movie::torch_side

// Makes the bridge torch's allocator. Null, or why that was not possible (a text that lives until the next call).
extern "C" __attribute__((visibility("default"))) const char* movie_bridge_install(
    const movie::torch_side::BridgeTable* table) {
    static std::string problem;
    try {
        if (table->size != sizeof(movie::torch_side::BridgeTable)) return "it was built for another version of MOVie";
        movie::torch_side::core = table;
        // Torch keeps a reference of its own; this one is for the rest of the process, however it ends.
        static const auto* const bridge =
            new std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator>(new movie::torch_side::Bridge());
        torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(*bridge);
        // What asks for "the allocator of CUDA" without going through torch.cuda.
        c10::SetAllocator(c10::kCUDA, bridge->get(), 255);
    } catch (const std::exception& error) {
        problem = error.what();
        return problem.c_str();
    }
    return nullptr;
}

// The version of PyTorch that it was compiled against.
extern "C" __attribute__((visibility("default"))) const char* movie_bridge_torch_version() { return TORCH_VERSION; }

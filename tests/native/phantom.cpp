// Several threads of a program use the phantom card in bytes mode at once: each its own streams, memory of all kinds,
// captures and host functions, on a card that lags. Bytes must be right, no rule broken, and everything given back.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "check.h"

extern "C" {
int cudaMalloc(void**, std::size_t);
int cudaFree(void*);
int cudaHostAlloc(void**, std::size_t, unsigned);
int cudaFreeHost(void*);
int cudaMallocAsync(void**, std::size_t, void*);
int cudaFreeAsync(void*, void*);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
int cudaMemsetAsync(void*, int, std::size_t, void*);
int cudaStreamCreateWithFlags(void**, unsigned);
int cudaStreamDestroy(void*);
int cudaStreamSynchronize(void*);
int cudaStreamWaitEvent(void*, void*, unsigned);
int cudaDeviceSynchronize();
int cudaEventCreateWithFlags(void**, unsigned);
int cudaEventDestroy(void*);
int cudaEventRecord(void*, void*);
int cudaEventQuery(void*);
int cudaLaunchHostFunc(void*, void (*)(void*), void*);
int cudaStreamBeginCapture(void*, int);
int cudaStreamEndCapture(void*, void**);
int cudaGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cudaGraphLaunch(void*, void*);
int cudaGraphDestroy(void*);
int cudaGraphExecDestroy(void*);
int cuMemAddressReserve(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long);
int cuMemAddressFree(std::uint64_t, std::size_t);
int cuMemCreate(std::uint64_t*, std::size_t, const void*, unsigned long long);
int cuMemRelease(std::uint64_t);
int cuMemMap(std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long);
int cuMemUnmap(std::uint64_t, std::size_t);
int cuMemSetAccess(std::uint64_t, std::size_t, const void*, std::size_t);
std::uint64_t movie_phantom_violations();
std::uint64_t movie_phantom_used(int);
std::uint64_t movie_phantom_launches();
}

namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;
constexpr std::size_t kBlock = 4096;
constexpr int kToDevice = 1, kToHost = 2, kOnDevice = 3;

struct Prop {
    int type, handles, location, device;
    void* meta;
    unsigned char flags[8];
};
struct Access {
    int location, device, flags;
};

void ok(int code) { CHECK(code == 0); }

// A range over two pages in some order, which aliases whatever else maps them.
std::uint64_t map_pages(std::uint64_t first, std::uint64_t second) {
    std::uint64_t place = 0;
    ok(cuMemAddressReserve(&place, 2 * kPage, 0, 0, 0));
    ok(cuMemMap(place, kPage, 0, first, 0));
    ok(cuMemMap(place + kPage, kPage, 0, second, 0));
    const Access access{1, 0, 3};
    ok(cuMemSetAccess(place, 2 * kPage, &access, 1));
    return place;
}

void unmap_pages(std::uint64_t place) {
    ok(cuMemUnmap(place, 2 * kPage));
    ok(cuMemAddressFree(place, 2 * kPage));
}

std::atomic<int> host_calls = 0;

void one_thread(unsigned seed) {
    std::mt19937 random(seed);
    void *one = nullptr, *two = nullptr, *mark = nullptr, *plain = nullptr, *pinned = nullptr;
    ok(cudaStreamCreateWithFlags(&one, 1));
    ok(cudaStreamCreateWithFlags(&two, 1));
    ok(cudaEventCreateWithFlags(&mark, 2));
    ok(cudaMalloc(&plain, kPage));
    ok(cudaHostAlloc(&pinned, 2 * kBlock, 0));
    auto* source = static_cast<unsigned char*>(pinned);
    auto* target = source + kBlock;
    const Prop prop{1, 0, 1, 0, nullptr, {}};
    std::uint64_t pages[2];
    for (std::uint64_t& page : pages) ok(cuMemCreate(&page, kPage, &prop, 0));

    for (int round = 0; round < 60; ++round) {
        const std::uint64_t home = map_pages(pages[0], pages[1]), view = map_pages(pages[1], pages[0]);
        for (std::size_t at = 0; at < kBlock; ++at) source[at] = static_cast<unsigned char>(random());
        const std::size_t offset = random() % (kPage / kBlock) * kBlock;
        auto* in_home = reinterpret_cast<void*>(home + offset);
        auto* in_view = reinterpret_cast<void*>(view + kPage + offset);
        ok(cudaMemcpyAsync(in_home, source, kBlock, kToDevice, one));
        ok(cudaEventRecord(mark, one));
        ok(cudaStreamWaitEvent(two, mark, 0));
        ok(cudaMemcpyAsync(plain, in_view, kBlock, kOnDevice, two));
        void* pooled = nullptr;
        ok(cudaMallocAsync(&pooled, kBlock, two));
        ok(cudaMemcpyAsync(pooled, plain, kBlock, kOnDevice, two));
        ok(cudaMemsetAsync(plain, round, kBlock, two));
        ok(cudaMemcpyAsync(target, pooled, kBlock, kToHost, two));
        ok(cudaFreeAsync(pooled, two));
        ok(cudaLaunchHostFunc(two, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &host_calls));
        if (random() % 4 == 0) (void)cudaEventQuery(mark);
        ok(cudaStreamSynchronize(two));
        CHECK(std::memcmp(source, target, kBlock) == 0);
        unmap_pages(home);
        unmap_pages(view);
    }

    // Relaxed, since other threads do what other captures forbid.
    void *graph = nullptr, *exec = nullptr;
    ok(cudaStreamBeginCapture(one, 2));
    ok(cudaMemsetAsync(plain, 7, kBlock, one));
    ok(cudaMemcpyAsync(target, plain, kBlock, kToHost, one));
    ok(cudaStreamEndCapture(one, &graph));
    ok(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cudaGraphDestroy(graph));
    std::memset(target, 0, kBlock);
    ok(cudaGraphLaunch(exec, one));
    ok(cudaStreamSynchronize(one));
    CHECK(target[0] == 7 && target[kBlock - 1] == 7);
    ok(cudaGraphExecDestroy(exec));

    for (const std::uint64_t page : pages) ok(cuMemRelease(page));
    ok(cudaFree(plain));
    ok(cudaFreeHost(pinned));
    ok(cudaEventDestroy(mark));
    ok(cudaStreamDestroy(one));
    ok(cudaStreamDestroy(two));
}

}  // namespace

int main() {
    setenv("MOVIE_PHANTOM_DEVICE", "a100-80", 1);
    setenv("MOVIE_PHANTOM_BYTES", "1", 1);
    setenv("MOVIE_PHANTOM_LAG", "30", 1);
    setenv("MOVIE_PHANTOM_SEED", "1", 1);
    setenv("MOVIE_PHANTOM_QUIET", "1", 1);
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(one_thread, seed);
    for (std::thread& thread : threads) thread.join();
    ok(cudaDeviceSynchronize());
    CHECK(movie_phantom_violations() == 0);
    CHECK(movie_phantom_used(0) == 0);
    CHECK(host_calls == 4 * 60);
    std::puts("ok: four threads on one phantom card");
    // The phantom's own thread never ends: no exit handlers while it may run.
    std::fflush(nullptr);
    std::_Exit(0);
}

// Collectives: one launch on the stream, and this rank's own share goes where it would be found afterwards. What the
// other ranks would have sent is missing, so results have the right size and place and not the right values.
#include <algorithm>
#include <vector>

#include "phantom/libraries/export.h"
#include "phantom/libraries/nccl/communicator.h"

namespace movie::phantom::nccl {

namespace {

struct Group {
    int depth = 0;
    std::vector<Stream> streams;  // with work at the end
};

Group& group() {
    thread_local Group mine;
    return mine;
}

}  // namespace

std::size_t size_of(int type) {
    constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};  // in the order of ncclDataType_t
    return type < 0 || type >= static_cast<int>(std::size(kSizes)) ? 0 : kSizes[type];
}

void group_start() { ++group().depth; }

Result group_end() {
    auto& mine = group();
    if (mine.depth == 0) return kInvalidUsage;
    if (--mine.depth > 0) return kSuccess;
    const auto streams = std::move(mine.streams);
    mine.streams.clear();
    for (auto* stream : streams) {
        if (!launch(stream)) return kUnhandledCudaError;
    }
    return kSuccess;
}

Result enqueue(const Communicator* communicator, Stream stream) {
    if (!usable(communicator)) return kInvalidUsage;
    auto& mine = group();
    if (mine.depth == 0) return launch(stream) ? kSuccess : kUnhandledCudaError;
    if (std::find(mine.streams.begin(), mine.streams.end(), stream) == mine.streams.end()) {
        mine.streams.push_back(stream);
    }
    return kSuccess;
}

}  // namespace movie::phantom::nccl

using namespace movie::phantom::nccl;
using movie::phantom::Stream;

namespace {

char* at(void* base, std::size_t offset) { return static_cast<char*>(base) + offset; }
const char* at(const void* base, std::size_t offset) { return static_cast<const char*>(base) + offset; }

bool in_range(const Communicator* communicator, int rank) {
    return communicator && communicator->valid() && rank >= 0 && rank < communicator->size;
}

// The collective is one piece of work: the copy of this rank's own share where it has to move, else a launch.
Result with_share(const Communicator* communicator, const char* from, char* to, std::size_t count, int type,
                  Stream stream) {
    const auto bytes = count * size_of(type);
    if (!size_of(type) || (bytes && (!from || !to))) return kInvalidArgument;
    if (from == to || bytes == 0) return enqueue(communicator, stream);
    if (!usable(communicator)) return kInvalidUsage;
    return movie::phantom::copy_on_card(to, from, bytes, stream) ? kSuccess : kUnhandledCudaError;
}

Result without_share(const Communicator* communicator, int type, Stream stream) {
    return size_of(type) ? enqueue(communicator, stream) : kInvalidArgument;
}

}  // namespace

PHANTOM_EXPORT int ncclGroupStart() {
    group_start();
    return kSuccess;
}
PHANTOM_EXPORT int ncclGroupEnd() { return group_end(); }

PHANTOM_EXPORT int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int,
                                 const Communicator* communicator, Stream stream) {
    return with_share(communicator, at(from, 0), at(to, 0), count, type, stream);
}
PHANTOM_EXPORT int ncclReduce(const void* from, void* to, std::size_t count, int type, int, int root,
                              const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, root)) return kInvalidArgument;
    if (communicator->rank != root) return without_share(communicator, type, stream);
    return with_share(communicator, at(from, 0), at(to, 0), count, type, stream);
}
PHANTOM_EXPORT int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                                 const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, root)) return kInvalidArgument;
    if (communicator->rank != root) return without_share(communicator, type, stream);
    return with_share(communicator, at(from, 0), at(to, 0), count, type, stream);
}
PHANTOM_EXPORT int ncclBcast(void* buffer, std::size_t count, int type, int root, const Communicator* communicator,
                             Stream stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
PHANTOM_EXPORT int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                 const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, 0)) return kInvalidArgument;
    const auto offset = static_cast<std::size_t>(communicator->rank) * count * size_of(type);
    return with_share(communicator, at(from, 0), at(to, offset), count, type, stream);
}
PHANTOM_EXPORT int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int,
                                     const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, 0)) return kInvalidArgument;
    const auto offset = static_cast<std::size_t>(communicator->rank) * count * size_of(type);
    return with_share(communicator, at(from, offset), at(to, 0), count, type, stream);
}
PHANTOM_EXPORT int ncclAlltoAll(const void* from, void* to, std::size_t count, int type,
                                const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, 0)) return kInvalidArgument;
    const auto offset = static_cast<std::size_t>(communicator->rank) * count * size_of(type);
    return with_share(communicator, at(from, offset), at(to, offset), count, type, stream);
}
PHANTOM_EXPORT int ncclGather(const void* from, void* to, std::size_t count, int type, int root,
                              const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, root)) return kInvalidArgument;
    if (communicator->rank != root) return without_share(communicator, type, stream);
    return ncclAllGather(from, to, count, type, communicator, stream);
}
PHANTOM_EXPORT int ncclScatter(const void* from, void* to, std::size_t count, int type, int root,
                               const Communicator* communicator, Stream stream) {
    if (!in_range(communicator, root)) return kInvalidArgument;
    if (communicator->rank != root) return without_share(communicator, type, stream);
    return ncclReduceScatter(from, to, count, type, 0, communicator, stream);
}
PHANTOM_EXPORT int ncclSend(const void*, std::size_t, int type, int peer, const Communicator* communicator,
                            Stream stream) {
    return in_range(communicator, peer) ? without_share(communicator, type, stream) : kInvalidArgument;
}
PHANTOM_EXPORT int ncclRecv(void*, std::size_t, int type, int peer, const Communicator* communicator, Stream stream) {
    return in_range(communicator, peer) ? without_share(communicator, type, stream) : kInvalidArgument;
}

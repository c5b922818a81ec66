#include "replay/validator/validator.h"

#include <algorithm>
#include <utility>

#include "replay/validator/describe.h"

namespace movie {

using namespace validation;

namespace {

constexpr Bytes kRounding = 512;  // what every block is a multiple of

std::string piece_of(const Physical& physical, Bytes begin, Bytes end) {
    const std::string name = physical.handle == 0 ? "a plain allocation" : "handle " + std::to_string(physical.handle);
    return "bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " + name;
}

}  // namespace

void Validator::fail(int invariant, const std::string& text) {
    fault_.emplace(invariant, text + " (call " + std::to_string(calls_ + 1) + ")");
    throw ValidationError(*fault_);
}

std::string Validator::describe(Address address, const Block& block) const {
    return "the block " + range_text(address, block.size) + " of stream " +
           std::to_string(order_.stream(block.stream)) + ", pool " + std::to_string(block.pool);
}

const Use* Validator::unordered(const Uses& uses, std::uint32_t stream) const {
    for (const Use& use : uses)
        if (!order_.before(use, stream)) return &use;
    return nullptr;
}

const Use* Validator::unseen(const Uses& uses) const {
    for (const Use& use : uses)
        if (!order_.known_to_host(use)) return &use;
    return nullptr;
}

template <class F>
void Validator::for_each_part(Address address, Bytes size, F&& f) {
    const Address end = address + size;
    for (auto mapping = book_.first_over(address); mapping != book_.mappings().end() && mapping->first < end; ++mapping)
        f(mapping->second, std::max(address, mapping->first) - mapping->first,
          std::min(end, mapping->first + mapping->second.size) - mapping->first);
}

// --- the driver's side -----------------------------------------------------------------------------------------------

void Validator::before_release(Handle handle) {
    const Physical* physical = book_.find(handle);
    if (physical == nullptr) return;  // the device's own rules answer this
    if (physical->pinned) fail(10, "pinned memory is released: handle " + std::to_string(handle));
    for (std::size_t i = 0; i < physical->pieces.size(); ++i) {
        const Physical::Piece& piece = physical->pieces[i];
        const std::string where = piece_of(*physical, piece.begin, physical->end_of(i));
        if (piece.block != 0)
            fail(4, "released, but a block lives in it: " + where + ", the block at " + hex(piece.block));
        if (const Use* use = unseen(book_.uses()[piece.uses]))
            fail(4,
                 "released, but the host has not seen its last use complete: " + where + ", " + order_.describe(*use));
    }
}

void Validator::released(Handle handle) {
    Physical* physical = book_.find(handle);
    if (physical == nullptr) return;
    if (physical->mapped > 0) leaving_.insert(handle);
    book_.release(*physical);
}

void Validator::before_map(Address address, Bytes size, Handle handle) {
    const Physical* physical = book_.find(handle);
    if (physical != nullptr && physical->size != size)
        fail(11, "a mapping of " + std::to_string(size) + " bytes at " + hex(address) + " is not the whole of handle " +
                     std::to_string(handle) + " of " + std::to_string(physical->size) + " bytes");
}

void Validator::mapped(Address address, Bytes size, Handle handle) {
    if (Physical* physical = book_.find(handle)) book_.map(address, size, *physical);
}

void Validator::before_unmap(Address address, Bytes size) {
    if (!capturing_.empty()) fail(9, "unmap " + range_text(address, size) + " while a stream captures");
    for (auto mapping = book_.first_over(address); mapping != book_.mappings().end() && mapping->first < address + size;
         ++mapping) {
        const Physical& physical = *mapping->second.physical;
        const std::string where = range_text(mapping->first, mapping->second.size);
        if (physical.pinned)
            fail(10, "pinned memory is unmapped: " + where + ", handle " + std::to_string(physical.handle));
        for (const Physical::Piece& piece : physical.pieces) {
            if (piece.block == 0) continue;
            const Block& block = blocks_.at(piece.block);  // it may live in another range that maps the same handle
            if (piece.block < mapping->first + mapping->second.size && mapping->first < piece.block + block.size)
                fail(3, "unmap of " + where + ", where a block lives: " + describe(piece.block, block));
        }
        if (const Use* use = unseen(mapping->second.uses))
            fail(3, "unmap of " + where +
                        ", but the host has not seen work that used the range complete: " + order_.describe(*use));
    }
}

void Validator::unmapped(Address address, Bytes size) { book_.unmap(address, size); }

void Validator::before_mfree(Address address) {
    if (!capturing_.empty()) fail(9, "mfree " + hex(address) + " while a stream captures");
    const auto mapping = book_.mappings().find(address);
    if (mapping == book_.mappings().end() || mapping->second.physical->handle != 0) return;
    const Physical& physical = *mapping->second.physical;
    if (physical.pinned) fail(10, "pinned memory is freed: the plain allocation at " + hex(address));
    for (const Physical::Piece& piece : physical.pieces)
        if (piece.block != 0)
            fail(4, "mfree of " + hex(address) +
                        ", where a block lives: " + describe(piece.block, blocks_.at(piece.block)));
}

void Validator::freed_plain(Address address) {
    order_.all_seen_by_host();  // mfree waits for the device
    book_.mfree(address);
}

void Validator::before_record(Stream stream) {
    if (capturing_.contains(stream))
        fail(9, "an event is recorded on stream " + std::to_string(stream) + ", which captures");
}

void Validator::before_waiting(const char* call) {
    if (!capturing_.empty()) fail(9, std::string(call) + " while a stream captures");
}

// --- the allocator's side --------------------------------------------------------------------------------------------

void Validator::check_pool(Physical& physical, Address address, const Block& block) {
    if (!physical.owned || physical.pool == block.pool) {
        physical.owned = true;
        physical.pool = block.pool;
        return;
    }
    const std::string what = "memory of pool " + std::to_string(physical.pool) + " (" +
                             piece_of(physical, 0, physical.size) + ") goes to " + describe(address, block);
    const Pool& giver = pools_[physical.pool];
    // A released pool is nobody's: what still lives in it is like any other block.
    if (!giver.released) {
        if (physical.live > 0) fail(8, what + ", while blocks of its pool live in it");
        // The default pool has no owner that could object.
        if (physical.pool != 0 && !giver.lendable) fail(8, what + ", but that pool is neither released nor lendable");
        for (const Physical::Piece& piece : physical.pieces)
            if (const Use* use = unordered(book_.uses()[piece.uses], block.stream))
                fail(8, what + ", while work of its pool may still use it: " + order_.describe(*use));
    }
    physical.pool = block.pool;
}

void Validator::claim(Physical& physical, Bytes begin, Bytes end, Address address, const Block& block) {
    check_pool(physical, address, block);
    UsesTable::Id checked = 0;
    for (std::size_t i = physical.piece_at(begin); i < physical.pieces.size() && physical.pieces[i].begin < end; ++i) {
        const Physical::Piece& piece = physical.pieces[i];
        if (piece.block != 0) {
            const std::string owner =
                piece.block == address ? "itself" : describe(piece.block, blocks_.at(piece.block));
            fail(1, describe(address, block) + " got " + piece_of(physical, begin, end) + ", which already belong to " +
                        owner);
        }
        if (piece.uses == checked) continue;
        checked = piece.uses;
        if (const Use* use = unordered(book_.uses()[piece.uses], block.stream))
            fail(12, describe(address, block) + " got " + piece_of(physical, begin, end) +
                         ", last used by work that it is not ordered behind: " + order_.describe(*use));
    }
    book_.take(physical, begin, end, address);
}

void Validator::allocated(Address address, const Request& request) {
    Block block{.bytes = request.bytes,
                .size = round_up(request.bytes, kRounding),
                .stream = order_.index_of(request.stream),
                .pool = request.pool,
                .others = {}};
    if (address == 0 || address % kRounding != 0) fail(2, "a block at " + hex(address) + ", not a multiple of 512");
    const Address end = address + block.size;
    Address at = address;
    for (auto mapping = book_.first_over(address); at < end; ++mapping) {
        if (mapping == book_.mappings().end() || mapping->first > at)
            fail(2, describe(address, block) + " is not mapped at " + hex(at));
        MemoryBook::Mapping& part = mapping->second;
        if (!part.accessible)
            fail(11, describe(address, block) + " has no access to " + range_text(mapping->first, part.size));
        if (part.physical->released) fail(4, describe(address, block) + " lies in memory that was released");
        const Address part_end = mapping->first + part.size;
        claim(*part.physical, at - mapping->first, std::min(end, part_end) - mapping->first, address, block);
        at = part_end;
    }
    if (!book_.in_one_unit(address, block.size))
        fail(2, describe(address, block) + " crosses the end of its reservation");
    (void)order_.queue(block.stream);
    live_requested_ += block.bytes;
    live_size_ += block.size;
    if (!blocks_.emplace(address, std::move(block)).second) fail(1, "two live blocks at " + hex(address));
}

void Validator::allocation_failed(Bytes held_before, const Allocator& allocator) {
    // While a stream captures nothing may be unmapped: what was obtained for a request that failed stays for a while.
    if (book_.held() > held_before && !refused_ && capturing_.empty())
        fail(6, "a request failed, but the allocator holds " + std::to_string(book_.held()) + " bytes where it held " +
                    std::to_string(held_before));
    const Statistics statistics = allocator.statistics();
    const auto blocks = static_cast<std::uint64_t>(statistics.allocation[PoolKind::all].current);
    if (blocks != blocks_.size())
        fail(6, "a request failed, but the allocator counts " + std::to_string(blocks) +
                    " live blocks where there are " + std::to_string(blocks_.size()));
}

bool Validator::before_free(Address address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return false;
    const Block& block = found->second;
    // The work of all its streams that was queued up to now; whatever the allocator records in free() comes behind it.
    Uses uses{order_.queue(block.stream)};
    for (const std::uint32_t other : block.others) add_use(uses, order_.queue(other));
    const UsesTable::Id id = book_.uses().add(uses);
    for_each_part(address, block.size, [&](MemoryBook::Mapping& mapping, Bytes begin, Bytes) {
        for (const Use& use : uses) add_use(mapping.uses, use);
        book_.give(*mapping.physical, begin, id);
    });
    live_requested_ -= block.bytes;
    live_size_ -= block.size;
    if (!block.others.empty()) may_be_pending_ += block.bytes;
    freeing_ = std::move(found->second);
    blocks_.erase(found);
    return true;
}

void Validator::free_failed(Address address) {
    Block& block = *freeing_;
    for_each_part(address, block.size, [&](MemoryBook::Mapping& mapping, Bytes begin, Bytes end) {
        book_.take(*mapping.physical, begin, end, address);
    });
    live_requested_ += block.bytes;
    live_size_ += block.size;
    if (!block.others.empty()) may_be_pending_ -= block.bytes;
    blocks_.emplace(address, std::move(block));
}

void Validator::unknown_freed(Address address) {
    fail(5, "the allocator took free(" + hex(address) + "), but no live block begins there");
}

void Validator::recorded(Address address, Stream stream) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    Block& block = found->second;
    const std::uint32_t index = order_.index_of(stream);
    if (index == block.stream) return;
    if (std::find(block.others.begin(), block.others.end(), index) == block.others.end()) block.others.push_back(index);
}

void Validator::reclaimed(Bytes held_before, Bytes claimed) {
    if (held_before < book_.held() || held_before - book_.held() != claimed)
        fail(5, "reclaim() says that it gave back " + std::to_string(claimed) + " bytes, but the allocator holds " +
                    std::to_string(book_.held()) + " bytes where it held " + std::to_string(held_before));
}

void Validator::pin(Address address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) throw std::invalid_argument("pin(" + hex(address) + "): no live block begins there");
    for_each_part(address, found->second.size,
                  [](MemoryBook::Mapping& mapping, Bytes, Bytes) { mapping.physical->pinned = true; });
}

// --- sums ------------------------------------------------------------------------------------------------------------

void Validator::end_call(const char* call, const Allocator& allocator) {
    ++calls_;
    freeing_.reset();
    refused_ = false;
    for (const Handle handle : leaving_)
        if (book_.find(handle) != nullptr)
            fail(4, std::string(call) + " released handle " + std::to_string(handle) +
                        ", but left it mapped: its memory does not go back");
    leaving_.clear();
    check_bytes(call);
    if (every_ != 0 && calls_ % every_ == 0) check_statistics(allocator);
}

void Validator::check_bytes(const char* call) {
    if (device_.ledger().reserved != book_.held())
        fail(5, std::string("after ") + call + " the device holds " + std::to_string(device_.ledger().reserved) +
                    " bytes for the allocator, where its calls add up to " + std::to_string(book_.held()));
}

void Validator::check_statistics(const Allocator& allocator) {
    const Statistics statistics = allocator.statistics();
    const auto current = [](const StatByKind& stat) { return static_cast<std::uint64_t>(stat[PoolKind::all].current); };
    const auto compare = [this](const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
        if (value >= least && value <= most) return;
        const std::string expected =
            least == most ? std::to_string(least) : "between " + std::to_string(least) + " and " + std::to_string(most);
        fail(5,
             std::string("statistics say ") + name + " = " + std::to_string(value) + ", where it must be " + expected);
    };
    const std::uint64_t blocks = current(statistics.allocation), active = current(statistics.active);
    const Bytes reserved = book_.held();
    compare("allocation", blocks, blocks_.size(), blocks_.size());
    compare("reserved_bytes", current(statistics.reserved_bytes), reserved, reserved);
    // An allocator may hand out more than it was asked for, rounded: the rest of a range that is not worth cutting.
    compare("allocated_bytes", current(statistics.allocated_bytes), live_size_, reserved);
    compare("active", active, blocks, std::max<std::uint64_t>(active, blocks));
    compare("active_bytes", current(statistics.active_bytes), current(statistics.allocated_bytes),
            active == blocks ? current(statistics.allocated_bytes) : reserved);
    // Bytes of a block that waits for another stream may still count as requested, as in torch.
    compare("requested_bytes", current(statistics.requested_bytes), live_requested_,
            active == blocks ? live_requested_ : live_requested_ + may_be_pending_);
}

void Validator::check_unusable(const Allocator& allocator) {
    const Unusable unusable = allocator.unusable(0, 0);
    const Bytes sum =
        unusable.none + unusable.hard + unusable.soft + unusable.stream + unusable.pool + unusable.rounding;
    if (sum + live_requested_ != book_.held())
        fail(5, "what is unusable (" + std::to_string(sum) + " bytes) and what is in use (" +
                    std::to_string(live_requested_) + ") do not add up to what is reserved (" +
                    std::to_string(book_.held()) + ")");
}

void Validator::check_all(const Allocator& allocator) {
    if (!watching()) return;
    check_bytes("the last call");
    check_statistics(allocator);
    check_unusable(allocator);
}

}  // namespace movie

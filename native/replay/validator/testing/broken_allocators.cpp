#include "replay/validator/testing/broken_allocators.h"

#include <functional>
#include <stdexcept>

namespace movie::testing {

namespace {

struct SharesBlocks final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    Address malloc(const Request& request) override {
        for (const auto& [address, span] : live_)
            if (size_of(span) >= request.bytes) return address;
        return ReferenceAllocator::malloc(request);
    }
};

struct AliasesPages final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool map_pages(Span& span) override {
        if (!live_.empty()) {
            abandon(span);
            span.pages = live_.begin()->second.pages;
        }
        return ReferenceAllocator::map_pages(span);
    }
};

struct MapsTooLittle final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool map_pages(Span& span) override {
        if (span.pages.size() < 2) return ReferenceAllocator::map_pages(span);
        const Handle last = span.pages.back();
        span.pages.pop_back();
        const bool mapped = ReferenceAllocator::map_pages(span);
        span.pages.push_back(last);
        return mapped;
    }
};

struct UnmapsLiveBlocks final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    void empty_cache() override {
        for (auto& [address, span] : live_) (void)give_back(span);
        ReferenceAllocator::empty_cache();
    }
};

struct DoesNotWaitForTheHost final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool drain(Span& span) override {
        for (const auto& entry : span.fence) driver_.event_destroy(entry.second);
        span.fence.clear();
        return true;
    }
};

struct LeavesMappings final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    Bytes give_back(Span& span) override {
        const Bytes size = size_of(span);
        abandon(span);
        count_reserved(-static_cast<std::int64_t>(size));
        return size;
    }
};

struct Miscounts final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    void count_reserved(std::int64_t bytes) override {
        ReferenceAllocator::count_reserved(bytes > 0 ? bytes - static_cast<std::int64_t>(driver_.granularity())
                                                     : bytes);
    }
};

struct TakesStrayFrees final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    void free(Address address) override {
        if (live_.contains(address)) ReferenceAllocator::free(address);
    }
};

struct LeaksOnFailure final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    void abandon(Span& span) override { span.pages.clear(); }
};

struct IgnoresPools final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool may_serve(const Span& span, const Request& request) const override {
        return size_of(span) == mapped_size(request.bytes);
    }
};

struct WaitsWhileCapturing final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool keeps_idle(const Span& span) const override { return span.pinned; }
};

struct ReleasesPinned final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool keeps_idle(const Span&) const override { return capturing_; }
};

struct ForgetsAccess final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool map_pages(Span& span) override {
        for (std::size_t i = 0; i < span.pages.size(); ++i)
            if (driver_.map(span.address + i * driver_.granularity(), driver_.granularity(), span.pages[i]) !=
                Status::ok)
                return false;
        return true;
    }
};

struct IgnoresStreams final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool order_behind(const Span&, Stream) override { return true; }
};

struct ForgetsRecordedStreams final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    bool record_fence(Span& span) override {
        span.others.clear();
        return ReferenceAllocator::record_fence(span);
    }
};

struct RecordsTooEarly final : ReferenceAllocator {
    using ReferenceAllocator::ReferenceAllocator;
    void record_stream(Address address, Stream stream) override {
        const auto found = live_.find(address);
        if (found == live_.end()) return;
        if (const auto event = driver_.event_record(stream); event.ok())
            found->second.fence.emplace_back(stream, event.value);
    }
};

struct Entry {
    Flaw flaw;
    std::function<std::unique_ptr<ReferenceAllocator>(Driver&)> make;
};

template <class A>
Entry entry(const char* name, int invariant, const char* what) {
    return {{name, invariant, what}, [](Driver& driver) { return std::make_unique<A>(driver); }};
}

const std::vector<Entry>& entries() {
    static const std::vector<Entry> all = {
        entry<SharesBlocks>("shares-blocks", 1, "hands out a live block's address once more"),
        entry<AliasesPages>("aliases-pages", 1, "maps a live block's pages for another block"),
        entry<MapsTooLittle>("maps-too-little", 2, "leaves the last page of a block unmapped"),
        entry<UnmapsLiveBlocks>("unmaps-live-blocks", 3, "unmaps live blocks in empty_cache"),
        entry<DoesNotWaitForTheHost>("does-not-wait", 3, "unmaps ranges that work may still use"),
        entry<LeavesMappings>("leaves-mappings", 4, "releases handles that stay mapped"),
        entry<Miscounts>("miscounts", 5, "reports fewer reserved bytes than it holds"),
        entry<TakesStrayFrees>("takes-stray-frees", 5, "accepts frees of addresses that it did not hand out"),
        entry<LeaksOnFailure>("leaks-on-failure", 6, "keeps pages of a block that could not be built"),
        entry<IgnoresPools>("ignores-pools", 8, "serves a pool with idle memory of another"),
        entry<WaitsWhileCapturing>("waits-while-capturing", 9, "waits for events while a stream captures"),
        entry<ReleasesPinned>("releases-pinned", 10, "releases pinned memory"),
        entry<ForgetsAccess>("forgets-access", 11, "hands out ranges without access"),
        entry<IgnoresStreams>("ignores-streams", 12, "reuses memory across streams without a wait"),
        entry<ForgetsRecordedStreams>("forgets-recorded-streams", 12, "ignores record_stream"),
        entry<RecordsTooEarly>("records-too-early", 12,
                               "records the events of record_stream before the block is freed"),
    };
    return all;
}

}  // namespace

const std::vector<Flaw>& flaws() {
    static const std::vector<Flaw> all = [] {
        std::vector<Flaw> list;
        for (const Entry& each : entries()) list.push_back(each.flaw);
        return list;
    }();
    return all;
}

std::unique_ptr<ReferenceAllocator> make_broken(Driver& driver, const std::string& flaw) {
    if (flaw.empty()) return std::make_unique<ReferenceAllocator>(driver);
    for (const Entry& each : entries())
        if (each.flaw.name == flaw) return each.make(driver);
    throw std::invalid_argument("no allocator has the flaw '" + flaw + "'");
}

}  // namespace movie::testing

// Training repeats itself: the same requests, in the same order, iteration after iteration. Who remembers where each of
// them was placed the last time and puts it there again needs no new layout, and no driver call, from then on. Nothing
// is profiled or announced: a run of equal requests is enough to find the place in the past, and to follow it from
// there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "driver/types.h"
#include "ordering/fence.h"

namespace movie {

// The requests of one stream, or of several, in one pool, and where they went.
class Recall {
  public:
    struct Place {
        Address address = 0;    // of the block
        Address view_base = 0;  // of the view that it lay in; 0: none
    };

    // `resumes`: a repetition that was trusted, is interrupted and goes on is soon trusted again. So the second
    // iteration in which all is as before follows the first almost from the start, and layouts settle earlier.
    explicit Recall(bool resumes = false) : resumes_(resumes) {}

    // Where a request of this size by this stream went the last time, if the requests before it have been the same as
    // then for long enough: where only parts repeat, as when lengths vary, the best fit of the moment is the better
    // place.
    [[nodiscard]] std::optional<Place> expect(Bytes bytes, TimelineId stream) const {
        if (!trusted() || !remembered(cursor_) || !at(cursor_).is(bytes, stream)) return std::nullopt;
        return at(cursor_).place;
    }

    // The requests have been the same as before for long enough to expect what came next then.
    [[nodiscard]] bool trusted() const { return followed_ >= kTrust; }
    // And longer than in any repetition that came to an end: the layers of a pass are alike too, but only as many as
    // there are. What is set up for such requests will serve again.
    [[nodiscard]] bool lasts() const { return followed_ >= std::max(kTrust, longest_ended_); }

    // The request was placed.
    void record(Bytes bytes, TimelineId stream, Place place) {
        const bool goes_on = followed_ > 0 && remembered(cursor_) && at(cursor_).is(bytes, stream);
        if (!goes_on) longest_ended_ = std::max(longest_ended_, followed_);
        if (!goes_on && followed_ > 0) interrupted_ = trusted();
        followed_ = goes_on ? followed_ + 1 : 0;
        if (goes_on) ++cursor_;
        push({bytes, stream, place});
        if (next_ < kMatch) return;
        const auto [found, fresh] = seen_.try_emplace(hash_, next_);
        if (followed_ == 0 && !fresh && remembered(found->second)) {
            cursor_ = found->second;  // what came behind the last run of these requests
            followed_ = resumes_ && interrupted_ ? kTrust - kTrustAgain : kMatch;
        }
        found->second = next_;
        if (seen_.size() > 2 * kMost) seen_.clear();
    }

  private:
    struct Entry {
        Bytes bytes = 0;
        TimelineId stream = 0;
        Place place;
        [[nodiscard]] bool is(Bytes size, TimelineId by) const { return bytes == size && stream == by; }
        [[nodiscard]] std::uint64_t hash() const { return bytes ^ (std::uint64_t{stream} << 48); }
    };
    static constexpr std::uint64_t kMatch = 16;   // equal requests in a row by which a place in the past is found
    static constexpr std::uint64_t kTrust = 512;  // and those after which what came next then is expected again
    static constexpr std::uint64_t kTrustAgain = 64;
    static constexpr std::uint64_t kMost = 1 << 16;  // requests remembered
    static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;

    static constexpr std::uint64_t power(std::uint64_t exponent) {
        std::uint64_t result = 1;
        for (std::uint64_t i = 0; i < exponent; ++i) result *= kBase;
        return result;
    }

    // Entries are numbered from 0 on; the last kMost are kept.
    [[nodiscard]] bool remembered(std::uint64_t number) const {
        return number < next_ && next_ - number <= log_.size();
    }
    [[nodiscard]] const Entry& at(std::uint64_t number) const { return log_[number % kMost]; }

    void push(const Entry& entry) {
        if (log_.size() < kMost)
            log_.push_back(entry);
        else
            log_[next_ % kMost] = entry;
        ++next_;
        // A rolling hash of the last kMatch requests.
        hash_ = hash_ * kBase + entry.hash();
        if (next_ > kMatch) hash_ -= at(next_ - 1 - kMatch).hash() * power(kMatch);
    }

    std::vector<Entry> log_;
    std::uint64_t next_ = 0;
    std::uint64_t hash_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> seen_;  // hash of a run -> number of the entry behind it
    std::uint64_t cursor_ = 0;                               // the entry that should come again next
    std::uint64_t longest_ended_ = 0;
    bool interrupted_ = false;  // the last repetition had been trusted when it came to an end
    bool resumes_ = false;
    std::uint64_t followed_ = 0;  // requests in a row that came as they did the last time; 0: none is expected
};

}  // namespace movie

#include "baselines/native/settings.h"

#include <charconv>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace movie {
namespace {

[[noreturn]] void refuse(const std::string& name, std::string_view value, const char* wanted) {
    throw std::invalid_argument(name + "=" + std::string(value) + ": expected " + wanted);
}

template <class Number>
bool parse(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

Bytes size_of(const std::string& name, std::string_view value) {
    Bytes bytes = 0;
    if (!parse(value, bytes) || bytes > (Bytes{1} << 62)) refuse(name, value, "a size in bytes");
    return bytes;
}

double share_of(const std::string& name, std::string_view value, bool one_allowed) {
    double share = 0;
    if (!parse(value, share) || !(share >= 0) || share > 1 || (share == 1 && !one_allowed))
        refuse(name, value, one_allowed ? "a number from 0 to 1" : "a number from 0 to below 1");
    return share;
}

std::array<std::uint32_t, 16> divisions_of(const std::string& name, std::string_view value) {
    constexpr const char* kWanted = "a power of two, or 16 of them (or 0) with '/' between";
    std::vector<std::uint32_t> numbers;
    for (std::string_view rest = value;;) {
        const std::size_t end = rest.find('/');
        std::uint32_t number = 0;
        if (!parse(rest.substr(0, end), number) || (number & (number - 1)) != 0) refuse(name, value, kWanted);
        numbers.push_back(number);
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
    }
    std::array<std::uint32_t, 16> divisions{};
    if (numbers.size() == 1) numbers.assign(divisions.size(), numbers.front());
    if (numbers.size() != divisions.size()) refuse(name, value, kWanted);
    for (std::size_t i = 0; i < divisions.size(); ++i) divisions[i] = numbers[i];
    return divisions;
}

TieRule tie_of(const std::string& name, const std::string& value) {
    if (value == "address") return TieRule::address;
    if (value == "block") return TieRule::block;
    if (value != "segment") refuse(name, value, "address, block or segment");
    return TieRule::segment;
}

}  // namespace

NativeSettings native_settings(const std::map<std::string, std::string>& options) {
    NativeSettings settings;
    for (const auto& [name, value] : options) {
        if (name == "tie") {
            settings.tie = tie_of(name, value);
        } else if (name == "max_split_size") {
            settings.max_split_size = size_of(name, value);
        } else if (name == "max_non_split_rounding") {
            settings.max_non_split_rounding = size_of(name, value);
        } else if (name == "large_segment_size") {
            settings.large_segment_size = size_of(name, value);
        } else if (name == "roundup_power2_divisions") {
            settings.roundup_power2_divisions = divisions_of(name, value);
        } else if (name == "garbage_collection_threshold") {
            settings.garbage_collection_threshold = share_of(name, value, false);
        } else if (name == "memory_fraction") {
            settings.memory_fraction = share_of(name, value, true);
        } else if (name == "rerun_search") {
            if (value != "0" && value != "1") refuse(name, value, "0 or 1");
            settings.rerun_search = value == "1";
        } else {
            throw std::invalid_argument("native has no option '" + name + "'");
        }
    }
    if (settings.large_segment_size < kMinLargeAlloc || settings.large_segment_size % kLargeSegmentStep != 0)
        refuse("large_segment_size", std::to_string(settings.large_segment_size),
               "at least 10 MiB, a multiple of 2 MiB");
    if (settings.max_split_size < settings.large_segment_size)
        refuse("max_split_size", std::to_string(settings.max_split_size), "at least large_segment_size");
    return settings;
}

}  // namespace movie

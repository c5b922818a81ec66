#include "phantom/device/settings.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace movie::phantom {

namespace {

std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::int64_t number(const char* name, std::int64_t otherwise, std::int64_t least) {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    char* end = nullptr;
    const long long read = std::strtoll(value.c_str(), &end, 10);
    if (*end != '\0' || read < least)
        throw std::invalid_argument(std::string(name) + "='" + value + "': a whole number of at least " +
                                    std::to_string(least) + " is meant");
    return read;
}

bool flag(const char* name) {
    const std::string value = text(name);
    return !value.empty() && value != "0";
}

[[noreturn]] void refuse_fault(const std::string& value) {
    throw std::invalid_argument("MOVIE_PHANTOM_FAULT='" + value +
                                "': FUNCTION:CALL[:CODE], several parted by commas, is meant; CALL is a number "
                                "from 1 or * for every call");
}

std::uint64_t positive(const std::string& value, const std::string& all) {
    char* end = nullptr;
    const long long read = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || read < 1) refuse_fault(all);
    return static_cast<std::uint64_t>(read);
}

std::vector<Fault> read_faults(const std::string& value) {
    std::vector<Fault> result;
    for (std::size_t from = 0; from < value.size();) {
        const std::size_t end = std::min(value.find(',', from), value.size());
        const std::string one = value.substr(from, end - from);
        from = end + 1;
        const std::size_t first = one.find(':');
        if (first == std::string::npos || first == 0) refuse_fault(value);
        const std::size_t second = one.find(':', first + 1);
        const std::string call = one.substr(first + 1, second == std::string::npos ? second : second - first - 1);
        Fault fault{.function = one.substr(0, first)};
        if (call != "*") fault.call = positive(call, value);
        if (second != std::string::npos) fault.code = static_cast<int>(positive(one.substr(second + 1), value));
        result.push_back(fault);
    }
    return result;
}

}  // namespace

Settings Settings::from_environment() {
    Settings settings;
    settings.device = text("MOVIE_PHANTOM_DEVICE");
    settings.count = static_cast<int>(number("MOVIE_PHANTOM_COUNT", 1, 1));
    if (settings.count > 64) throw std::invalid_argument("MOVIE_PHANTOM_COUNT: at most 64 devices");
    if (!text("MOVIE_PHANTOM_MEMORY").empty())
        settings.memory = static_cast<Bytes>(number("MOVIE_PHANTOM_MEMORY", 0, 1));
    settings.taken = static_cast<Bytes>(number("MOVIE_PHANTOM_TAKEN", 0, 0));
    settings.lag = number("MOVIE_PHANTOM_LAG", 0, -1);
    settings.seed = static_cast<std::uint64_t>(number("MOVIE_PHANTOM_SEED", 0, 0));
    settings.faults = read_faults(text("MOVIE_PHANTOM_FAULT"));
    if (const std::string costs = text("MOVIE_PHANTOM_COSTS"); !costs.empty()) settings.costs = costs;
    settings.delays = flag("MOVIE_PHANTOM_DELAYS");
    settings.bytes = flag("MOVIE_PHANTOM_BYTES");
    const std::string strict = text("MOVIE_PHANTOM_STRICT");
    if (!strict.empty() && strict != "report" && strict != "abort")
        throw std::invalid_argument("MOVIE_PHANTOM_STRICT='" + strict + "': report or abort is meant");
    settings.abort_on_violation = strict == "abort";
    settings.quiet = flag("MOVIE_PHANTOM_QUIET");
    settings.log = text("MOVIE_PHANTOM_LOG");
    settings.counters = text("MOVIE_PHANTOM_COUNTERS");
    return settings;
}

}  // namespace movie::phantom

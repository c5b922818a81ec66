#include "allocator/configured.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace movie {

namespace {

// A page is created by one call, and above this size drivers take out of all proportion long for one.
constexpr Bytes kLargestPage = 512 * kMiB;

template <class Number>
Number number(const std::string& key, const std::string& text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw std::invalid_argument("option " + key + ": '" + text + "' is not a number");
    if constexpr (std::is_floating_point_v<Number>)
        if (!std::isfinite(value) || value < 0)
            throw std::invalid_argument("option " + key + ": '" + text + "' is not a number from 0 on");
    return value;
}

bool onoff(const std::string& key, const std::string& text) {
    if (text == "on" || text == "true" || text == "1") return true;
    if (text == "off" || text == "false" || text == "0") return false;
    throw std::invalid_argument("option " + key + ": '" + text + "' is neither on nor off");
}

using Setter = std::function<void(MovieConfig&, const std::string& key, const std::string& value)>;

const std::vector<std::pair<std::string, Setter>>& setters() {
    using Config = MovieConfig&;
    using Text = const std::string&;
    static const std::vector<std::pair<std::string, Setter>> all{
        // Alone it says that all pages are alike.
        {"page", [](Config c, Text k, Text v) { c.page = c.largest_page = number<Bytes>(k, v); }},
        {"largest_page", [](Config c, Text k, Text v) { c.largest_page = number<Bytes>(k, v); }},
        {"budget", [](Config c, Text k, Text v) { c.budget = number<Bytes>(k, v); }},
        {"combine", [](Config c, Text, Text v) { c.combiner = combiner_named(v); }},
        {"recall", [](Config c, Text k, Text v) { c.recall = onoff(k, v); }},
        {"lifetimes", [](Config c, Text k, Text v) { c.lifetimes = onoff(k, v); }},
        {"keep_views", [](Config c, Text k, Text v) { c.keep_views = onoff(k, v); }},
        {"edit_views", [](Config c, Text k, Text v) { c.edit_views = onoff(k, v); }},
        {"extend_views", [](Config c, Text k, Text v) { c.extend_views = onoff(k, v); }},
        {"cross_stream", [](Config c, Text k, Text v) { c.cross_stream = onoff(k, v); }},
        {"partial_ends", [](Config c, Text k, Text v) { c.partial_ends = onoff(k, v); }},
        {"most_mapped", [](Config c, Text k, Text v) { c.most_mapped = number<double>(k, v); }},
        {"most_views", [](Config c, Text k, Text v) { c.most_views = number<std::size_t>(k, v); }},
        {"arena_span", [](Config c, Text k, Text v) { c.arena_span = number<Bytes>(k, v); }},
        {"history", [](Config c, Text k, Text v) { c.history = number<std::size_t>(k, v); }},
    };
    return all;
}

void check_key(const std::string& key) {
    const std::vector<std::string> known = movie_options();
    if (std::find(known.begin(), known.end(), key) != known.end()) return;
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    throw std::invalid_argument("option '" + key + "' is unknown; there are: " + names);
}

void check_page(const std::string& key, Bytes size) {
    if (size != 0 && size % kSlabBytes == 0 && size <= kLargestPage) return;
    throw std::invalid_argument("option " + key + ": '" + std::to_string(size) +
                                "' is not a multiple of 2 MiB, up to 512 MiB");
}

}  // namespace

std::vector<std::string> movie_options() {
    std::vector<std::string> names;
    for (const auto& [name, setter] : setters()) names.push_back(name);
    return names;
}

MovieConfig movie_config(Policy policy, const std::map<std::string, std::string>& options) {
    for (const auto& [key, value] : options) check_key(key);
    MovieConfig config{.policy = policy};
    for (const auto& [name, set] : setters())
        if (const auto found = options.find(name); found != options.end()) set(config, name, found->second);
    check_page("page", config.page);
    if (config.largest_page != 0) check_page("largest_page", config.largest_page);
    if (config.largest_page != 0 && config.largest_page < config.page)
        throw std::invalid_argument("option largest_page: the largest page is smaller than the smallest");
    return config;
}

}  // namespace movie

#include "allocator/configured.h"

#include <charconv>
#include <functional>
#include <stdexcept>
#include <utility>

namespace movie {

namespace {

template <class Number>
Number number(const std::string& key, const std::string& text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw std::invalid_argument("option " + key + ": '" + text + "' is not a number");
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

}  // namespace

std::vector<std::string> movie_options() {
    std::vector<std::string> names;
    for (const auto& [name, setter] : setters()) names.push_back(name);
    return names;
}

MovieConfig movie_config(Policy policy, const std::map<std::string, std::string>& options) {
    MovieConfig config{.policy = policy};
    for (const auto& [name, set] : setters())
        if (const auto found = options.find(name); found != options.end()) set(config, name, found->second);
    return config;
}

}  // namespace movie
